package mirrors

import (
	"maps"
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/effects"
	"github.com/dynamill/dynamill/internal/projections/internal/leftovers"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/rules"
)

// heals are what mirror rules ask for beside the ledger: mirror items to be healed.
type heals = plan.OrderedMap[plan.ItemRule, Heal]

// Heal is a mirror item that another program changed, or that came or went.
type Heal struct {
	First      int
	Last       change.Image // nil: deleted
	Deleted    bool         // a record says that another program deleted it
	Expired    bool         // a record says that DynamoDB's time to live deleted it
	Freed      bool         // a record says that an item of another entity, for which the rule may be parked, has gone
	Repark     bool         // park the rule on it anew even if it is parked
	Correction bool         // a correction of a foreign write: it counts against the bound
}

// Effects implements plan.Feeder: a source, or each element of its list, asks for an item. Of elements that a key reads
// alike, the first one gives the item.
func (kind) Effects(b *plan.Binding, m *rules.Match, img change.Image, tell func(string, effects.Effect)) error {
	known := map[string]bool{}
	return b.Rule.ForEach(m, img, func(_ string, m *rules.Match) error {
		item, ok, err := Of(b.Rule).Item(m, img)
		if err != nil || !ok {
			return err
		}
		if what := b.Rule.ElementAt(item.Key); !known[what] {
			known[what] = true
			it := mirrorItem{content: item.Attributes, target: item.Key, digest: contentDigest(b.Rule, change.Item(item.Attributes))}
			tell(what, it.effect())
		}
		return nil
	})
}

// keyAt is the effect key of the item that a rule makes at a target.
func keyAt(b *plan.Binding, target change.Key) effects.Key {
	return effects.Key{ID: b.ID, For: effects.Purpose(b.Rule.ElementAt(target))}
}

// contentDigest digests the values that a rule writes on an item all together, for the ledger. A stamp digests them one by one.
func contentDigest(r *rules.Rule, img change.Image) string {
	return stamp.ShortDigest(stamp.DigestDigits, r.ByName(plan.ValuesOf(r, img))...)
}

// CanHave implements plan.Feeder.
func (kind) CanHave(p *plan.Planner, b *plan.Binding, what string, f effects.Effect) bool {
	it, ok := itemOf(f)
	return ok && what == keyAt(b, it.target).For && p.IsTarget(b.Rule, it.target)
}

// Classify implements plan.Family: it asks for the healing of a mirror item that another
// program wrote or deleted. It goes by the key alone: an item of another entity, or of
// none, may stand where the mirror item belongs, and may go away.
func (kind) Classify(p *plan.Planner, pl *plan.Changes, b *plan.Binding, s *plan.Sides) bool {
	rec := s.Record
	if !b.Rule.Target.HasKey(rec.Key) {
		return false
	}
	context := stamp.Context(p.Incarnation, rec.Key, "")
	freed := occupies(b, rec.Key, rec.Old) && !occupies(b, rec.Key, rec.New)
	if rec.Old != nil && rec.New != nil && !freed {
		// A stamp on an item that had none may be ours or put back with a former
		// state of the item.
		ours := plan.Stamped(b, context, rec.Old) && !plan.Foreign(b, context, rec.Old, rec.New)
		kept := func() bool { return plan.Stamped(b, context, rec.New) || !leftovers.HasLostStamp(p, rec.Key, rec.New) }
		if ours || plan.Untouched(b, rec.Old, rec.New) && kept() {
			return false
		}
	}
	h := plan.PartOf[heals](pl).OrPut(plan.ItemRule{Binding: b, Key: rec.Key}, Heal{First: s.Index})
	expired := rec.Expired && plan.Stamped(b, context, rec.Old) // it was the mirror item, and none that stood in its way
	h.Last, h.Expired, h.Deleted = rec.New, rec.New == nil && expired, rec.New == nil && !expired
	h.Correction = h.Correction || plan.Stamped(b, context, rec.Old) && !expired
	h.Freed = h.Freed || freed
	return true
}

// Rederive implements plan.Family: it has an item healed that the rule can give, whatever
// it is now. What tells the mirror's entity may have been overwritten.
func (kind) Rederive(_ *plan.Planner, pl *plan.Changes, b *plan.Binding, it *plan.Item) {
	if it.Scope >= plan.Itself && b.Rule.Target.HasKey(it.Key) {
		h := &Heal{Last: it.Image, Repark: it.Scope == plan.Everything}
		plan.PartOf[heals](pl).Put(plan.ItemRule{Binding: b, Key: it.Key}, h)
	}
}

// Tell implements plan.Family: an image says nothing more than its effects.
func (kind) Tell(*plan.Late, *plan.Binding, *rules.Match, change.Image) {}

// Words implements plan.Feeder.
func (kind) Words(_ *plan.Binding, f effects.Effect) plan.Words {
	it, _ := itemOf(f)
	what := "mirror item " + f.Group
	if it.expired {
		what += ", which DynamoDB's time to live deleted"
	}
	return plan.Words{
		What: what, Undo: "delete " + f.Group,
		Redo: "set " + plan.Listed(slices.Sorted(maps.Keys(it.content))) + " on " + f.Group, Place: f.Group,
	}
}

// Explain implements plan.Family.
func (kind) Explain(pl *plan.Changes, b *plan.Binding, tell func(effect, write string)) {
	for id := range plan.PartOf[heals](pl).All() {
		if id.Binding == b {
			tell("its mirror item was written by another program or by the engine",
				"check "+id.Key.String()+" against the ledger, and restore it if it differs")
		}
	}
}
