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

// recount asks the process that follows the stream to count rules anew.
func recount(ctx context.Context, w *session.Session, names []string) error {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	former := map[string]int{}
	for left := names; len(left) > 0; {
		engine, err := projections.OpenAttached(ctx, w.EngineConfig(0))
		if err == nil {
			for _, name := range left {
				if _, asked := former[name]; !asked {
					former[name] = engine.GenerationOf(name)
				}
			}
			// Another process may have moved the epoch instead, and many rules take several steps.
			left = slices.DeleteFunc(slices.Clone(left), func(name string) bool { return engine.GenerationOf(name) > former[name] })
			if len(left) == 0 {
				break
			}
			err = engine.Recount(ctx, left)
		}
		if !errors.Is(err, projections.ErrEpochMoved) {
			return w.Env.Classify(fmt.Errorf("beginning to count %s anew: %w", strings.Join(left, ", "), err))
		}
	}
	if w.JSON {
		w.PrintJSON(Recounted{names})
		return nil
	}
	w.Print("%s: to be counted anew by `dynamill run`, which must be running, beside the live traffic; items show the former count until "+
		"that is done\n", printable.Text(strings.Join(names, ", ")))
	return nil
}
