package dynamill

import (
	"context"
	"errors"
	"testing"
)

var errShutDown = errors.New("the process is shut down")

// A reader that begins again forgets how far it came, which the drain's last sentence says.
func TestAStoppedDrainDoesNotReadAgain(t *testing.T) {
	stopped, stop := context.WithCancelCause(t.Context())
	stop(errShutDown)
	f := &follower{} // without a reader
	if err := f.drainAll(stopped); !errors.Is(err, errShutDown) {
		t.Errorf("%v, want %v", err, errShutDown)
	}
}
