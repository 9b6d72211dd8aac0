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

// moduleRoot is the folder of go.mod, above the present folder.
func moduleRoot() (string, error) {
	here, err := os.Getwd()
	for ; err == nil; here = filepath.Dir(here) {
		if _, err := os.Stat(filepath.Join(here, "go.mod")); err == nil {
			return here, nil
		}
		if here == filepath.Dir(here) {
			return "", errors.New("no folder above the present one has a go.mod")
		}
	}
	return "", err
}
