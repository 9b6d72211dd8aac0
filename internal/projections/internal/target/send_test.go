package target_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/projections/internal/target"
	"github.com/dynamill/dynamill/internal/sim/dynamosim"
)

// form is the write of any item on condition that it holds n, and the placeholder of n.
func (w *world) form() (t *target.Write, n string) {
	t = target.On(w.rule, "", change.Key{})
	n = t.Value(nil)
	t.Put("seen", change.Bool(true))
	t.Condition = t.Format("%n = %s", "n", n)
	return t, n
}

func TestWritesOfOneFormDifferInKeyAndValues(t *testing.T) {
	w := newWorld(t, 60, dynamosim.Options{})
	form, n := w.form()
	before := w.sim.Usage()
	answers, err := w.writer.Send(t.Context(), 60, func(i int) *target.Write {
		if i%20 == 7 {
			return nil
		}
		one := form.Again("writing", change.Key{Partition: fmt.Sprint(i)})
		one.Values[n] = table.Number(int64(i))
		if i%20 == 3 {
			one.Values[n] = table.Number(-1) // not what the item holds
		}
		return one
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range answers {
		written := i%20 != 3 && i%20 != 7
		if (a.Ended == target.Written) != written || (w.value(t, i, "seen") != nil) != written || (a.Current != nil) != (i%20 == 3) {
			t.Errorf("item %d: %+v", i, a)
		}
	}
	if used := w.sim.Usage().Sub(before).Requests; used["BatchExecuteStatement"] != 3 || used["UpdateItem"] != 0 {
		t.Errorf("requests: %v, want 3 batches", used)
	}
}

// failing gives up on every write.
type failing struct {
	*dynamosim.Sim
	err error
}

func (c failing) BatchExecuteStatement(context.Context, *dynamodb.BatchExecuteStatementInput, ...func(*dynamodb.Options)) (
	*dynamodb.BatchExecuteStatementOutput, error) {
	return nil, c.err
}

func (c failing) UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return nil, c.err
}

func TestNoMoreIsSentOnceAWriteHasFailed(t *testing.T) {
	failure := errors.New("no answer")
	w := newWorld(t, 0, dynamosim.Options{})
	w.writer.Tables.Client = failing{w.sim, failure}
	began := atomic.Int64{}
	_, err := w.writer.Send(t.Context(), 5000, func(i int) *target.Write { began.Add(1); return w.set(i, i) })
	if !errors.Is(err, failure) || began.Load() == 5000 {
		t.Errorf("%v after %d writes", err, began.Load())
	}
}
