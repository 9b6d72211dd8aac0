package children

import (
	"cmp"
	"context"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/sightings"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// Run applies the changes that rules which follow parents ask for.
type Run struct{ *host.Run }

// Row is a row by which a child is found: of its parent's collection, or a reference.
type Row = table.Row

// Apply implements host.Kind: parents go before children.
func (Following[K]) Apply(ctx context.Context, r *host.Run, pl *plan.Changes) {
	var kind K
	w, asked := Run{r}, Asked(pl)
	parents := slices.DeleteFunc(slices.Clone(asked.FanOuts.Keys()), func(id plan.ItemRule) bool { return !isOf(id.Binding, kind) })
	w.fanOuts(ctx, parents, asked)
	for id, position := range asked.Refills.All() {
		if isOf(id.Binding, kind) {
			w.Ended(ctx, 0, id.Binding, id.Key, w.refillParent(ctx, id, *position))
		}
	}
	w.fill(ctx, &asked.Fills, kind)
}

// parentsSideBySide is how many parents are written to their children at the same time. Most have few children, or none.
const parentsSideBySide = 4

// fanOuts writes changed parents to their children. Under a budget one follows the other, because each asks how much is left. Parents of
// a tree follow one another, too: what a worker reads of one parent's ancestors serves the next one. So do parents before a deadline: if
// time runs out on a slow table, the first ones are done, and the next invocation goes on behind them.
func (w Run) fanOuts(ctx context.Context, ids []plan.ItemRule, asked *Changes) {
	one := func(w Run, i int) {
		f := asked.FanOuts.Of(ids[i])
		w.Ended(ctx, f.First, ids[i].Binding, ids[i].Key, w.fanOut(ctx, ids[i], f))
	}
	_, hasDeadline := ctx.Deadline()
	if len(ids) > 1 && !hasDeadline && w.Tables.Budget.PerSecond() == 0 && !fillsAnew(ids[0].Family) {
		w.sideBySide(len(ids), parentsSideBySide, one)
		return
	}
	for i := range ids {
		one(w, i)
	}
}

// fillsAnew reports whether a family has a changed parent's children filled anew.
func fillsAnew(family any) bool {
	_, spreads := family.(Spreader)
	_, marks := family.(Marking)
	return !spreads && !marks
}

// sideBySide does n parts of the work, so many at the same time, each with a Run of its own.
func (w Run) sideBySide(n, most int, do func(part Run, i int)) {
	parts := make([]*host.Run, n)
	var all errgroup.Group
	all.SetLimit(most)
	for i := range n {
		parts[i] = &host.Run{Host: w.Host, Suffix: w.Suffix, Done: w.Done}
		all.Go(func() error {
			do(Run{parts[i]}, i)
			return nil
		})
	}
	_ = all.Wait() // of functions that return nil
	for _, part := range parts {
		w.Failed(part.Done, part.Err)
		w.Pointing = append(w.Pointing, part.Pointing...)
	}
}

// fanOut writes a changed parent to its children: the parent's position for
// the rule is raised first, then the children are looked up. A child that
// comes meanwhile reads the parent after putting its reference, so either it
// sees the new parent or the lookup sees it. What lies beyond the bound becomes a task.
func (w Run) fanOut(ctx context.Context, id plan.ItemRule, f *FanOut) error {
	if family, is := id.Family.(Marking); is {
		return family.ParentChanged(ctx, w, id, f)
	}
	spreader, spreads := id.Family.(Spreader)
	if !spreads {
		return w.refillParent(ctx, id, f.Position)
	}
	v := stamp.VersionAt(id.Epoch, f.Position)
	raised, err := w.raiseParent(ctx, id, v)
	if err != nil || !raised {
		return err // or a later change of the parent is being written already
	}
	s := &Spreading{Binding: id.Binding, Span: Span{Parent: id.Key}, Version: v, Given: f.Given}
	deleted := f.Given == nil
	if !deleted {
		w.Missing[id.Binding].Forget(id.Key.String())
	}
	atOnce := w.FanOutNow()
	referring, next, err := w.EachChildPage(ctx, id.Binding, s.Span, atOnce, func(ctx context.Context, rows []Row) (int, error) {
		return spreader.Spread(ctx, w, s, rows)
	})
	switch {
	case err != nil:
		return err
	case len(next) > 0:
		return w.PutTask(ctx, state.Task{Parent: id, At: v, Cursor: next, Children: atOnce, Referring: referring})
	case referring > 0 && !deleted:
		w.Missing[id.Binding].NoteTarget(id.Key.String())
	case referring > 0:
		w.Missing[id.Binding].NoteMissing(id.Key.String(), func(p *sightings.TargetSources) { p.SetCount(int64(referring)) })
	case referring == 0 && deleted:
		return w.retireParent(ctx, id, v)
	}
	return nil
}

// write is what is done with some rows by which children are found. It returns how many of them refer to the parent.
type write func(ctx context.Context, rows []Row) (referring int, err error)

// EachChildPage does something with a parent's first children. It returns how many of them refer to the parent, and where
// the others begin.
func (w Run) EachChildPage(ctx context.Context, b *plan.Binding, span Span, most int, do write) (referring int, next table.Row, err error) {
	found := pages{Run: w, b: b, span: span}
	for most > 0 {
		rows, err := found.take(ctx, most)
		if err != nil {
			return referring, nil, err
		}
		n, err := do(ctx, rows)
		referring, most = referring+n, most-len(rows)
		if err != nil || len(found.place) == 0 {
			return referring, nil, err
		}
	}
	return referring, found.place, nil
}

// refillParent fills all children of a parent anew, as if they had just come: of one that is rederived, whose record may be lost, or
// whose family reads the parent for each of them. Where the record's position is known, the parent's is raised to it: no earlier
// record writes what the parent was before. A parent without children is raised, too: a worker may sleep over the write of the earlier
// parent on a child that leaves and comes back, and only a raised position makes that write too old.
func (w Run) refillParent(ctx context.Context, id plan.ItemRule, position change.Position) error {
	if !position.IsZero() {
		if _, err := w.raiseParent(ctx, id, stamp.VersionAt(id.Epoch, position)); err != nil {
			return err
		}
	}
	return w.refillChildren(ctx, id, !position.IsZero())
}

// refillChildren fills a parent's first children anew. What lies beyond the bound becomes a task.
func (w Run) refillChildren(ctx context.Context, id plan.ItemRule, raised bool) error {
	at, err := w.parentAt(ctx, id)
	if err != nil {
		return err
	}
	atOnce, span := w.FanOutNow(), Span{Parent: id.Key}
	referring, next, err := w.EachChildPage(ctx, id.Binding, span, atOnce, w.refilling(id.Binding, span))
	switch {
	case err != nil:
		return err
	case len(next) > 0:
		return w.PutTask(ctx, state.Task{Parent: id, At: at, Refill: true, Cursor: next, Children: atOnce, Referring: referring})
	case referring == 0 && raised:
		parents, err := w.ReadParents(ctx, []plan.ItemRule{id})
		if err != nil || parents[id] != nil {
			return err
		}
		return w.retireParent(ctx, id, at)
	}
	return nil
}

// refilling fills children anew, and prunes references that dangle.
func (w Run) refilling(b *plan.Binding, span Span) write {
	return func(ctx context.Context, rows []Row) (int, error) {
		fill := Run{&host.Run{Host: w.Host}}
		referring := 0
		for chunk := range slices.Chunk(rows, fillsAtOnce) {
			some, refers := make([]*childFill, len(chunk)), &Fill{Link: Link{IsChild: true, Refers: true, Parent: span.Parent}}
			for i, key := range w.ChildKeys(b, chunk) {
				some[i] = &childFill{ItemRule: plan.ItemRule{Binding: b, Key: key}, Fill: refers}
			}
			err := fill.fillChunk(ctx, some)
			if err = cmp.Or(err, fill.Err); err != nil {
				return referring, err
			}
			var dangling []Row
			for i, r := range chunk {
				if some[i].departed {
					dangling = append(dangling, r)
				}
			}
			referring += len(chunk) - len(dangling)
			if err := w.PruneAll(ctx, b, dangling); err != nil {
				return referring, err
			}
		}
		return referring, nil
	}
}

// ChildKeys are the children that rows of their collection are, or that references name.
func (w Run) ChildKeys(b *plan.Binding, rows []Row) []change.Key {
	keys := make([]change.Key, len(rows))
	for i, r := range rows {
		if keys[i] = state.ReferenceChild(r); b.Rule.Collection {
			keys[i] = w.Tables.KeyOf(r)
		}
	}
	return keys
}
