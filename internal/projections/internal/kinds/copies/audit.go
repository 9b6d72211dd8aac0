package copies

import (
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
)

// aboutCopies begins what facts about a parent and its children are about.
const aboutCopies = "5"

// tagRefer is the tag of a fact that a reference tells.
const tagRefer = 'r'

// Facts implements audit.Family.
func (kind) Facts(_ *audit.Auditor, b *plan.Binding, s *audit.Subject, emit func(drift.Fact)) {
	if parent, ok := parentItself(b, s); ok {
		data := change.Digest(Of(b.Rule).Given(s.Image)...)
		if b.Rule.ByUnique {
			data += "\x00" + s.Key.String() // of several the first gives the copies
		}
		emit(drift.Fact{About: audit.About(aboutCopies, b.ID, parent.String()), Tag: audit.TagWant, Data: data})
	}
	if s.Match.Entity == b.Rule.Target {
		factOfChild(b, s, emit)
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

func factOfChild(b *plan.Binding, s *audit.Subject, emit func(drift.Fact)) {
	switch l := linkIn(b.Rule, &s.Match, s.Image); {
	case l.bad != nil:
		audit.MustBeParked(b.ID, s.Key, l.bad.Code, emit)
	case l.refers:
		about := audit.About(aboutCopies, b.ID, l.parent.String())
		emit(drift.Fact{About: about, Sub: s.Key.String(), Tag: audit.TagHave, Data: change.Digest(plan.ValuesOf(b.Rule, s.Image)...)})
	case slices.ContainsFunc(b.Rule.Writes, func(name string) bool { return s.Image.Lookup(name).Kind() != change.KindAbsent }):
		audit.Spot(copied, b.ID, s.Key, emit)
	}
}

// EffectFacts implements audit.Family: a copy rule feeds no ledger.
func (kind) EffectFacts(*audit.Auditor, *plan.Binding, change.Key, plan.Effect, func(drift.Fact)) {
}

// RowFacts implements audit.Family.
func (kind) RowFacts(a *audit.Auditor, r audit.Row, emit func(drift.Fact)) {
	b := a.ByID(r.ID)
	switch {
	case b == nil || !a.InForce(b):
	case r.Kind == "parent" && audit.TornPosition(r.Item):
		audit.Spot(drift.Position, r.ID, change.ParseKey(r.Name), emit)
	case r.Kind == "ref" && b.Rule.Kind == Copy && !b.Rule.Collection:
		emit(drift.Fact{About: audit.About(aboutCopies, r.ID, r.Name), Sub: childOf(r), Tag: tagRefer})
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
func (kind) Case(j *audit.Judge) audit.Case {
	if j.Kind != aboutCopies {
		return nil
	}
	return &family{Judge: j, binding: j.Auditor.ByID(j.ID)}
}

// family judges one parent and its children: first what the parent gives, then child by child.
type family struct {
	*audit.Judge
	binding  *plan.Binding
	want     string // what the parent gives
	known    bool
	exists   bool   // the parent
	parent   string // of those that are known by a unique value: the item that is the first of several, if there is one
	child    audit.Part
	refers   bool  // the child's reference row is there
	children int64 // that refer to the parent
}

// Add implements audit.Case.
func (c *family) Add(f drift.Fact) {
	if f.Tag == audit.TagWant {
		if want, item, _ := strings.Cut(f.Data, "\x00"); !c.known || item < c.parent {
			c.known, c.exists, c.parent, c.want = true, true, item, want
		}
		return
	}
	if !c.known {
		c.known, c.want = true, change.Digest(Of(c.binding.Rule).Given(nil)...)
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

func (c *family) endChild() {
	if c.child.Sub == "" {
		return
	}
	child := change.ParseKey(c.child.Sub)
	if c.child.Has && c.child.Have != c.want {
		s := drift.Suspect{Kind: copied, Rule: c.ID, Item: child}
		if c.binding.Rule.ByUnique {
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
func (c *family) End() {
	c.endChild()
	c.Pointed(nameOf(c.binding, c.Key()), c.children, c.exists)
}
