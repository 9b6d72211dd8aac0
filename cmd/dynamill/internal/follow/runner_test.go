package follow

import (
	"strings"
	"testing"

	"github.com/dynamill/dynamill"
)

func TestFlagsOfTheArchiveAreChecked(t *testing.T) {
	var options Options
	options.LeaseTerm, options.ArchiveGzip = dynamill.LeaseTermDefault, true
	if err := options.Check(false); err == nil || !strings.Contains(err.Error(), "--archive-gzip has no meaning without --archive") {
		t.Errorf("error %v", err)
	}
}
