package hot

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/lanes"
	"github.com/dynamill/dynamill/internal/projections/internal/groups"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/internal/tally"
)

// Changes are what hot rules ask for beside the roll-ups.
type Changes struct {
	Folds  plan.OrderedMap[plan.GroupRef, Fold]
	Unread plan.OrderedMap[plan.ItemRule, Unread]
}

// Fold is what the records of a batch change of one group, in their order.
type Fold struct {
	First   int
	Entries []Entry
}

// Entry is what one record changes of a group.
type Entry struct {
	Position   string // padded
	Created    time.Time
	Difference tally.Amount
}

// Unread is an item that a rule cannot read, or could not before.
type Unread struct {
	First    int
	Position change.Position
}

// Classify implements plan.Family: it notes what a record changes, and displays that another program wrote.
func (k *kind) Classify(p *plan.Planner, pl *plan.Changes, b *plan.Binding, s *plan.Sides) bool {
	shown := k.Family.Classify(p, pl, b, s)
	v, ok := s.As(b.Rule.Source)
	if !ok {
		return shown
	}
	f, changes := Of(b.Rule), plan.PartOf[Changes](pl)
	before, wasBad := f.read(v.OldMatch, v.Old)
	after, isBad := f.read(v.NewMatch, v.New)
	if wasBad != nil || isBad != nil {
		u := changes.Unread.OrPut(plan.ItemRule{Binding: b, Key: v.Record.Key}, Unread{First: v.Index})
		u.Position = v.Record.Position
		shown = true
	}
	differences := tally.Differences(before, after)
	for _, group := range slices.Sorted(maps.Keys(differences)) {
		fold := changes.Folds.OrPut(plan.GroupRef{Binding: b, Group: group}, Fold{First: v.Index})
		fold.Entries = append(fold.Entries, Entry{
			Position: lanes.Pad(v.Record.Position.SequenceNumber()), Created: v.Record.Created, Difference: differences[group],
		})
	}
	return shown || len(differences) > 0
}

// Rederive implements plan.Family: it looks at displays, and notes an item that the rule cannot read, or that may be parked.
// What the item adds is not looked at: a count does that for all items.
func (k *kind) Rederive(p *plan.Planner, pl *plan.Changes, b *plan.Binding, it *plan.Item) {
	k.Family.Rederive(p, pl, b, it)
	if !b.Rule.Source.HasKey(it.Key) {
		return
	}
	bad := it.Late.Unread || it.Scope == plan.Everything
	if it.Match.Entity == b.Rule.Source {
		_, why := Of(b.Rule).read(&it.Match, it.Image)
		bad = bad || why != nil
	}
	if bad {
		plan.PartOf[Changes](pl).Unread.Put(plan.ItemRule{Binding: b, Key: it.Key}, &Unread{Position: it.Late.Position})
	}
}

// Tell implements plan.Family: it tells whether an image cannot be read.
func (*kind) Tell(late *plan.Late, b *plan.Binding, m *rules.Match, img change.Image) {
	if m.Entity == b.Rule.Source {
		_, why := Of(b.Rule).read(m, img)
		late.Unread = late.Unread || why != nil
	}
}

// Explain implements plan.Family.
func (k *kind) Explain(pl *plan.Changes, b *plan.Binding, tell func(effect, write string)) {
	for g, fold := range plan.PartOf[Changes](pl).Folds.All() {
		if g.Binding != b {
			continue
		}
		sum := sumOf(fold.Entries)
		tell(fmt.Sprintf("changes %s by %s", g.Group, sum.Value), "add that to the row of the record's lane; "+groups.RollUpText(b, g.Group))
	}
	k.Family.Explain(pl, b, tell)
}
