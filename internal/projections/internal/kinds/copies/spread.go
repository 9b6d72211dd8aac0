package copies

import (
	"cmp"
	"context"
	"sync/atomic"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/projections/internal/children"
	"github.com/dynamill/dynamill/internal/projections/internal/target"
)

// Spread implements children.Spreader: it writes to children that were read from their collection, or whose references
// were: those are not read before. It begins no more once one has failed.
func (kind) Spread(ctx context.Context, r children.Run, s *children.Spreading, rows []children.Row) (int, error) {
	w, pw := run{r}, parentWrite{s, Of(s.Rule).Given(s.Given)}
	keys, seen, refers := w.ChildKeys(s.Binding, rows), make([]change.Image, len(rows)), make([]bool, len(rows))
	var open []int // children that are not written yet
	if s.Rule.Collection {
		for i, r := range rows {
			open, seen[i] = append(open, i), attributes.ItemFromTable(r)
		}
	} else {
		answers, err := w.writeUnread(ctx, pw, keys)
		if err != nil {
			return 0, err
		}
		for i, a := range answers {
			if seen[i], refers[i] = a.Current, a.Ended != target.RaceLost; !refers[i] {
				open = append(open, i)
			}
		}
	}
	failed := atomic.Bool{}
	errs := w.Targets.Every(ctx, len(open), func(ctx context.Context, to target.Sender, i int) (err error) {
		if failed.Load() {
			return nil
		}
		i = open[i]
		if refers[i], err = w.writeChild(ctx, to, pw, keys[i], seen[i]); err != nil {
			failed.Store(true)
		}
		return err
	})
	if err := cmp.Or(errs...); err != nil {
		return 0, err
	}
	var dangling []children.Row
	for i, r := range rows {
		if !refers[i] {
			dangling = append(dangling, r)
		}
	}
	return len(rows) - len(dangling), w.PruneAll(ctx, s.Binding, dangling)
}
