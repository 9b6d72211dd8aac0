package scripts

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestNoSkipsFailsAThinnedOutRun(t *testing.T) {
	for name, test := range map[string]struct{ total, skipped, complaint string }{
		"every test ran":        {"7", "0", ""},
		"a test was skipped":    {"7", "2", "2 skipped tests count as failed"},
		"every test was":        {"2", "2", "2 skipped tests count as failed"},
		"there were no tests":   {"0", "0", "no test ran"},
		"the numbers are unset": {"", "", "no test ran"},
	} {
		t.Run(name, func(t *testing.T) {
			check := exec.CommandContext(t.Context(), "./no-skips")
			check.Env = append(os.Environ(), "TESTS_TOTAL="+test.total, "TESTS_SKIPPED="+test.skipped)
			out, err := check.CombinedOutput()
			if (err == nil) != (test.complaint == "") || strings.TrimSpace(string(out)) != test.complaint {
				t.Errorf("printed %q, %v, want %q", out, err, test.complaint)
			}
		})
	}
}
