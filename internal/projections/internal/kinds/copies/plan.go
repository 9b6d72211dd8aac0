package copies

import (
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/rules"
)

// Changes are what copy rules ask for: parents to be written on their children, and
// children to be filled from their parents.
type Changes struct {
	FanOuts plan.OrderedMap[plan.ItemRule, FanOut]
	Fills   plan.OrderedMap[plan.ItemRule, Fill]
	Refills plan.OrderedMap[plan.ItemRule, change.Position] // parents whose children are filled anew: the late record's position, if known
	Values  plan.OrderedMap[plan.GroupRef, struct{}]        // of parents known by a unique value that changed
}

// FanOut is a parent whose copied attributes changed.
type FanOut struct {
	First    int
	Position change.Position
	Values   []change.Value
	Deleted  bool
}

// Fill is a child whose reference or copies changed.
type Fill struct {
	link
	First     int
	Position  change.Position
	Before    change.Key // the parent that the child referred to before the run
	WasBad    bool       // an image before could not be read: what was parked is cleared
	Gone      bool
	Former    []change.Key // parents that images of the run refer to
	Contested bool
	Repark    bool // park the child anew even if it is parked
}

// Classify implements plan.Family.
func (kind) Classify(p *plan.Planner, pl *plan.Changes, b *plan.Binding, s *plan.Sides) bool {
	relevant := false
	if v, ok := s.As(b.Rule.Source); ok {
		relevant = classifyParent(pl, b, v)
	}
	if v, ok := s.As(b.Rule.Target); ok {
		relevant = classifyChild(p, pl, b, v) || relevant
	}
	return relevant
}

// classifyParent asks for a fan-out where a copied attribute changed.
func classifyParent(pl *plan.Changes, b *plan.Binding, v plan.View) bool {
	if v.Old != nil && v.New != nil && !plan.Changed(b.Rule.Reads, v.Old, v.New) {
		return false
	}
	before, after := Of(b.Rule).Given(v.Old), Of(b.Rule).Given(v.New)
	if slices.EqualFunc(before, after, change.Value.Equal) {
		return false
	}
	if b.Rule.ByUnique {
		askValue(pl, b, v.OldMatch, v.Old, v.Index)
		askValue(pl, b, v.NewMatch, v.New, v.Index)
		return true
	}
	f := plan.PartOf[Changes](pl).FanOuts.OrPut(plan.ItemRule{Binding: b, Key: v.Record.Key}, FanOut{First: v.Index})
	f.Position, f.Values, f.Deleted = v.Record.Position, after, v.New == nil
	return true
}

// classifyChild asks for a fill where the child came, its reference changed,
// or another program wrote its copies.
func classifyChild(p *plan.Planner, pl *plan.Changes, b *plan.Binding, v plan.View) bool {
	both := v.Old != nil && v.New != nil
	if both && !plan.Changed(b.Rule.JoinReads, v.Old, v.New) && plan.Untouched(b, v.Old, v.New) {
		return false
	}
	before, after := linkIn(b.Rule, v.OldMatch, v.Old), linkIn(b.Rule, v.NewMatch, v.New)
	same := both && before.bad == nil && after.bad == nil && before == after
	context := stamp.Context(p.Incarnation, v.Record.Key, after.parent.String())
	if same && (plan.Untouched(b, v.Old, v.New) || after.refers && !plan.Foreign(b, context, v.Old, v.New)) {
		return false
	}
	if same && !after.refers && !plan.Changed(b.Rule.Writes, v.Old, v.New) {
		return false // our own removal of the stamp
	}
	f := plan.PartOf[Changes](pl).Fills.OrPut(plan.ItemRule{Binding: b, Key: v.Record.Key}, Fill{First: v.Index, Before: before.parent})
	f.Position, f.Gone = v.Record.Position, v.New == nil
	f.WasBad = f.WasBad || before.bad != nil || f.bad != nil
	f.link = after
	f.Contested = f.Contested || same && (after.refers && plan.Stamped(b, context, v.Old) || !after.refers && plan.Holds(b, v.Old))
	for _, l := range []link{before, after} {
		if l.refers && !slices.Contains(f.Former, l.parent) {
			f.Former = append(f.Former, l.parent)
		}
	}
	return true
}

