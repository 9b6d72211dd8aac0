// Package joins says by which values an item names another one, and what the keys of the two tell of each other. It knows
// keys and values, and no rules.
package joins

import (
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/rules/expr"
	"github.com/dynamill/dynamill/internal/rules/internal/templates"
)

// Ref is where a text comes from on an item: a variable of its key, an attribute, the element of its
// list for which a rule takes it, or an expression. Attribute "" and no expression with the slot noSlot mean nowhere.
type Ref struct {
	Slot       int
	Attribute  string // of an element: its name in the rule
	Expression *expr.Program
}

const (
	noSlot      = -1
	elementSlot = -2
)

// Nowhere says that nothing gives the text.
var Nowhere = Ref{Slot: noSlot}

// Named is the variable of these keys that has the name, or else the attribute.
func Named(name string, of *templates.Shape) Ref {
	return Ref{Slot: slices.Index(of.Variables, name), Attribute: name}
}

// Attribute is the attribute of this name.
func Attribute(name string) Ref { return Ref{Slot: noSlot, Attribute: name} }

// Element is the element of a list that has this name in the rule.
func Element(name string) Ref { return Ref{Slot: elementSlot, Attribute: name} }

// Expression is what an expression gives.
func Expression(program *expr.Program) Ref { return Ref{Slot: noSlot, Expression: program} }

// IsVariable reports whether the text is a variable of the key.
func (r Ref) IsVariable() bool { return r.Slot >= 0 }

// IsElement reports whether the text is an element of a list.
func (r Ref) IsElement() bool { return r.Slot == elementSlot }

// Holds reports whether the text comes from the element of this name.
func (r Ref) Holds(element string) bool {
	return r.IsElement() || r.Expression != nil && element != "" && slices.Contains(r.Expression.Reads(), element)
}

// IsSame reports whether both say the same of every item.
func (r Ref) IsSame(other Ref) bool {
	if r.Expression == nil || other.Expression == nil {
		return r == other && r != Nowhere
	}
	return r.Expression.String() == other.Expression.String()
}

// IsAttribute reports whether the text is an attribute.
func (r Ref) IsAttribute() bool { return r.Slot == noSlot && r.Attribute != "" }

// IsNowhere reports whether nothing says where the text comes from.
func (r Ref) IsNowhere() bool { return r == Nowhere }

// Case is the letter case in which items with these keys have the text.
func (r Ref) Case(of *templates.Shape) templates.Case {
	if r.IsVariable() {
		return of.Formats[r.Slot].Case
	}
	return templates.AsIs
}

// Name is the name of what gives the text: a variable of these keys, an attribute or an element.
func (r Ref) Name(of *templates.Shape) string {
	if r.IsVariable() {
		return of.Variables[r.Slot]
	}
	return r.Attribute
}

// Meaning is one text for all refs of one meaning.
func (r Ref) Meaning(of *templates.Shape) string {
	switch name := r.Name(of); {
	case r.Expression != nil:
		return "=" + strings.TrimSpace(r.Expression.String())
	case r.IsVariable(), r.IsElement():
		return "$" + name
	case strings.HasPrefix(name, "$") || strings.HasPrefix(name, "="): // it is no variable, and no expression
		return "`" + name + "`"
	default:
		return name
	}
}

// Join says by which values an item names another one: a ref for each variable of
// their key, by slot; or, if ByUnique, one ref for their Unique value.
type Join struct {
	Theirs, Ours *templates.Shape // the keys of the items that are named, and of those that name them
	Fill         []Ref
	Unique       Ref
	ByUnique     bool
}

// Refs are all refs by which the other side is found.
func (j *Join) Refs() []Ref {
	if j.ByUnique {
		return []Ref{j.Unique}
	}
	return j.Fill
}

// Unfilled lists the variables of their key that nothing fills.
func (j *Join) Unfilled() (names []string) {
	for slot, from := range j.Fill {
		if from.IsNowhere() {
			names = append(names, j.Theirs.Variables[slot])
		}
	}
	return names
}

