package replaying

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/session"
	"github.com/dynamill/dynamill/internal/printable"
	"github.com/dynamill/dynamill/internal/projections"
)

// Recounted is the result of `replay --recount` in JSON.
type Recounted struct {
	Recounted []string `json:"recounted"`
}

// recount has rules counted anew by whatever process follows the stream.
func recount(ctx context.Context, w *session.Session, names []string) error {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	engine, err := projections.OpenAttached(ctx, w.EngineConfig(0))
	if err == nil {
		err = engine.Recount(ctx, names)
	}
	if !errors.Is(err, projections.ErrEpochMoved) {
		return w.Env.Classify(fmt.Errorf("beginning to count %s anew: %w", strings.Join(names, ", "), err))
	}
	if w.JSON {
		w.PrintJSON(Recounted{names})
		return nil
	}
	w.Print("%s: counted anew by `dynamill run`, beside the live traffic; items show the former count until then\n",
		printable.Text(strings.Join(names, ", ")))
	return nil
}
