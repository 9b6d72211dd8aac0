package plan

import (
	"cmp"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/effects"
	"github.com/dynamill/dynamill/internal/rules"
)

// Family is what a kind of rule plans by itself beside the ledger's moves, and the effects between which those move. Every rules.Kind
// of an engine is one. It holds no state; a binding says which rule is meant.
type Family interface {
	// Classify plans what a record asks of a rule beside the ledger's move. It reports whether that is anything.
	Classify(p *Planner, pl *Changes, b *Binding, s *Sides) bool
	// Rederive plans what an item, as it is, asks of a rule beside that move.
	Rederive(p *Planner, pl *Changes, b *Binding, it *Item)
	// Tell adds to late what an image of an item says under a rule: the parents that it names, and whether the rule cannot read it.
	Tell(late *Late, b *Binding, m *rules.Match, img change.Image)

	// Explain tells people what a rule asks for in pl beside its effects.
	Explain(pl *Changes, b *Binding, tell func(effect, write string))
}

// Feeder is a Family whose rules have effects in the ledger.
type Feeder interface {
	Family
	// Effects tells what an item of the rule's source causes, and what each effect is for: "" of the only one. An error says
	// that the rule cannot read the item, which then causes nothing under it.
	Effects(b *Binding, m *rules.Match, img change.Image, tell func(purpose string, f effects.Effect)) error
	// CanHave reports whether an item can have this effect for this purpose under a rule. A parked effect is not asked about.
	CanHave(p *Planner, b *Binding, purpose string, f effects.Effect) bool
	// Words tell people of an effect.
	Words(b *Binding, f effects.Effect) Words
}

// Asker is a Family whose rules say of an item alone what it must hold.
type Asker interface {
	Family
	// Asks reports whether an attribute of an item holds what a rule in force asks for.
	Asks(b *Binding, m *rules.Match, img change.Image, attribute string) bool
}

// Owner is an Actor with effects that only it reads.
type Owner interface {
	Actor
	// ReadEffect reads such an effect.
	ReadEffect(text string) (effects.Effect, error)
}

// Actor is a Feeder whose effects write by actions of its own.
type Actor interface {
	Feeder
	// Differ says what the next transaction of a move writes for the effect of a rule under a key.
	Differ(p *Planner, mv *Move, b *Binding, k effects.Key) []Action
}

// Words are what people are told of an effect.
type Words struct {
	What       string // what the item asks for
	Undo, Redo string // what is written to take it back, and to bring it into force
	Place      string // where it is written; an effect that follows another at one place replaces it
}

// WordsOf tell people of an effect of a rule or a locator.
func (p *Planner) WordsOf(id string, f effects.Effect) Words {
	switch f.Kind {
	case effects.Located:
		return Words{What: "being found as " + f.Group, Undo: "clear it in the state table", Redo: "write it to the state table"}
	case effects.Parked: // an effect that was read from the ledger has no reason
		return Words{What: "nothing, being unreadable: " + cmp.Or(f.Parked.Reason, f.Parked.Code), Undo: "clear it in the state table",
			Redo: "park it (" + f.Parked.Code + ")"}
	}
	if b := p.AnyByID(id); b != nil {
		if feeder, ok := b.Family.(Feeder); ok {
			return feeder.Words(b, f)
		}
	}
	return Words{What: f.String()} // nothing else is known of the rule
}

// Listed names attributes in a sentence.
func Listed(names []string) string { return strings.Join(names, ", ") }

// Item is an item that is rederived.
type Item struct {
	Key   change.Key
	Image change.Image // nil: there is none
	Match rules.Match  // of no entity: the image is of none
	Scope Scope
	Late  Late
}

// Sides is one record with the entity of each image.
type Sides struct {
	Record   *change.Record
	Index    int // of the record in its batch
	old, new rules.Match
}

func (p *Planner) sidesOf(rec *change.Record, index int) *Sides {
	return &Sides{Record: rec, Index: index, old: p.MatchOf(rec.Key, rec.Old), new: p.MatchOf(rec.Key, rec.New)}
}

// NewEntity is the entity of the new image; nil: none.
func (s *Sides) NewEntity() *rules.Entity { return s.new.Entity }

// View is a record as the rules on one entity's items see it: an image of another entity counts as none.
type View struct {
	*Sides
	Old, New           change.Image
	OldMatch, NewMatch *rules.Match
}

// As is the record as rules on an entity's items see it; false if neither image is of the entity.
func (s *Sides) As(e *rules.Entity) (View, bool) {
	v := View{Sides: s}
	if s.old.Entity == e {
		v.Old, v.OldMatch = s.Record.Old, &s.old
	}
	if s.new.Entity == e {
		v.New, v.NewMatch = s.Record.New, &s.new
	}
	return v, v.Old != nil || v.New != nil
}

// PartOf is what a family, or a RecordClassifier, planned in pl of its own, by the type in which it keeps that; at first the zero value.
func PartOf[T any](pl *Changes) *T {
	for _, part := range pl.parts {
		if found, ok := part.(*T); ok {
			return found
		}
	}
	part := new(T)
	pl.parts = append(pl.parts, part)
	return part
}
