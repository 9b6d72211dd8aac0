package plan

import (
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/rules"
)

// Planner turns records into intended changes, without any I/O.
//
// Each record is classified by itself, then runs of one item's records are taken together: a run is dropped only if all of it can be,
// and roll-up targets and old parents come from all images. To judge a run by its first and last image alone loses work
// (docs/architecture.md, "Compaction").
type Planner struct {
	*Bindings
	Incarnation string
	Epoch       int
	CanExist    func(change.Key) bool // whether the table can hold an item under a key; nil: any
	OnlyFolding bool                  // this engine applies records to hot rules only; another program applies them to the others
}

// RecordClassifier plans what a record asks for beside the ledger's moves and the families. It reports whether that is anything.
type RecordClassifier func(p *Planner, pl *Changes, s *Sides) bool

// Plan works out what records ask for. classifyLeftovers is nil only where leftovers do not matter, as in `explain`.
func (p *Planner) Plan(records []change.Record, classifyLeftovers RecordClassifier) *Changes {
	pl := &Changes{}
	for i := range records {
		p.classify(pl, &records[i], i, classifyLeftovers)
	}
	return pl
}

// classify adds to the plan what one record asks for.
func (p *Planner) classify(pl *Changes, rec *change.Record, index int, classifyLeftovers RecordClassifier) {
	s, relevant := p.sidesOf(rec, index), false
	p.see(&pl.Seen, rec.Key, rec.New, &s.new, &s.old)
	if !p.OnlyFolding {
		relevant = classifyLeftovers != nil && classifyLeftovers(p, pl, s)
		relevant = p.classifyLedger(pl, s) || relevant
	}
	for _, b := range p.InForce {
		if b.Rule.Folds() || !p.OnlyFolding {
			relevant = b.Family.Classify(p, pl, b, s) || relevant
		}
	}
	if relevant {
		pl.Relevant++
	}
}

// classifyLedger plans the move of the item's ledger entry.
func (p *Planner) classifyLedger(pl *Changes, s *Sides) bool {
	rec, before, now := s.Record, s.old.Entity, s.new.Entity
	if !FeedsLedger(before) && !FeedsLedger(now) {
		return false
	}
	if before == now && rec.Old != nil && rec.New != nil && !readsChanged(now, rec.Old, rec.New) {
		return false
	}
	old, new := p.EffectsOf(rec.Key, rec.Old), p.EffectsOf(rec.Key, rec.New)
	if old.Same(new) {
		return false
	}
	mv := pl.Moves.Of(rec.Key)
	if mv == nil {
		mv = &Move{Key: rec.Key, First: s.Index, Old: old}
		pl.Moves.Put(rec.Key, mv)
	}
	mv.New, mv.To, mv.Position = new, stamp.VersionAt(p.Epoch, rec.Position), rec.Position
	p.groups(old.WithoutElements(new), mv.touch)
	p.groups(new.WithoutElements(old), mv.touch)
	p.relocate(mv, old, new)
	return true
}

// FeedsLedger reports whether items of an entity have ledger entries.
func FeedsLedger(e *rules.Entity) bool { return e != nil && (len(e.Sources) > 0 || e.Located) }

// readsChanged reports whether a record changed an attribute on which effects of this entity depend.
func readsChanged(e *rules.Entity, old, new change.Image) bool {
	return slices.ContainsFunc(e.Sources, func(r *rules.Rule) bool { return Changed(r.Reads, old, new) }) ||
		e.Located && !e.UniqueInKey() && !old.Lookup(e.Unique).Equal(new.Lookup(e.Unique))
}

// Changed reports whether two images of an item differ in one of these attributes.
func Changed(names []string, old, new change.Image) bool {
	return slices.ContainsFunc(names, func(name string) bool { return !old.Lookup(name).Equal(new.Lookup(name)) })
}
