package rules

import (
	"slices"

	"github.com/dynamill/dynamill/internal/rules/internal/spelling"
)

// AttributeRead is an attribute that rules read of an entity's items, and that only the application can write.
type AttributeRead struct {
	Entity *Entity
	Name   string
	Rules  []string // in the file's order
}

// AttributesRead are the attributes that rules read, but for those that a rule writes on the same items, and for names of variables of the
// items' key.
func (s *Set) AttributesRead() (all []*AttributeRead) {
	note := func(r *Rule, e *Entity, names []string) {
		for _, name := range names {
			if s.gives(e, name) {
				continue
			}
			i := slices.IndexFunc(all, func(read *AttributeRead) bool { return read.Entity == e && read.Name == name })
			if i < 0 {
				i, all = len(all), append(all, &AttributeRead{Entity: e, Name: name})
			}
			all[i].Rules = append(all[i].Rules, r.Name)
		}
	}
	for _, r := range s.Rules {
		note(r, r.Source, r.Reads)
		if r.HasParent() {
			note(r, r.Target, r.JoinReads)
		}
	}
	return all
}

// gives reports whether a rule, or the key, gives an entity's items a value of this name.
func (s *Set) gives(e *Entity, name string) bool {
	return slices.Contains(e.shape.Variables, name) || name == e.ExpireAttribute || slices.ContainsFunc(s.Rules, func(r *Rule) bool {
		return r.Target == e && slices.Contains(r.Writes, name)
	})
}

// Like is the name that the attribute was perhaps meant to be, of some names and the variables of the items' key; "" if none is like it.
func (a *AttributeRead) Like(names []string) string {
	for _, name := range slices.Concat(a.Entity.shape.Variables, names) {
		if spelling.Near(a.Name, name) {
			return name
		}
	}
	return ""
}
