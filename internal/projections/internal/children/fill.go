package children

import (
	"context"
	"slices"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/sightings"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/projections/internal/target"
	"github.com/dynamill/dynamill/internal/rules"
)

const (
	fillsAtOnce     = 50 // children that are filled with the same two reads
	fillsSideBySide = 4  // so many times that number
)

// childFill is a child that is filled.
type childFill struct {
	plan.ItemRule
	*Fill
	referred bool                     // its reference, or what is parked of it, is there
	answer   *ddb.BatchStatementError // to the statement that was to insert the reference; nil: there was none
	moved    bool                     // it moved while it was written
	departed bool                     // it is gone or refers elsewhere by now: a later record says so
}

// parentID is the parent to which the child refers under the rule.
func (ch *childFill) parentID() plan.ItemRule {
	return plan.ItemRule{Binding: ch.Binding, Key: ch.Parent}
}

// fill brings children to what their parents say.
func (w Run) fill(ctx context.Context, asked *plan.OrderedMap[plan.ItemRule, Fill], kind any) {
	var children []*childFill
	for id, f := range asked.All() {
		if isOf(id.Binding, kind) {
			children = append(children, &childFill{ItemRule: id, Fill: f})
		}
	}
	chunks := slices.Collect(slices.Chunk(children, fillsAtOnce))
	w.sideBySide(len(chunks), fillsSideBySide, func(part Run, i int) {
		part.Failed(chunks[i][0].First, part.fillSome(ctx, chunks[i]))
	})
}

// fillSome fills some children: reference first, then the parent's position and the child's stamp, then the parent, then
// the write.
func (w Run) fillSome(ctx context.Context, some []*childFill) error {
	if err := w.findReferred(ctx, some); err != nil {
		return err
	}
	w.referAll(ctx, some)
	open := slices.DeleteFunc(slices.Clone(some), func(ch *childFill) bool { return !ch.Refers })
	if err := w.fillOpen(ctx, open); err != nil {
		return err
	}
	for _, ch := range open {
		if !ch.departed {
			w.Pointing = append(w.Pointing, plan.GroupRef{Binding: ch.Binding, Group: NameOf(ch.Binding, ch.Parent)})
		}
	}
	w.onChildren(ctx, some, w.afterFill)
	return nil
}

// fillOpen fills children that refer to a parent.
func (w Run) fillOpen(ctx context.Context, open []*childFill) error {
	if len(open) == 0 {
		return nil
	}
	if family, is := open[0].Family.(Marking); is {
		return w.removeMarked(ctx, family, open)
	}
	return w.fillChunk(ctx, open)
}

// findReferred finds children, filled without a record, whose reference or parked record
// is there already: putting it again would change nothing.
func (w Run) findReferred(ctx context.Context, some []*childFill) error {
	var asked []*childFill
	var keys []table.Key
	for _, ch := range some {
		var key table.Key
		switch {
		case !ch.Position.IsZero() || ch.Repark || ch.WasBad:
			continue
		case ch.Bad != nil:
			key = state.ParkedItemKey(ch.ID, ch.Key)
		case ch.Refers && !ch.Rule.Collection:
			key = state.ReferenceKey(ch.Binding, ch.Parent, ch.Key)
		default:
			continue
		}
		asked, keys = append(asked, ch), append(keys, key)
	}
	rows, err := w.Tables.ReadState(ctx, "reading references", keys)
	for i, ch := range asked {
		row := rows[keys[i]]
		ch.referred = row != nil && (ch.Bad == nil || table.TextOf(row["code"]) == ch.Bad.Code)
	}
	return err
}

// onChildren takes one step with several children at once.
func (w Run) onChildren(ctx context.Context, some []*childFill, step func(context.Context, *childFill) error) {
	errs := w.Tables.Every(ctx, len(some), func(ctx context.Context, i int) error { return step(ctx, some[i]) })
	for i, ch := range some {
		w.Ended(ctx, ch.First, ch.Binding, ch.Key, errs[i])
	}
}

// referAll puts the references of several children: in batches those that are probably new.
func (w Run) referAll(ctx context.Context, some []*childFill) {
	added := slices.DeleteFunc(slices.Clone(some), func(ch *childFill) bool {
		isNew := ch.Refers && ch.Parent != ch.Before && !ch.Repark
		return !isNew || ch.WasBad || ch.Rule.Collection || ch.referred
	})
	if w.Tables.Batches(table.MayInsert, len(added)) {
		batches := slices.Collect(slices.Chunk(added, table.StatementsMax))
		_ = w.Tables.Every(ctx, len(batches), func(ctx context.Context, i int) error {
			return w.insertReferences(ctx, batches[i]) // each of them goes out alone, and fails or succeeds by itself
		})
	}
	w.onChildren(ctx, some, w.refer)
}

// insertReferences puts references that are not there yet.
func (w Run) insertReferences(ctx context.Context, some []*childFill) error {
	statements, owners := make([]ddb.BatchStatementRequest, len(some)), make([]string, len(some))
	for i, ch := range some {
		statements[i] = w.Tables.InsertStatement(state.ReferenceRow(ch.Binding, ch.Parent, ch.Key, stamp.VersionAt(ch.Epoch, ch.Position)))
		owners[i] = ch.ID
	}
	responses, err := w.Tables.Statements(ctx, table.MayInsert, "putting references", owners, statements)
	for i, r := range responses {
		some[i].referred, some[i].answer = r.Error == nil, r.Error
	}
	return err
}

