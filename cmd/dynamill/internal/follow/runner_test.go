package follow

import (
	"strings"
	"testing"

	"github.com/dynamill/dynamill"
)

func TestFlagsOfTheArchiveAreChecked(t *testing.T) {
	var options Options
	options.LeaseTerm, options.PollInterval, options.ArchiveGzip = dynamill.LeaseTermDefault, dynamill.PollIntervalDefault, true
	if err := options.Check(false); err == nil || !strings.Contains(err.Error(), "--archive-gzip has no meaning without --archive") {
		t.Errorf("error %v", err)
	}
}
