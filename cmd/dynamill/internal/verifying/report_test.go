package verifying

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/environment"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/output"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/session"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/replay/verify"
)

func TestWhatWasFoundIsShownAlsoWhereVerifyingFails(t *testing.T) {
	var stdout strings.Builder
	r, env := newVerification(&output.Output{Stdout: &stdout}, Options{Limit: 1, share: 1}), &environment.Environment{Table: "app"}
	failed := errors.New("the scan broke off")
	if err := r.breakOff(t.Context(), env, failed); !errors.Is(err, failed) || stdout.String() != "" {
		t.Errorf("nothing was found: %v, %q", err, stdout.String())
	}
	for _, item := range []string{"a", "b", "c"} {
		found := verify.Result{Finding: drift.Finding{Rule: "r", Item: change.Key{Partition: item, Sort: "x"}}, Status: verify.Repaired}
		if err := r.found(found); err != nil {
			t.Fatal(err)
		}
	}
	stopped, stop := context.WithCancelCause(t.Context())
	stop(session.ErrStopped)
	if err := r.breakOff(stopped, env, stopped.Err()); !strings.Contains(err.Error(), "stopped before") ||
		!strings.Contains(stdout.String(), "a/x") || strings.Contains(stdout.String(), "b/x") ||
		!strings.Contains(stdout.String(), "... 2 more: --limit 0") {
		t.Errorf("%v\n%s", err, stdout.String())
	}
}

func TestADrawnSampleSeedIsANumberThatEveryReaderOfJSONHolds(t *testing.T) {
	for range 1000 {
		o := Options{Sample: "1%", Memory: MemoryDefault, Segments: 1, Settle: SettleDefault}
		if err := o.Check(false, nil); err != nil {
			t.Fatal(err)
		}
		if uint64(float64(o.SampleSeed)) != o.SampleSeed {
			t.Fatalf("%d is another number as a float", o.SampleSeed)
		}
	}
}