// Uses reports whether a variable of our key gives one of the values.
func (j *Join) Uses(slot int) bool {
	return slices.ContainsFunc(j.Refs(), func(from Ref) bool { return from.Slot == slot })
}

// HoldsAlike reports whether the keys of both sides hold each variable that they share in one way, so that the text on the one
// side tells the text on the other. A number key, for example, drops leading zeros, and a text keeps them.
func (j *Join) HoldsAlike() bool {
	theirNumbers, ourNumbers := slices.Collect(j.Theirs.Numbers), slices.Collect(j.Ours.Numbers)
	for slot, from := range j.Fill {
		if from.IsVariable() && (!j.Theirs.Formats[slot].IsLike(j.Ours.Formats[from.Slot]) ||
			slices.Contains(theirNumbers, slot) != slices.Contains(ourNumbers, from.Slot)) {
			return false
		}
	}
	return true
}

// IsInjective reports whether their key determines the key of the only item that can name it.
func (j *Join) IsInjective() bool {
	for slot := range j.Ours.Variables {
		if !j.Uses(slot) {
			return false
		}
	}
	return j.HoldsAlike()
}

// Collects reports whether their key gives the partition of all items that name it, and our key alone names theirs.
func (j *Join) Collects() bool {
	isNot := func(from Ref) bool { return !from.IsVariable() }
	lacks := func(slot int) bool { return !j.Uses(slot) }
	return !j.ByUnique && !slices.ContainsFunc(j.Fill, isNot) && !slices.ContainsFunc(j.Ours.Partition.Slots(), lacks) && j.HoldsAlike()
}

// Backwards fills the variables of our key from those of theirs. It returns
// false if one variable would have two values.
func (j *Join) Backwards(theirs, ours *[templates.VariablesMax]string) bool {
	for slot, from := range j.Fill {
		if !from.IsVariable() {
			continue
		}
		if was := ours[from.Slot]; was != "" && was != theirs[slot] {
			return false
		}
		ours[from.Slot] = theirs[slot]
	}
	return true
}

// CollectionOf says where all items are that name the item with this key: the partition, and the beginning of the sort
// keys. ok is false if no item can name it. The join must be one that Collects.
func (j *Join) CollectionOf(theirs change.Key) (partition, sortPrefix string, ok bool) {
	var vars, ours [templates.VariablesMax]string
	if !j.Theirs.Match(theirs, &vars) || !j.Backwards(&vars, &ours) {
		return "", "", false
	}
	sh := j.Ours
	if partition, ok = sh.Partition.Render(&ours); !ok {
		return "", "", false
	}
	back := ours
	if !sh.Partition.Match(partition, &back) || back != ours {
		return "", "", false
	}
	if sh.HasSort && (sh.Kinds == nil || sh.Kinds.Sort != change.KindNumber) {
		sortPrefix, _ = sh.Sort.Render(&ours)
	}
	if len(partition) > templates.PartitionBytesMax || len(sortPrefix) > templates.SortBytesMax {
		return "", "", false // no key is so long
	}
	return partition, sortPrefix, true
}

// Texts returns the texts of the attributes by which an item with our key names the one with their key. It reports false if
// the keys do not say that the item can.
func (j *Join) Texts(theirs, ours change.Key) (map[string]string, bool) {
	var theirVars, ourVars [templates.VariablesMax]string
	if j.ByUnique || !j.Theirs.Match(theirs, &theirVars) || !j.Ours.Match(ours, &ourVars) {
		return nil, false
	}
	texts := map[string]string{}
	for slot, from := range j.Fill {
		if j.Theirs.Formats[slot].Case != from.Case(j.Ours) || from.Expression != nil { // the keys do not tell the text
			return nil, false
		}
		if from.IsVariable() {
			if ourVars[from.Slot] != theirVars[slot] {
				return nil, false
			}
			continue
		}
		if was, twice := texts[from.Attribute]; twice && was != theirVars[slot] {
			return nil, false
		}
		texts[from.Attribute] = theirVars[slot]
	}
	return texts, true
}
