package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/rules/expr"
)

// FieldChange is one thing that two rules say differently, in the words of the rule file.
type FieldChange struct {
	Field string `json:"field"`         // "where", "by", "key of User"
	Old   string `json:"old,omitempty"` // "" if the rule does not say it
	New   string `json:"new,omitempty"`
}

// Compare says in what two rules differ, of all that they mean. It returns nothing
// for rules of one fingerprint.
func Compare(old, new *Rule) []FieldChange {
	var found []FieldChange
	add := func(field, before, after string) {
		if before != after {
			found = append(found, FieldChange{field, before, after})
		}
	}
	if old.Fingerprint == new.Fingerprint {
		return nil
	}
	add("kind", old.Kind.String(), new.Kind.String())
	source, target := new.Kind.fields()
	if old.Kind == new.Kind {
		add(source, old.Source.Name, new.Source.Name)
		add(target, old.targetText(), new.targetText())
	} else {
		add("reads", old.Source.Name, new.Source.Name)
		add("writes", old.targetText(), new.targetText())
	}
	compareEntities(old.Source, new.Source, add)
	if old.Target.Name != old.Source.Name || new.Target.Name != new.Source.Name {
		compareEntities(old.Target, new.Target, add)
	}
	add("by", old.joinText(), new.joinText())
	add("where", programText(old.where), programText(new.where))
	if old.Kind == Sum && new.Kind == Sum {
		add("sum", programText(old.amount), programText(new.amount))
	}
	attributes := "attributes"
	if new.Kind == Copy {
		attributes = "copy"
	}
	add(attributes, old.attributesText(), new.attributesText())
	add("set", old.constantsText(), new.constantsText())
	add("if_missing", old.missingText(), new.missingText())
	return found
}

// fields are the words under which a rule of the kind names what it reads and what it writes on.
func (k Kind) fields() (source, target string) {
	switch k {
	case Copy:
		return "from", "to"
	case Sum:
		return "of", "as"
	}
	return k.String(), "as"
}

func (r *Rule) targetText() string {
	if r.Kind == Count || r.Kind == Sum {
		return r.Target.Name + "." + r.Writes[0]
	}
	return r.Target.Name
}

// compareEntities compares what tells items of two entities, where the rules name the same one.
func compareEntities(old, new *Entity, add func(field, before, after string)) {
	if old.Name != new.Name {
		return
	}
	add("key of "+new.Name, old.shape.text(), new.shape.text())
	add("unique of "+new.Name, old.Unique, new.Unique)
	add("match of "+new.Name, old.equalsText(), new.equalsText())
}

// KeyText is the entity's key templates, as the file has them, with " / " between.
func (e *Entity) KeyText() string { return e.shape.text() }

func (e *Entity) equalsText() string {
	var parts []string
	for _, eq := range e.Equals {
		parts = append(parts, eq.Attribute+": "+plainText(eq.Value))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// joinText is what fills the other side's key, as under `by`.
func (r *Rule) joinText() string {
	theirs, ours := r.Target, r.Source
	if r.Kind == Copy {
		theirs, ours = r.Source, r.Target
	}
	pair := func(name string, from ref) string {
		text := from.attribute
		if from.isVariable() {
			text = ours.shape.variables[from.slot]
		}
		if text == name {
			return name
		}
		return name + ": " + text
	}
	if r.ByUnique {
		return pair(r.Target.Unique, r.join.unique)
	}
	var parts []string
	for slot, from := range r.join.fill {
		parts = append(parts, pair(theirs.shape.variables[slot], from))
	}
	return strings.Join(parts, ", ")
}

func programText(p *expr.Program) string {
	if p == nil {
		return ""
	}
	return strings.TrimSpace(p.String())
}

func (r *Rule) attributesText() string {
	var parts []string
	for _, c := range r.Copies {
		parts = append(parts, renamed(c.From, c.As))
	}
	for _, m := range r.sets {
		if m.constant.Kind() == change.KindAbsent {
			parts = append(parts, renamed(m.from, m.as))
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

func renamed(from, as string) string {
	if from == as {
		return as
	}
	return from + " as " + as
}

func (r *Rule) constantsText() string {
	var parts []string
	for _, m := range r.sets {
		if m.constant.Kind() != change.KindAbsent {
			parts = append(parts, m.as+": "+plainText(m.constant))
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

func (r *Rule) missingText() string {
	var parts []string
	for _, c := range r.Copies {
		if c.IfMissing.Kind() != change.KindAbsent {
			parts = append(parts, c.As+": "+plainText(c.IfMissing))
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// plainText shows a constant of the rule file.
func plainText(v change.Value) string {
	switch v.Kind() {
	case change.KindString:
		return quote(v.Text())
	case change.KindBool:
		return fmt.Sprint(v.Bool())
	}
	return v.Text()
}
