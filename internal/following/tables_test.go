package following

import "testing"

func TestTracesTellWhichTableWasDeleted(t *testing.T) {
	for name, c := range map[string]struct {
		Traces
		want Lost
	}{
		"nothing has run":                              {Traces{}, LostNone},
		"all is there":                                 {Traces{leaseRows: 2, streamLeases: 1, Registered: true, followed: true}, LostNone},
		"leases and no state":                          {Traces{leaseRows: 2, streamLeases: 1}, LostState},
		"leases of a former stream alone":              {Traces{leaseRows: 2}, LostNone},
		"state that a process followed, and no leases": {Traces{Registered: true, followed: true}, LostLeases},
		"state of a function or of replays, no leases": {Traces{Registered: true}, LostNone},
	} {
		if got := c.Lost(); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
