package following

import (
	"testing"

	"github.com/dynamill/dynamill/internal/stream/leases"
)

func TestTracesTellWhichTableWasDeleted(t *testing.T) {
	ofStream, ofAnother := []leases.Lease{{}, {Stream: "arn"}}, []leases.Lease{{Stream: "former"}, {}}
	for name, c := range map[string]struct {
		Traces
		want Lost
	}{
		"nothing has run":                              {Traces{}, LostNone},
		"all is there":                                 {Traces{Leases: ofStream, Registered: true, Followed: true}, LostNone},
		"leases and no state":                          {Traces{Leases: ofStream}, LostState},
		"leases of a former stream alone":              {Traces{Leases: ofAnother}, LostNone},
		"state that a process followed, and no leases": {Traces{Registered: true, Followed: true}, LostLeases},
		"state of a function or of replays, no leases": {Traces{Registered: true}, LostNone},
	} {
		if got := c.Lost("arn"); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
