package trees

import (
	"context"
	"slices"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/children"
	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/projections/internal/target"
)

// run applies the changes that tree rules ask for.
type run struct {
	*host.Run
	again map[change.Key]bool // items of cycles that this run has parked again
}

// Apply implements host.Kind. What is parked of an item is looked at before the item is filled: a record may tell that the item left a
// cycle. So is what is parked of a parent that the item had: the item's own row may tell of something else by now.
func (k kind) Apply(ctx context.Context, r *host.Run, pl *plan.Changes) {
	w, fills := run{r, map[change.Key]bool{}}, &children.Asked(pl).Fills
	var ids []plan.ItemRule
	var keys []table.Key
	told := map[plan.ItemRule][]table.Key{}
	for id, f := range fills.All() {
		if host.SameFamily(id.Rule.Kind, k) {
			ids, told[id] = append(ids, id), rowsOn(id, f)
			keys = append(keys, told[id]...)
		}
	}
	rows, err := w.Tables.ReadState(ctx, "reading what is parked", keys)
	var deep []plan.ItemRule
	for _, id := range ids {
		f := fills.Of(id)
		if err != nil {
			w.Failed(f.First, err)
		}
		var seen []string
		for _, at := range told[id] {
			parking := table.TextOf(rows[at]["parking"])
			if tellsCycle(rows[at], id.Key) && !slices.Contains(seen, parking) {
				seen = append(seen, parking)
				w.Ended(ctx, f.First, id.Binding, id.Key, w.examine(ctx, id, at, f.Repark))
			}
		}
		if table.TextOf(rows[parkedKey(id)]["code"]) == codeTooDeep {
			deep = append(deep, id)
		}
	}
	k.Following.Apply(ctx, r, pl)
	for _, id := range deep {
		f := fills.Of(id)
		w.Ended(ctx, f.First, id.Binding, id.Key, w.parkDeep(ctx, id, f.Repark))
	}
}

// rowsOn are where it may be parked that an item is, or was, in a cycle.
func rowsOn(id plan.ItemRule, f *children.Fill) []table.Key {
	keys := []table.Key{parkedKey(id)}
	for _, parent := range f.Former {
		if !f.Refers || parent != f.Parent {
			keys = append(keys, parkedKey(plan.ItemRule{Binding: id.Binding, Key: parent}))
		}
	}
	return keys
}

// Write implements children.Family.
func (kind) Write(ctx context.Context, r *host.Run, to target.Sender, f *children.Filling) (target.Outcome, error) {
	w := run{Run: r}
	m := w.Planner.MatchOf(f.Key, f.Child)
	parent := viewOf(w.Planner, f.Binding, f.Parent, f.Given)
	if parent.exists && !parent.known {
		// A worker is about to write the parent, and its record comes by the children. Only in a cycle each would wait for the other.
		waits, err := w.waits(ctx, f.ItemRule, f.Child)
		if err != nil || waits {
			return target.Written, err
		}
		parent = view{exists: true, known: true}
	}
	o := ownOf(f.Binding, &m, f.Child).below(f.Binding, parent)
	if o.depth == none {
		if err := w.examine(ctx, f.ItemRule, parkedKey(f.ItemRule), false); err != nil {
			return target.Written, err
		}
	}
	return w.writeOutcome(ctx, to, f, o)
}

// Unlinked implements children.Family.
func (kind) Unlinked(ctx context.Context, r *host.Run, id plan.ItemRule, fill *children.Fill) error {
	w, correction := run{Run: r}, fill.Correction
	return table.Contend(ctx, "writing "+id.Key.String(), func() (table.Round, error) {
		items, err := w.Tables.ReadItems(ctx, "reading "+id.Key.String(), []change.Key{id.Key})
		item := items[id.Key]
		l := children.LinkOf(w.Planner, id.Binding, id.Key, table.Image(item))
		if err != nil || !l.IsChild || l.Refers {
			return table.Finished, err
		}
		m := w.Planner.MatchOf(id.Key, item)
		f := &children.Filling{ItemRule: id, Child: item, At: stamp.VersionAt(id.Epoch, change.Position{}), Correction: correction}
		correction = false
		ended, err := w.writeOutcome(ctx, w.Targets, f, outcomeWithoutParent(id.Binding, l, &m, item))
		return table.FinishedIf(ended != target.RaceLost), err
	})
}