// refer puts the child's reference, or parks a child whose parent cannot be named, unless that is there already.
func (w Run) refer(ctx context.Context, ch *childFill) error {
	if ch.referred {
		return nil
	}
	if ch.Bad != nil || ch.WasBad {
		err := w.ParkUnread(ctx, ch.ItemRule, ch.Position, familyOf(ch.Binding).Reads(ch.Binding), func(child change.Image) *rules.ItemError {
			return LinkOf(w.Planner, ch.Binding, ch.Key, child).Bad
		})
		if err != nil {
			return err
		}
	}
	if !ch.Refers || ch.Rule.Collection {
		return nil
	}
	at := stamp.VersionAt(ch.Epoch, ch.Position)
	row, c := state.ReferenceRow(ch.Binding, ch.Parent, ch.Key, at), table.NewExpression()
	condition := state.SeenBefore(c, ch.Binding, "<", at)
	written, err := w.Tables.PutState(ctx, ch.ID, "putting a reference to "+ch.Parent.String(), row, condition, c)
	if written {
		w.Tables.NoteWrittenAlone(ctx, table.MayInsert, ch.answer)
	}
	return err
}

// afterFill drops the references to parents that the child referred to before,
// and brings a child without a parent to what it must hold then.
func (w Run) afterFill(ctx context.Context, ch *childFill) error {
	if !ch.Refers && !ch.Gone {
		if err := familyOf(ch.Binding).Unlinked(ctx, w.Run, ch.ItemRule, ch.Fill); err != nil {
			return err
		}
	}
	for _, parent := range ch.Former {
		if ch.Refers && parent == ch.Parent {
			continue
		}
		w.Missing[ch.Binding].AdjustSources(NameOf(ch.Binding, parent), func(p *sightings.TargetSources) { p.Remove(ch.Key) })
		if ch.Rule.Collection {
			continue
		}
		c := table.NewExpression()
		condition := c.Format("%n < %v", "a", table.Text(string(stamp.VersionAt(ch.Epoch, ch.Position))))
		key := state.ReferenceKey(ch.Binding, parent, ch.Key)
		if err := w.Tables.DeleteState(ctx, ch.ID, "dropping a reference to "+parent.String(), key, condition, c); err != nil {
			return err
		}
	}
	return nil
}

// fillChunk reads positions and children, then parents, then writes.
func (w Run) fillChunk(ctx context.Context, open []*childFill) error {
	counted := false // the corrections
	return table.Contend(ctx, "filling children", func() (table.Round, error) {
		var positions []table.Key
		var keys []change.Key
		var parents []plan.ItemRule
		for _, ch := range open {
			positions = append(positions, state.ParentKey(ch.Binding, ch.Parent))
			keys, parents = append(keys, ch.Key), append(parents, ch.parentID())
		}
		items, at, err := w.Tables.ReadBoth(ctx, "reading children and their parents' positions", keys, positions)
		if err != nil {
			return table.Lost, err
		}
		sources, err := w.ReadParents(ctx, parents)
		if err != nil {
			return table.Lost, err
		}
		open = slices.DeleteFunc(slices.Clone(open), func(ch *childFill) bool {
			l := LinkOf(w.Planner, ch.Binding, ch.Key, table.Image(items[ch.Key]))
			ch.departed = !l.Refers || l.Parent != ch.Parent
			return ch.departed
		})
		errs := w.Targets.Every(ctx, len(open), func(ctx context.Context, to target.Sender, i int) error {
			ch := open[i]
			v := state.ParentAt(ch.Binding, at[state.ParentKey(ch.Binding, ch.Parent)])
			parent := table.Image(sources[ch.parentID()])
			return w.fillChild(ctx, to, ch, items[ch.Key], parent, v, ch.Correction && !counted)
		})
		counted = true
		for i, ch := range open {
			w.Ended(ctx, ch.First, ch.Binding, ch.Key, errs[i])
		}
		open = slices.DeleteFunc(open, func(ch *childFill) bool { return !ch.moved })
		return table.FinishedIf(len(open) == 0), nil
	})
}

// fillChild has the family write a parent, as it was read, on one child. The parent is at least
// as new as its position.
func (w Run) fillChild(ctx context.Context, to target.Sender, ch *childFill, child change.Item, parent change.Image, at stamp.Version,
	correction bool) error {
	ch.moved = false
	if name := NameOf(ch.Binding, ch.Parent); parent != nil {
		w.Missing[ch.Binding].NoteTarget(name)
	} else {
		w.Missing[ch.Binding].NoteMissing(name, func(p *sightings.TargetSources) { p.Add(ch.Key) })
	}
	if at == "" {
		at = stamp.VersionAt(ch.Epoch, change.Position{})
	}
	f := &Filling{ItemRule: ch.ItemRule, Parent: ch.Parent, Child: child, Given: parent, At: at, Correction: correction, Repark: ch.Repark}
	ended, err := familyOf(ch.Binding).Write(ctx, w.Run, to, f)
	ch.moved = ended == target.RaceLost && err == nil
	return err
}
