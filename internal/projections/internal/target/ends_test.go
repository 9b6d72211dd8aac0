package target_test

import (
	"context"
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynamill/dynamill/internal/projections/internal/target"
	"github.com/dynamill/dynamill/internal/sim/dynamosim"
)

// forgetful is an endpoint that neither executes nor answers the last statement of each batch.
type forgetful struct{ *dynamosim.Sim }

func (c forgetful) BatchExecuteStatement(ctx context.Context, in *dynamodb.BatchExecuteStatementInput,
	_ ...func(*dynamodb.Options)) (*dynamodb.BatchExecuteStatementOutput, error) {
	return c.Sim.BatchExecuteStatement(ctx, &dynamodb.BatchExecuteStatementInput{Statements: in.Statements[:len(in.Statements)-1]})
}

func TestBatchWithoutAllResponsesGoesOutAlone(t *testing.T) {
	w := newWorld(t, 20, dynamosim.Options{})
	w.writer.Tables.Client = forgetful{w.sim}
	if err := errors.Join(w.writer.Every(t.Context(), 20, func(ctx context.Context, to target.Sender, i int) error {
		ended, _, err := to.Write(ctx, w.set(i, i))
		if ended != target.Written || w.value(t, i, "seen") == nil {
			t.Errorf("item %d: outcome %d", i, ended)
		}
		return err
	})...); err != nil {
		t.Fatal(err)
	}
}

// Each call cancels the context before it writes, so that all writes of the batch wait when it is over.
func TestCanceledContextEndsEveryCall(t *testing.T) {
	w := newWorld(t, 20, dynamosim.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	for _, err := range w.writer.Every(ctx, 20, func(ctx context.Context, to target.Sender, i int) error {
		cancel()
		_, _, err := to.Write(ctx, w.set(i, i))
		return err
	}) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
}
