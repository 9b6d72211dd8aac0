package children

import (
	"cmp"
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/rules"
)

// Following is what a kind embeds whose rules follow parents to their children; K is the kind, a Family. It has the roles of a kind
// that are the same for all of them: plan.Family but for Explain, host.Kind, host.Postponer, host.Sweeper and host.Grouper.
type Following[K any] struct{}

// Changes holds the changes that rules which follow parents ask for: parents to be written on their children, and children to be filled
// from their parents.
type Changes struct {
	FanOuts plan.OrderedMap[plan.ItemRule, FanOut]
	Fills   plan.OrderedMap[plan.ItemRule, Fill]
	Refills plan.OrderedMap[plan.ItemRule, change.Position] // parents whose children are filled anew: the late record's position, if known
	Values  plan.OrderedMap[plan.GroupRef, Value]           // of parents known by a unique value that changed
}

// Asked is what a plan asks for.
func Asked(pl *plan.Changes) *Changes { return plan.PartOf[Changes](pl) }

// FanOut is a parent that changed in a way that matters to its children.
type FanOut struct {
	First    int
	Position change.Position
	Given    change.Image // the parent after the last change; nil: it was deleted, or is of another entity now
	Back     bool         // the parent was deleted and is there again, by records that are applied together
}

// Value is a unique value whose parent changed.
type Value struct {
	Deleted []change.Key // items that had it and were deleted, as records say
}

// Fill is a child that is to be filled: its reference changed, or what a rule wrote on it.
type Fill struct {
	Link
	First      int
	Position   change.Position
	Before     change.Key // the parent that the child referred to before the run
	WasBad     bool       // an image before could not be read: what was parked is cleared
	Gone       bool
	Former     []change.Key // parents that images of the run refer to
	Correction bool         // a correction of a foreign write: it counts against the bound
	Repark     bool         // park the child anew even if it is parked
}

// Classify implements plan.Family.
func (Following[K]) Classify(p *plan.Planner, pl *plan.Changes, b *plan.Binding, s *plan.Sides) bool {
	relevant := false
	if v, ok := s.As(b.Rule.Source); ok {
		relevant = classifyParent(p, pl, b, v)
	}
	if v, ok := s.As(b.Rule.Target); ok {
		relevant = classifyChild(p, pl, b, v) || relevant
	}
	return relevant
}

// classifyParent asks for a fan-out where the change matters to the parent's children.
func classifyParent(p *plan.Planner, pl *plan.Changes, b *plan.Binding, v plan.View) bool {
	if !familyOf(b).Concerns(p, b, v) {
		return false
	}
	if b.Rule.ByUnique {
		var deleted []change.Key
		if v.Record.New == nil {
			deleted = append(deleted, v.Record.Key)
		}
		AskValue(pl, b, v.OldMatch, v.Old, v.Index, deleted...)
		AskValue(pl, b, v.NewMatch, v.New, v.Index)
		return true
	}
	f := Asked(pl).FanOuts.OrPut(plan.ItemRule{Binding: b, Key: v.Record.Key}, FanOut{First: v.Index})
	f.Back = v.New != nil && (f.Back || f.Given == nil && !f.Position.IsZero())
	f.Position, f.Given = v.Record.Position, v.New
	return true
}

// classifyChild asks for a fill where the child came, its reference changed,
// or another program touched what the rule wrote.
func classifyChild(p *plan.Planner, pl *plan.Changes, b *plan.Binding, v plan.View) bool {
	family := familyOf(b)
	unread := v.Old != nil && v.New != nil && !plan.Changed(family.Reads(b), v.Old, v.New)
	if unread && plan.Untouched(b, v.Old, v.New) {
		return false
	}
	before, after := linkIn(b, v.OldMatch, v.Old), linkIn(b, v.NewMatch, v.New)
	correction := false
	if v.Old != nil && v.New != nil && before.Bad == nil && after.Bad == nil && before == after {
		var due bool
		if due, correction = family.Overwritten(p, b, v, after); !due {
			return false
		}
	}
	if before.Bad != nil && after.Bad != nil { // the rule takes its attributes off; another program may put them back
		due, overwritten := family.Overwritten(p, b, v, after)
		correction = due && overwritten
	}
	f := Asked(pl).Fills.OrPut(plan.ItemRule{Binding: b, Key: v.Record.Key}, Fill{First: v.Index, Before: before.Parent})
	f.Position, f.Gone = v.Record.Position, v.New == nil
	f.WasBad = f.WasBad || before.Bad != nil || f.Bad != nil
	f.Link = after
	f.Correction = f.Correction || correction
	for _, l := range []Link{before, after} {
		if l.Refers && !slices.Contains(f.Former, l.Parent) {
			f.Former = append(f.Former, l.Parent)
		}
	}
	return true
}

