package schemas

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// Installed loads the schemas, and has them installed first if they are not there.
var Installed = sync.OnceValues(func() (*Schemas, error) {
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	said, err := exec.Command(filepath.Join(root, "scripts", "template-schemas")).Output()
	if failed := new(exec.ExitError); errors.As(err, &failed) {
		return nil, fmt.Errorf("installing the schemas: %s", failed.Stderr)
	}
	if err != nil {
		return nil, fmt.Errorf("installing the schemas: %w", err)
	}
	return Load(strings.TrimSpace(string(said)))
})

// moduleRoot returns the nearest folder with a go.mod, from the working directory upwards. With -trimpath, runtime.Caller tells no path.
func moduleRoot() (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return folder, nil
		}
		if folder == filepath.Dir(folder) {
			return "", errors.New("no go.mod in the working directory or above it")
		}
		folder = filepath.Dir(folder)
	}
}