// writeOutcome brings an item to an outcome. It is later than what a fan-out of the parent's position wrote, and no write has the version
// of another.
func (w run) writeOutcome(ctx context.Context, to target.Sender, f *children.Filling, o outcome) (target.Outcome, error) {
	l := children.LinkOf(w.Planner, f.Binding, f.Key, f.Child)
	s := stamp.Stamp{Context: contextOf(w.Planner, f.Key, l), Version: f.At.Rederived(1), Digest: o.digest(f.Binding)}
	was := viewIn(w.Planner, f.Binding, f.Key, f.Child, l)
	if before, ok := stamp.Read(f.Child.Lookup(f.Stamp), s.Context); ok {
		if before.Version >= f.At && was.known && was.outcome.equal(o) {
			return target.Written, w.parkIfDeep(ctx, f, o)
		}
		s.Version = max(s.Version, before.Version.NextRederived())
	}
	if allowed, err := w.MayHeal(ctx, f.Binding, f.Key, f.Correction); err != nil || !allowed {
		return target.Written, err
	}
	t := target.On(f.Binding, "writing "+f.Key.String(), f.Key)
	t.Stamp(s)
	for i, v := range o.values(f.Binding) {
		t.Put(f.Rule.Writes[i], v)
	}
	children.StillChild(w.Tables.Reader, t, f.Child)
	var ended target.Outcome
	var err error
	if was.known && was.depth == tooDeep && o.depth != tooDeep {
		ended, err = w.writeNoLongerTooDeep(ctx, f, t)
	} else {
		t.LooksAgain = true
		ended, _, err = to.Write(ctx, t)
	}
	switch {
	case ended == target.Refused:
		return w.refused(ctx, to, f, o, err)
	case ended == target.Written && err == nil:
		w.Counters.Children.Add(1)
		err = w.parkIfDeep(ctx, f, o)
	}
	return ended, err
}

// refused parks an item whose write DynamoDB refuses. In a cycle, it makes the item show nothing instead: otherwise paths would grow until
// DynamoDB refuses them, and no item would come to show nothing.
func (w run) refused(ctx context.Context, to target.Sender, f *children.Filling, o outcome, refusal error) (target.Outcome, error) {
	_, ends, err := w.walkUp(ctx, walk{ItemRule: f.ItemRule, item: f.Child, most: cycleMax, through: true})
	switch {
	case err != nil:
		return target.RaceLost, err
	case ends == atStart && o.shows():
		counted := *f
		counted.Correction = false // this correction was counted already
		return w.writeOutcome(ctx, to, &counted, outcome{})
	}
	return target.Refused, w.ParkRefused(ctx, f.Binding, f.Key, refusal)
}

// writeNoLongerTooDeep writes an item that is too deep no more, and clears what is parked of it in the same transaction: nothing but the
// item tells that something is. If nothing is, the transaction checks that: another worker may be about to park the item.
func (w run) writeNoLongerTooDeep(ctx context.Context, f *children.Filling, t *target.Write) (target.Outcome, error) {
	key := parkedKey(f.ItemRule)
	rows, err := w.Tables.ReadState(ctx, "reading what is parked", []table.Key{key})
	if err != nil {
		return target.RaceLost, err
	}
	c := table.NewExpression()
	part, asRead := w.Tables.CheckPart, table.Whole(c.SameAs(rows[key], "parking"))
	if table.TextOf(rows[key]["code"]) == codeTooDeep {
		part = w.Tables.DeletePart
	}
	parts := []ddb.TransactWriteItem{t.InTransaction(w.Tables.Reader), part(key, asRead, c)}
	err = w.Tables.Transact(ctx, "writing "+f.Key.String(), []string{f.ID}, parts)
	switch {
	case table.LostRace(err):
		return target.RaceLost, nil
	case table.Refusal(err) != "":
		return target.Refused, err
	}
	return target.Written, err
}

func (w run) parkIfDeep(ctx context.Context, f *children.Filling, o outcome) error {
	if o.depth != tooDeep {
		return nil
	}
	return w.parkDeep(ctx, f.ItemRule, f.Repark)
}

func parkedKey(id plan.ItemRule) table.Key { return state.ParkedItemKey(id.ID, id.Key) }
