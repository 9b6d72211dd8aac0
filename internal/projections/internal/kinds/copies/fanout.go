package copies

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/projections/internal/target"
)

// run is the application of what copy rules ask for.
type run struct{ *host.Run }

var (
	_ host.Kind      = kind{}
	_ host.Postponer = kind{}
	_ host.Sweeper   = kind{}
)

// Apply implements host.Kind: parents go before children.
func (kind) Apply(ctx context.Context, r *host.Run, pl *plan.Changes) {
	w, changes := run{r}, plan.PartOf[Changes](pl)
	w.fanOut(ctx, &changes.FanOuts)
	w.refill(ctx, &changes.Refills)
	w.fill(ctx, &changes.Fills)
}

// writeChildren writes a parent's state to its first children. It returns how many of them refer to the parent, and where
// the others begin.
func (w run) writeChildren(ctx context.Context, pw parentWrite, most int) (referring int, next table.Row, err error) {
	children := pages{run: w, pw: pw}
	for most > 0 {
		rows, err := children.take(ctx, most)
		if err != nil {
			return referring, nil, err
		}
		n, err := w.write(ctx, pw, rows)
		referring, most = referring+n, most-len(rows)
		if err != nil || len(children.place) == 0 {
			return referring, nil, err
		}
	}
	return referring, children.place, nil
}

// write writes a parent's state to some children. It returns how many of them refer to the parent.
func (w run) write(ctx context.Context, pw parentWrite, rows []table.Row) (referring int, err error) {
	if pw.refill {
		return w.fillReferring(ctx, pw, rows)
	}
	return w.writeRows(ctx, pw, rows)
}

// refill fills all children of parents anew, as if they had just come: for a
// parent that is rederived, whose record may be lost. Where the record's position
// is known, the parent's is raised to it: no earlier record writes what the parent was before.
func (w run) refill(ctx context.Context, parents *plan.OrderedMap[plan.ItemRule, change.Position]) {
	for id, position := range parents.All() {
		w.Ended(ctx, 0, id.Binding, id.Key, w.refillParent(ctx, id, *position))
	}
}

func (w run) refillParent(ctx context.Context, id plan.ItemRule, position change.Position) error {
	if !position.IsZero() {
		if _, err := w.raiseParent(ctx, id, stamp.VersionAt(id.Epoch, position)); err != nil {
			return err
		}
	}
	return w.refillChildren(ctx, id, !position.IsZero())
}

// refillChildren fills a parent's first children anew. What lies beyond the bound becomes a task.
func (w run) refillChildren(ctx context.Context, id plan.ItemRule, raised bool) error {
	at, err := w.parentAt(ctx, id)
	if err != nil {
		return err
	}
	atOnce := w.FanOutNow()
	referring, next, err := w.writeChildren(ctx, parentWrite{b: id.Binding, parent: id.Key, refill: true}, atOnce)
	switch {
	case err != nil:
		return err
	case len(next) > 0:
		return w.putTask(ctx, state.Task{Parent: id, At: at, Refill: true, Cursor: next, Children: atOnce, Referring: referring})
	case referring == 0 && raised:
		parents, err := w.readParents(ctx, []plan.ItemRule{id})
		if err != nil || parents[id] != nil {
			return err
		}
		return w.retireParent(ctx, id, at)
	}
	return nil
}

// fillReferring fills children anew, and prunes references that dangle. It
// returns how many still refer to the parent.
func (w run) fillReferring(ctx context.Context, pw parentWrite, rows []table.Row) (int, error) {
	fill := run{&host.Run{Host: w.Host}}
	referring := 0
	for chunk := range slices.Chunk(rows, fillsAtOnce) {
		children, refers := make([]*childFill, len(chunk)), &Fill{link: link{refers: true, parent: pw.parent}}
		for i, key := range w.childKeys(pw.b, chunk) {
			children[i] = &childFill{ItemRule: plan.ItemRule{Binding: pw.b, Key: key}, Fill: refers}
		}
		err := fill.fillChunk(ctx, children)
		if err = cmp.Or(err, fill.Err); err != nil {
			return referring, err
		}
		for i, r := range chunk {
			if !children[i].left {
				referring++
			} else if err := w.prune(ctx, pw.b, r); err != nil {
				return referring, err
			}
		}
	}
	return referring, nil
}

// childKeys are the children that rows of their collection are, or that references name.
func (w run) childKeys(b *plan.Binding, rows []table.Row) []change.Key {
	keys := make([]change.Key, len(rows))
	for i, r := range rows {
		if keys[i] = state.ReferenceChild(r); b.Rule.Collection {
			keys[i] = w.Tables.KeyOf(r)
		}
	}
	return keys
}

// writeRows writes to children that were read from their collection, or whose references
// were: those are not read before. It begins no more once one has failed, and prunes references that dangle.
func (w run) writeRows(ctx context.Context, pw parentWrite, rows []table.Row) (int, error) {
	keys, seen, refers := w.childKeys(pw.b, rows), make([]change.Image, len(rows)), make([]bool, len(rows))
	var open []int // children that are not written yet
	if pw.b.Rule.Collection {
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
	var dangling []table.Row
	for i, r := range rows {
		if !refers[i] {
			dangling = append(dangling, r)
		}
	}
	return len(rows) - len(dangling), w.Tables.Each(ctx, len(dangling), func(ctx context.Context, i int) error {
		return w.prune(ctx, pw.b, dangling[i])
	})
}

// prune deletes a row that dangles among those by which children are found, if it is a reference.
func (w run) prune(ctx context.Context, b *plan.Binding, row table.Row) error {
	if b.Rule.Collection {
		return nil
	}
	return pruneReference(ctx, w.Tables, b.ID, row)
}

// pruneReference deletes a reference whose child is gone or refers elsewhere, unless it was put again.
func pruneReference(ctx context.Context, tables *table.Tables, rule string, reference table.Row) error {
	c := table.NewExpression()
	condition := table.Whole(c.SameAs(reference, "a"))
	return tables.DeleteState(ctx, rule, "pruning a reference", table.KeyOf(reference), condition, c)
}

// Rows implements host.Keeper.
func (kind) Rows() []string { return []string{state.ReferenceRows, state.ParentRows} }

// Swept implements host.Sweeper.
func (kind) Swept() string { return state.ReferenceRows }

// Sweep implements host.Sweeper: it prunes references whose child is gone or refers elsewhere.
func (kind) Sweep(ctx context.Context, h *host.Host, rows []table.Row) error {
	children := make([]change.Key, len(rows))
	for i, r := range rows {
		children[i] = state.ReferenceChild(r)
	}
	items, err := h.Tables.ReadItems(ctx, "reading the children of references", children)
	if err != nil {
		return err
	}
	return h.Tables.Each(ctx, len(rows), func(ctx context.Context, i int) error {
		_, rest, _ := strings.Cut(table.TextOf(rows[i][table.PK]), "/")
		id, _, _ := strings.Cut(rest, "/")
		b, child := h.Planner.ByID(id), children[i]
		l := linkOf(h.Planner, b, child, table.Image(items[child]))
		if l.refers && state.ReferenceKey(b, l.parent, child) == table.KeyOf(rows[i]) {
			return nil
		}
		return pruneReference(ctx, h.Tables, id, rows[i])
	})
}
