package projections

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/awscall"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// asLocal answers as DynamoDB Local does: what no number or item can hold refuses the whole transaction.
type asLocal struct{ table.Client }

func (c asLocal) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput,
	o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	out, err := c.Client.TransactWriteItems(ctx, in, o...)
	var canceled *ddb.TransactionCanceledException
	if errors.As(err, &canceled) {
		for _, r := range canceled.CancellationReasons {
			if awscall.ReasonCode(r) == "ValidationError" {
				return nil, &smithy.GenericAPIError{Code: "ValidationException", Message: *r.Message}
			}
		}
	}
	return out, err
}

// seededAsLocal is a seeded engine on an endpoint that answers as DynamoDB Local does.
func (w *world) seededAsLocal() *Engine {
	w.t.Helper()
	e := w.engine(asLocal{w.sim})
	if err := e.Seed(w.ctx, nil); err != nil {
		w.t.Fatal(err)
	}
	return e
}

func TestRedeliveredDeleteParksNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderLines)
		e := w.seededAsLocal()
		w.put(change.Item{"pk": s("ORDER#1")})
		w.put(change.Item{"pk": s("LINE#1#p"), "price": change.Number("1e40")})
		from := w.drain(e, 0)
		w.delete(change.Key{Partition: "LINE#1#p"})
		from = w.drain(e, from)
		del := w.records()
		i := len(del) - 1
		for del[i].Key.Partition != "LINE#1#p" {
			i--
		}
		w.put(change.Item{"pk": s("LINE#1#r"), "price": change.Number("2.5")})
		w.drain(e, from)
		w.expectParked(e)
		if _, err := e.Process(w.ctx, del[i:i+1]); err != nil {
			t.Fatal(err)
		}
		w.expectParked(e)
	})
}

func TestDeletedItemStopsCountingThoughRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderLines)
		e := w.seededAsLocal()
		w.put(change.Item{"pk": s("ORDER#1")})
		w.put(change.Item{"pk": s("LINE#1#p"), "price": change.Number("1e40")})
		from := w.drain(e, 0)
		w.put(change.Item{"pk": s("LINE#1#q"), "price": change.Number("2.5")})
		from = w.drain(e, from)
		w.expectParked(e, "total/LINE#1#q")
		w.delete(change.Key{Partition: "LINE#1#q"})
		w.delete(change.Key{Partition: "LINE#1#p"})
		w.drain(e, from)
		w.expectParked(e)
		w.expect(change.Key{Partition: "ORDER#1"}, "total", change.Number("0"))
		w.expectTrue()
	})
}

// the parked retry of an item with a wrong type and one amount that does not fit
func TestRetryBesideARefusedAmountEnds(t *testing.T) {
	w := newWorld(t, strings.Replace(orderLines, "rules:", "rules:\n  a-sum: { sum: weight, of: Line, as: Order.weight }", 1))
	e := w.seededAsLocal()
	w.put(change.Item{"pk": s("ORDER#1")})
	w.put(change.Item{"pk": s("LINE#1#p"), "price": change.Number("1e40")})
	from := w.drain(e, 0)
	w.put(change.Item{"pk": s("LINE#1#q"), "price": change.Number("2.5"), "weight": s("wrong")})
	w.drain(e, from)
	w.expectParked(e, "a-sum/LINE#1#q", "total/LINE#1#q")
	ctx, cancel := context.WithTimeout(w.ctx, 3*time.Second)
	defer cancel()
	if err := e.RetryParked(ctx, parkedID("total/LINE#1#q")); err != nil {
		t.Errorf("the retry does not end: %v", err)
	}
}

// the redelivered record of an item of which one effect is refused
func TestRedeliveredRefusalIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, strings.Replace(orderLines, "rules:", "rules:\n  lines: { count: Line, as: Order.lines }", 1))
		e := w.seededAsLocal()
		w.put(change.Item{"pk": s("ORDER#1")})
		w.put(change.Item{"pk": s("LINE#1#p"), "price": change.Number("1e40")})
		from := w.drain(e, 0)
		w.put(change.Item{"pk": s("LINE#1#q"), "price": change.Number("2.5")})
		w.drain(e, from)
		w.expectParked(e, "total/LINE#1#q")
		all := w.records()
		for i := from; i < len(all); i++ {
			if all[i].Key.Partition == "LINE#1#q" {
				if n, err := e.Process(w.ctx, all[i:]); err != nil {
					t.Fatal(n, err)
				}
			}
		}
	})
}
