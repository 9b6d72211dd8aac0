package replay_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/replay"
	"github.com/dynamill/dynamill/internal/replay/sources"
	"github.com/dynamill/dynamill/internal/sim/dynamosim"
)

// throttled is a table that refuses scans until some moment.
type throttled struct {
	*dynamosim.Sim
	until time.Time
}

func (c *throttled) Scan(ctx context.Context, in *dynamodb.ScanInput, _ ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	if time.Now().Before(c.until) {
		return nil, &types.ProvisionedThroughputExceededException{}
	}
	return c.Sim.Scan(ctx, in)
}

// TestAScanWaitsForCapacityForAMinute is that longer than that is an error which names the
// segments, and that the next replay does what is left.
func TestAScanWaitsForCapacityForAMinute(t *testing.T) {
	for wait, waited := range map[time.Duration]bool{30 * time.Second: true, 5 * time.Minute: false} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			for i := range 20 {
				r.put("app", keyOf(i))
			}
			client := &throttled{r.sim, time.Now().Add(wait)}
			cfg := r.process().config(nil)
			cfg.Scan = sources.ScanConfig{Client: client, Keys: blogKeys, Segments: 4}
			_, err := replay.Run(t.Context(), cfg)
			if waited {
				if err != nil {
					t.Errorf("refused for %s the replay ended with %v", wait, err)
				}
				return
			}
			var failed *replay.PiecesError
			if !errors.As(err, &failed) || len(failed.Errors) != 4 || !strings.Contains(err.Error(), "segment 1 of 4") {
				t.Errorf("refused for %s the replay ended with %v", wait, err)
			}
			time.Sleep(wait)
			if _, err := replay.Run(t.Context(), cfg); err != nil || len(r.completed) != 2 {
				t.Errorf("%v, %v completed", err, r.completed)
			}
		})
	}
}
