package mutants

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Write fills an empty folder with the guarded files of the module at root, each
// with its switches, and returns the file that go test -overlay asks for.
func Write(root, dir string) (string, error) {
	guards, err := All()
	if err != nil {
		return "", err
	}
	mutated, err := Apply(root, guards)
	if err != nil {
		return "", err
	}
	mutated[installedPath] = installed
	if root, err = filepath.Abs(root); err != nil {
		return "", err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", err
	}
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for path, text := range mutated {
		copied := filepath.Join(dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(copied), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(copied, []byte(text), 0o644); err != nil {
			return "", err
		}
		overlay.Replace[filepath.Join(root, filepath.FromSlash(path))] = copied
	}
	text, err := json.MarshalIndent(overlay, "", "\t")
	if err != nil {
		return "", fmt.Errorf("writing the overlay: %w", err)
	}
	file := filepath.Join(dir, "overlay.json")
	return file, os.WriteFile(file, text, 0o644)
}

// installedPath is the file that says whether a build has the switches.
const installedPath = "internal/proof/mutants/switches/installed.go"

const installed = `package switches

// Installed reports whether this build has the switches.
const Installed = true
`
