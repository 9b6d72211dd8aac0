package schemas

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
)

// Installed loads the schemas, and has them installed first if they are not there.
var Installed = sync.OnceValues(func() (*Schemas, error) {
	_, here, _, ok := runtime.Caller(0)
	if !ok {
		return nil, errors.New("the source's folder is not known")
	}
	script := filepath.Join(filepath.Dir(here), "..", "..", "..", "scripts", "template-schemas")
	said, err := exec.Command(script).Output()
	if failed := new(exec.ExitError); errors.As(err, &failed) {
		return nil, fmt.Errorf("installing the schemas: %s", failed.Stderr)
	}
	if err != nil {
		return nil, fmt.Errorf("installing the schemas: %w", err)
	}
	return Load(strings.TrimSpace(string(said)))
})
