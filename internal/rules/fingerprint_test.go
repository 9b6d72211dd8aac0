package rules_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A table remembers its rules by their fingerprints: another fingerprint seeds a rule anew.
func TestFingerprintsStayAsTablesRememberThem(t *testing.T) {
	var b strings.Builder
	for _, pattern := range []string{"testdata/good/*.yaml", "../../examples/*/dynamill.yaml"} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range loadText(t, string(src)).Rules {
				fmt.Fprintf(&b, "%s %s %s\n", file, r.Name, r.Fingerprint)
			}
		}
	}
	compareGolden(t, "testdata/fingerprints.golden", b.String())
}
