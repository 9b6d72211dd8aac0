package rules

import (
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
)

// CaseDifference is an attribute that has the name of a key variable and holds its text in another
// letter case than the key. Some libraries write keys in lower case and attributes as they are given.
type CaseDifference struct {
	Variable  string // of the key; the attribute has the same name
	Attribute string // the text that the attribute holds
	Key       string // the text that the key holds
}

// CaseDiffers finds the first variable of the item's key whose attribute of the same name differs
// from the key in letter case alone. It allocates nothing if no attribute differs.
func (m *Match) CaseDiffers(img change.Image) (CaseDifference, bool) {
	for slot, name := range m.Entity.shape.Variables {
		value := img.Lookup(name)
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
		for slot := range e.shape.Variables {
			other.vars[slot] = convert(m.vars[slot])
		}
		if k := other.Key(); k != key {
			others = append(others, k)
		}
	}
	return others
}

// JoinsAcrossCase reports whether the rule compares a variable of an entity's keys with an
// attribute: where the two differ in letter case, the rule finds nothing.
func (r *Rule) JoinsAcrossCase(e *Entity, variable string) bool {
	theirs, ours := r.sides()
	slot := slices.Index(e.shape.Variables, variable)
	if slot < 0 {
		return false
	}
	if r.ByUnique {
		return theirs == e && theirs.unique.Slot == slot && r.join.Unique.IsAttribute() ||
			ours == e && r.join.Unique.Slot == slot && theirs.unique.IsAttribute()
	}
	return theirs == e && r.join.Fill[slot].IsAttribute()
}