// Tell implements plan.Family: it tells the parent to which a child refers.
func (Following[K]) Tell(late *plan.Late, b *plan.Binding, m *rules.Match, img change.Image) {
	if m.Entity != b.Rule.Target {
		return
	}
	l := linkIn(b, m, img)
	late.Unread = late.Unread || l.Bad != nil
	if l.Refers && !slices.Contains(late.Former[b.ID], l.Parent) {
		if late.Former == nil {
			late.Former = map[string][]change.Key{}
		}
		late.Former[b.ID] = append(late.Former[b.ID], l.Parent)
	}
}

// Rederive implements plan.Family: it has the item filled as a child, and its children filled anew.
func (Following[K]) Rederive(_ *plan.Planner, pl *plan.Changes, b *plan.Binding, it *plan.Item) {
	switch family, marks := b.Family.(Marking); {
	case marks:
		family.RederiveParent(pl, b, it)
	case it.Scope != plan.Everything || !b.Rule.Source.HasKey(it.Key): // not looked at as a parent, or never one
	case !b.Rule.ByUnique: // there or gone
		Asked(pl).Refills.Put(plan.ItemRule{Binding: b, Key: it.Key}, &it.Late.Position)
	case it.Match.Entity == b.Rule.Source:
		AskValue(pl, b, &it.Match, it.Image, 0)
	}
	if b.Rule.Target.HasKey(it.Key) {
		fill(Asked(pl), b, it)
	}
}

// fill plans the filling of an item that is a child, or about which late records tell that
// it was one: its references go, and what was parked.
func fill(asked *Changes, b *plan.Binding, it *plan.Item) {
	f := &Fill{
		Position: it.Late.Position, Gone: it.Match.Entity != b.Rule.Target, WasBad: it.Late.Unread, Former: it.Late.Former[b.ID],
		Repark: it.Scope == plan.Everything,
	}
	due := f.WasBad || len(f.Former) > 0
	if !f.Gone {
		f.Link = linkIn(b, &it.Match, it.Image)
		due = due || f.Refers || f.Bad != nil || familyOf(b).Needs(b, it.Image)
	}
	if due {
		asked.Fills.Put(plan.ItemRule{Binding: b, Key: it.Key}, f)
	}
}

// Told are the words in which a family tells people what a rule asks for.
type Told struct {
	Changed  string // what happened to a parent: "name changed"
	FanOut   string // what is done then: "set name on every Comment"
	Linked   string // what is done to a child that refers to a parent: "set name from it"
	Unlinked string // to one that refers to none: "take name off"
	Bad      string // what is wrong with a child whose link is bad: "cannot name its parent"
}

// Explain tells people what a rule asks for.
func (t Told) Explain(pl *plan.Changes, b *plan.Binding, tell func(effect, write string)) {
	asked := Asked(pl)
	for _, value := range changedValues(pl, b) {
		tell("the "+b.Rule.Source.Name+" found as "+value+" changed", t.FanOut+" that names it")
	}
	for id, f := range asked.FanOuts.All() {
		if id.Binding != b {
			continue
		}
		write := t.FanOut + " of " + id.Key.String()
		if f.Given == nil {
			write += ", which is gone"
		}
		tell(t.Changed, write)
	}
	for id, f := range asked.Fills.All() {
		switch {
		case id.Binding != b:
		case f.Bad != nil:
			tell(cmp.Or(t.Bad, "cannot name its parent")+": "+f.Bad.Reason, "park it ("+f.Bad.Code+")")
		case f.Gone:
			tell("the child is gone", "drop its reference")
		case !f.Refers:
			tell("refers to no parent", t.Unlinked)
		default:
			tell("refers to "+NameOf(b, f.Parent), t.Linked)
		}
	}
}
