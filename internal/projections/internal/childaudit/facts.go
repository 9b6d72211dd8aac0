package childaudit

import (
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/children"
	"github.com/dynamill/dynamill/internal/projections/internal/effects"
	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
)

// aboutParents begins what facts about a parent and its children are about.
const aboutParents = "5"

// tagRefer is the tag of a fact that a reference tells.
const tagRefer = 'r'

// Facts implements audit.Family.
func (Auditing[K]) Facts(a *audit.Auditor, b *plan.Binding, s *audit.Subject, emit func(drift.Fact)) {
	if parent, ok := parentItself(b, s); ok {
		data := familyOf(b).Gives(a.Planner, b, s.Key, s.Image)
		if b.Rule.ByUnique {
			data += "\x00" + s.Key.String() // of several the first is the parent
		}
		emit(drift.Fact{About: audit.About(aboutParents, b.ID, parent.String()), Tag: audit.TagWant, Data: data})
	}
	if s.Match.Entity == b.Rule.Target {
		factsOfChild(a, b, s, emit)
	}
}

// parentItself is the parent that an item is for the children that refer to it.
func parentItself(b *plan.Binding, s *audit.Subject) (change.Key, bool) {
	if s.Match.Entity != b.Rule.Source || !b.Rule.ByUnique {
		return s.Key, s.Match.Entity == b.Rule.Source
	}
	value, ok, err := b.Rule.Source.UniqueValue(&s.Match, s.Image)
	return change.Key{Partition: value}, ok && err == nil
}

func factsOfChild(a *audit.Auditor, b *plan.Binding, s *audit.Subject, emit func(drift.Fact)) {
	family := familyOf(b)
	l := family.Link(b, &s.Match, s.Image)
	if l.Bad != nil {
		audit.MustBeParked(b.ID, s.Key, l.Bad.Code, emit)
	}
	if !l.Refers {
		family.Alone(a.Planner, b, s, l, emit)
		return
	}
	about := audit.About(aboutParents, b.ID, l.Parent.String())
	emit(drift.Fact{About: about, Sub: s.Key.String(), Tag: audit.TagHave, Data: family.Holds(a.Planner, b, s, l)})
}

// EffectFacts implements audit.Family: these rules feed no ledger.
func (Auditing[K]) EffectFacts(*audit.Auditor, *plan.Binding, change.Key, string, effects.Effect, func(drift.Fact)) {
}

// RowFacts implements audit.Family.
func (Auditing[K]) RowFacts(a *audit.Auditor, r audit.Row, emit func(drift.Fact)) {
	var kind K
	b := a.ByID(r.ID)
	switch {
	case b == nil || !a.InForce(b) || !host.SameFamily(b.Rule.Kind, kind):
	case r.Kind == "parent" && audit.TornPosition(r.Item):
		audit.EmitSuspect(drift.Position, r.ID, change.ParseKey(r.Name), emit)
	case r.Kind == "ref" && !b.Rule.Collection:
		emit(drift.Fact{About: audit.About(aboutParents, r.ID, r.Name), Sub: childOf(r), Tag: tagRefer})
	}
}

// childOf is the child that a reference names, as text.
func childOf(r audit.Row) string {
	if child := r.Item["child"].Text(); child != "" {
		return child
	}
	return r.Item["sk"].Text()
}

// Case implements audit.Family.
func (Auditing[K]) Case(j *audit.Judge) audit.Case {
	var kind K
	b := j.Auditor.ByID(j.ID)
	if j.Kind != aboutParents || b == nil || !host.SameFamily(b.Rule.Kind, kind) {
		return nil
	}
	return &parentCase{Judge: j, binding: b, family: familyOf(b)}
}

// parentCase judges one parent and its children: first what the parent gives, then child by child.
type parentCase struct {
	*audit.Judge
	binding  *plan.Binding
	family   Family
	want     string // what the parent gives
	known    bool
	exists   bool   // the parent
	parent   string // of those that are known by a unique value: the item that is the first of several, if there is one
	child    audit.Part
	refers   bool  // the child's reference row is there
	children int64 // that refer to the parent
}

// Add implements audit.Case.
func (c *parentCase) Add(f drift.Fact) {
	if f.Tag == audit.TagWant {
		if want, item, _ := strings.Cut(f.Data, "\x00"); !c.known || item < c.parent {
			c.known, c.exists, c.parent, c.want = true, true, item, want
		}
		return
	}
	if !c.known {
		c.known, c.want = true, c.family.Gives(c.Auditor.Planner, c.binding, c.Key(), nil)
	}
	if f.Sub != c.child.Sub {
		c.endChild()
		c.child.Sub = f.Sub
	}
	if f.Tag == audit.TagHave {
		c.child.Has, c.child.Have = true, f.Data
		c.children++
	} else {
		c.refers = true
	}
}

func (c *parentCase) endChild() {
	if c.child.Sub == "" {
		return
	}
	child := change.ParseKey(c.child.Sub)
	if c.child.Has && !c.family.Agree(c.binding, c.want, c.child.Have) {
		s := drift.Suspect{Kind: c.family.Drift(), Rule: c.ID, Item: child}
		if _, marks := c.family.(children.Marking); marks || c.binding.Rule.ByUnique {
			s.Group, s.Members = c.Text, []string{c.parent}
		}
		c.Suspect(s)
	}
	if !c.binding.Rule.Collection && c.child.Has != c.refers {
		c.Suspect(drift.Suspect{Kind: drift.Reference, Rule: c.ID, Item: child, Group: c.Text})
	}
	c.child, c.refers = audit.Part{}, false
}

// End implements audit.Case.
func (c *parentCase) End() {
	c.endChild()
	c.Pointed(children.NameOf(c.binding, c.Key()), c.children, c.exists)
}
