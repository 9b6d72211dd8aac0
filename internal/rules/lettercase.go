package rules

import (
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/rules/internal/templates"
)

// CaseDifference is an attribute that has the name of a key variable and holds another text than the key. Some libraries
// write keys in lower case and attributes as they are given.
type CaseDifference struct {
	Variable  string // of the key; the attribute has the same name
	Attribute string // the text that the attribute holds
	Key       string // the text that the key holds
}

// CaseDiffers finds the first variable of the item's key whose attribute of the same name differs from the key in letter case
// alone; or in more than that, if the template says the case. It allocates nothing if the attributes are as the keys hold them.
func (m *Match) CaseDiffers(img change.Image) (CaseDifference, bool) {
	for slot, name := range m.Entity.shape.Variables {
		value := img.Lookup(name)
		if in := m.Entity.shape.Formats[slot].Case; in != templates.AsIs {
			if text := value.Text(); value.Kind() == change.KindString && text != "" && in.Of(text) != m.vars[slot] {
				return CaseDifference{Variable: name, Attribute: text, Key: m.vars[slot]}, true
			}
			continue
		}
		if text, key := value.Text(), m.vars[slot]; value.Kind() == change.KindString && text != key && len(text) == len(key) &&
			(strings.ToLower(text) == key || strings.ToUpper(text) == key) {
			return CaseDifference{Variable: name, Attribute: text, Key: key}, true
		}
	}
	return CaseDifference{}, false
}

// OtherCases returns the entity's keys that differ from this one in the letter case of their
// variables: all in lower case, and all in upper case. The key itself is not among them.
func (e *Entity) OtherCases(key change.Key) []change.Key {
	m := Match{Entity: e}
	if !e.shape.Match(key, &m.vars) {
		return nil
	}
	var others []change.Key
	for _, convert := range []func(string) string{strings.ToLower, strings.ToUpper} {
		other := m
		for slot, format := range e.shape.Formats {
			if format == (templates.Format{}) {
				other.vars[slot] = convert(m.vars[slot])
			}
		}
		if k := other.Key(); k != key {
			others = append(others, k)
		}
	}
	return others
}

// JoinsAcrossCase reports whether the rule compares a variable of an entity's keys with an
// attribute or an element: where the two differ, the rule finds nothing. If the template declares a letter case, this also
// holds for a rule whose join takes the variable from this entity's items: it uses the attribute of that name if the key holds
// it in that case, otherwise the key's text.
func (r *Rule) JoinsAcrossCase(e *Entity, variable string) bool {
	theirs, ours := r.sides()
	slot := slices.Index(e.shape.Variables, variable)
	if slot < 0 {
		return false
	}
	if e.shape.Formats[slot].Case != templates.AsIs && ours == e && r.Join.Uses(slot) {
		return true
	}
	if r.ByUnique {
		return theirs == e && theirs.unique.Slot == slot && !r.Join.Unique.IsVariable() ||
			ours == e && r.Join.Unique.Slot == slot && theirs.unique.IsAttribute()
	}
	return theirs == e && !r.Join.Fill[slot].IsVariable()
}
