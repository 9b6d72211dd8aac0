package seeding_test

import (
	"errors"
	"testing"

	"github.com/dynamill/dynamill/internal/projections/internal/seeding"
)

func TestPassesReadBackAsTheyAreWritten(t *testing.T) {
	for _, text := range []string{"derive/3/0", "show/3/-1/2", "clean/12", "sweep/12", "sweep", "rederive", "rederive/a,b"} {
		if p, err := seeding.ParsePass(text); err != nil || p.String() != text {
			t.Errorf("%q reads as %q, %v", text, p, err)
		}
	}
	for _, text := range []string{"", "derive", "derive/1", "derive/1/x", "derive/01/0",
		"clean", "clean/x", "show/1/2", "show/1/2/x", "other/1"} {
		if p, err := seeding.ParsePass(text); !errors.Is(err, seeding.ErrUnknownPass) {
			t.Errorf("%q reads as %q, %v", text, p, err)
		}
	}
}
