package rules

import (
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/rules/expr"
	"github.com/dynamill/dynamill/internal/rules/internal/templates"
)

// VariablesMax is the most variables that one entity's key may have.
const VariablesMax = templates.VariablesMax

// Set is a compiled rule file. It is immutable and safe for concurrent use.
type Set struct {
	Table    Table
	Entities []*Entity // in file order
	Rules    []*Rule   // in file order

	file     string
	text     string
	warnings []Problem
	given    []Kind
	kinds    *keyKinds
}

// Text is the file that the set was loaded from.
func (s *Set) Text() string { return s.text }

// Kinds are those that the set was loaded with.
func (s *Set) Kinds() []Kind { return s.given }

// RulesOf names the rules that read or write items of an entity, in the order of the file.
func (s *Set) RulesOf(e *Entity) []string {
	var names []string
	for _, r := range s.Rules {
		if r.Source == e || r.Target == e {
			names = append(names, r.Name)
		}
	}
	return names
}

// Warnings are findings in a file that can be used and is probably not meant so,
// in the order of their places.
func (s *Set) Warnings() []Problem { return slices.Clone(s.warnings) }

// Table is what the rule file says of the table.
type Table struct {
	Name          string // "" if the file leaves it to the command line
	PartitionKey  string // attribute name
	SortKey       string // attribute name; "" for a table without a sort key
	TypeAttribute string // attribute that holds each item's entity name; "" if items carry none
}

// KeyOf is the key of an item of the table.
func (t Table) KeyOf(item change.Image) change.Key {
	key := change.Key{Partition: item.Lookup(t.PartitionKey).Text()}
	if t.SortKey != "" {
		key.Sort = item.Lookup(t.SortKey).Text()
	}
	return key
}

// Entity is a named item shape.
type Entity struct {
	Name   string
	Index  int      // its place in Set.Entities
	Unique string   // variable or attribute by which others find it; "" if none
	Equals []Equals // the attributes that tell it from others of the same key shape, the type attribute among them

	// What the rules do with items of this entity. A rule with a parent stands under
	// Parents and Children, any other one under Sources and under Displays or Makers.
	Sources  []*Rule // read it, and join from it to their target
	Displays []*Rule // write an attribute on it that they work out
	Makers   []*Rule // make its items whole
	Parents  []*Rule // read it; their targets name it
	Children []*Rule // write attributes on it that they take from the parent that it names
	Located  bool    // some rule finds it by Unique

	shape                 shape
	partitionKey, sortKey string // the table's key attributes
	unique                ref    // where Unique's value is
}

// Equals is one attribute that an entity's items must have.
type Equals struct {
	Attribute string
	Value     change.Value // S, N or BOOL
}

// Rule is one compiled derivation.
type Rule struct {
	Name        string
	Kind        Kind
	Form        Form     // what the kind adds; its package has an accessor with the type
	Source      *Entity  // what it reads
	Target      *Entity  // what it writes, or writes on
	Fingerprint string   // of all that the rule means (entities' keys included), but for its name
	Level       int      // 0 if it reads nothing that another rule writes, else one more than the highest of those
	Reads       []string // attributes of Source, beside its key, on which the effect depends; sorted
	JoinReads   []string // with a parent: attributes of Target (the child), beside its key, that name the parent; sorted
	Writes      []string // attributes of Target that the rule writes, the stamp aside; in the file's order

	Attributes []Attribute // what each of Writes is made from

	ByUnique   bool // the target is known by its Unique value alone
	Injective  bool // of a rule that makes items: a target's key determines its source's key
	Collection bool // of a rule with a parent: the children live in a collection that the parent's key gives

	join        join
	where       *expr.Program   // nil: all
	expressions []*expr.Program // as Traits.Expressions lists them
}

// Attribute is one attribute that a rule writes. One that the rule works out has neither From nor Constant.
type Attribute struct {
	As, From string
	Constant change.Value // absent: from the source
}

// Match is an item seen as one of its entity: the entity and the variables parsed from the item's key.
type Match struct {
	Entity *Entity
	vars   [VariablesMax]string
}

// ItemError says why one item can have no effect under one rule as it is. The
// (item, rule) is parked with it.
type ItemError struct {
	Code   string // e.g. "key.smuggled", "value.type", "number.overflow"
	Reason string // a sentence that names attribute and value
}

func (e *ItemError) Error() string { return e.Reason }

// UniqueInKey reports whether Unique is a variable of the entity's key, so that it never changes.
func (e *Entity) UniqueInKey() bool { return e.unique.isVariable() }
