package projections

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// parkless refuses every transaction that parks, and counts these.
type parkless struct {
	table.Client
	refused *int
}

func (c parkless) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput,
	o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	reasons, parks := make([]ddb.CancellationReason, len(in.TransactItems)), false
	for i, part := range in.TransactItems {
		reasons[i].Code = aws.String("None")
		if part.Put != nil && table.TextOf(part.Put.Item["pk"]) == state.ParkedPartition {
			reasons[i], parks = ddb.CancellationReason{Code: aws.String("ValidationError"), Message: aws.String("refused")}, true
		}
	}
	if parks {
		*c.refused++
		return nil, &ddb.TransactionCanceledException{CancellationReasons: reasons}
	}
	return c.Client.TransactWriteItems(ctx, in, o...)
}

const shardedWeights = `
version: 1
table: { keys: [pk, sk] }
entities:
  Reaction: { key: { pk: "POST#${postId}", sk: "BY#${userId}" } }
  Album:    { key: { pk: "ALBUM#${albumId}", sk: "METADATA" } }
rules:
  weight: { sum: weight, of: Reaction, as: Album.weight, by: { albumId: album }, write_shards: 16 }
`

// TestRefusedParkTriesNoOtherAccumulator has 16 accumulators, to none of which a parked row belongs.
func TestRefusedParkTriesNoOtherAccumulator(t *testing.T) {
	w, refused := newWorld(t, shardedWeights), 0
	e := w.engine(parkless{w.sim, &refused})
	if err := e.Seed(w.ctx, nil); err != nil {
		t.Fatal(err)
	}
	w.react("heavy", change.Item{"weight": s("heavy")})
	w.drain(e, 0)
	if refused != 1 {
		t.Errorf("%d transactions that park were sent, want 1", refused)
	}
	w.expectCodes(e, "write.rejected")
}

// TestRefusedParkIsRetriedWithPauses rederives an item that is parked already: it is parked again each time.
func TestRefusedParkIsRetriedWithPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, refused := newWorld(t, shardedWeights), 0
		w.react("heavy", change.Item{"weight": s("heavy")})
		w.drain(w.seeded(), 0)
		w.react("heavy", change.Item{"weight": s("as lead")})
		ctx, cancel := context.WithCancel(w.ctx)
		defer cancel()
		e := w.engine(parkless{w.sim, &refused})
		e.host.Now = func() time.Time {
			if refused > 100 {
				cancel()
			}
			return time.Now()
		}
		start := time.Now()
		err := e.Rederive(ctx, []change.Key{{Partition: "POST#p", Sort: "BY#heavy"}})
		if took := time.Since(start); err == nil || refused > 40 || took < time.Second {
			t.Errorf("parking was tried %d times in %s: %v", refused, took, err)
		}
	})
}