// link is how an item refers to its parent.
type link struct {
	isChild bool // the item is there, and of the children's entity
	refers  bool
	parent  change.Key
	bad     *rules.ItemError // why the item cannot name its parent
}

// linkIn is the link in an image of a child.
func linkIn(r *rules.Rule, m *rules.Match, img change.Image) link {
	if img == nil {
		return link{}
	}
	key, ok, err := r.ParentKey(m, img)
	if err != nil {
		return link{isChild: true, bad: plan.AsItemError(err)}
	}
	return link{isChild: true, refers: ok, parent: key}
}

// Tell implements plan.Family: it tells the parent to which a child refers.
func (kind) Tell(late *plan.Late, b *plan.Binding, m *rules.Match, img change.Image) {
	if m.Entity != b.Rule.Target {
		return
	}
	l := linkIn(b.Rule, m, img)
	late.Unread = late.Unread || l.bad != nil
	if l.refers && !slices.Contains(late.Former[b.ID], l.parent) {
		if late.Former == nil {
			late.Former = map[string][]change.Key{}
		}
		late.Former[b.ID] = append(late.Former[b.ID], l.parent)
	}
}

// Rederive implements plan.Family: it has the item filled as a child, and its children filled anew.
func (kind) Rederive(_ *plan.Planner, pl *plan.Changes, b *plan.Binding, it *plan.Item) {
	asked := plan.PartOf[Changes](pl)
	switch parent := it.Scope == plan.Everything && b.Rule.Source.HasKey(it.Key); { // there or gone
	case parent && b.Rule.ByUnique:
		if it.Match.Entity == b.Rule.Source {
			askValue(pl, b, &it.Match, it.Image, 0)
		}
	case parent:
		asked.Refills.Put(plan.ItemRule{Binding: b, Key: it.Key}, &it.Late.Position)
	}
	if b.Rule.Target.HasKey(it.Key) {
		fill(asked, b, it)
	}
}

// fill plans the filling of an item that is a child, or of which late records tell that
// it was one: its references go, and what was parked.
func fill(asked *Changes, b *plan.Binding, it *plan.Item) {
	f := &Fill{
		Position: it.Late.Position, Gone: it.Match.Entity != b.Rule.Target, WasBad: it.Late.Unread, Former: it.Late.Former[b.ID],
		Repark: it.Scope == plan.Everything,
	}
	due := f.WasBad || len(f.Former) > 0
	if !f.Gone {
		f.link = linkIn(b.Rule, &it.Match, it.Image)
		due = due || f.refers || f.bad != nil || plan.Holds(b, it.Image)
	}
	if due {
		asked.Fills.Put(plan.ItemRule{Binding: b, Key: it.Key}, f)
	}
}

// Explain implements plan.Family.
func (kind) Explain(pl *plan.Changes, b *plan.Binding, tell func(effect, write string)) {
	asked := plan.PartOf[Changes](pl)
	writes := plan.Listed(b.Rule.Writes)
	for _, value := range changedValues(pl, b) {
		tell("the "+b.Rule.Source.Name+" found as "+value+" changed", "set "+writes+" on every "+b.Rule.Target.Name+" that names it")
	}
	for id, f := range asked.FanOuts.All() {
		if id.Binding != b {
			continue
		}
		write := "set " + writes + " on every " + b.Rule.Target.Name + " of " + id.Key.String()
		if f.Deleted {
			write += ", which is gone"
		}
		tell(plan.Listed(b.Rule.Reads)+" changed", write)
	}
	for id, f := range asked.Fills.All() {
		switch {
		case id.Binding != b:
		case f.bad != nil:
			tell("cannot name its parent: "+f.bad.Reason, "park it ("+f.bad.Code+")")
		case f.Gone:
			tell("the child is gone", "drop its reference")
		case !f.refers:
			tell("refers to no parent", "take "+writes+" off")
		default:
			tell("refers to "+nameOf(b, f.parent), "set "+writes+" from it")
		}
	}
}
