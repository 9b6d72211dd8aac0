package rules

import (
	"regexp"
	"slices"
	"time"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/rules/expr"
	"github.com/dynamill/dynamill/internal/rules/internal/check"
	"github.com/dynamill/dynamill/internal/rules/internal/declared"
	"github.com/dynamill/dynamill/internal/rules/internal/document"
	"github.com/dynamill/dynamill/internal/rules/internal/joins"
	"github.com/dynamill/dynamill/internal/rules/internal/templates"
)

// Bounds of a rule file.
const (
	FileBytesMax = document.FileBytesMax
	EntitiesMax  = declared.EntitiesMax
	RulesMax     = declared.RulesMax
)

// VariablesMax is the most variables that one entity's key may have.
const VariablesMax = templates.VariablesMax

// Names that kinds, and callers of Load, need of the packages that read and check a rule file.
type (
	Declaration = declared.Declaration
	Word        = declared.Word
	Written     = declared.Written
	Constant    = declared.Constant
	Traits      = declared.Traits
	Key         = declared.Key
	Expression  = declared.Expression
	WholeKey    = declared.WholeKey
	Equals      = check.Equals
	KeyText     = templates.KeyText
	KeyCase     = templates.Case
	Problem     = document.Problem
	Problems    = document.Problems
)

// What can stand under the word of a kind.
const (
	AList   = declared.AList
	ANumber = declared.ANumber
)

// Set is a compiled rule file. It is immutable and safe for concurrent use.
type Set struct {
	Table    Table
	Entities []*Entity // in file order
	Rules    []*Rule   // in file order

	file      string
	text      string
	warnings  []Problem
	ruleKinds []Kind
	keyTypes  *templates.KeyTypes
}

// Text is the file that the set was loaded from.
func (s *Set) Text() string { return s.text }

// Kinds are those that the set was loaded with.
func (s *Set) Kinds() []Kind { return s.ruleKinds }

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
	Name          string  // "" if the file leaves it to the command line
	PartitionKey  string  // attribute name
	SortKey       string  // attribute name; "" for a table without a sort key
	Case          KeyCase // in which keys hold texts
	TypeAttribute string  // attribute that holds each item's entity name; "" if items carry none
}

// TableNameMax is the greatest length of a table's name (DynamoDB developer guide, "Supported data types and naming rules").
const TableNameMax = 255

var tableNameForm = regexp.MustCompile(`^[a-zA-Z0-9_.-]{3,255}$`)

// IsTableName reports whether DynamoDB allows a name for a table.
func IsTableName(name string) bool { return tableNameForm.MatchString(name) }

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
	Table  Table
	Index  int            // its place in Set.Entities
	Unique string         // variable or attribute by which others find it; "" if none
	Equals []check.Equals // the attributes that tell it from others of the same key shape, the type attribute among them

	// What the rules do with items of this entity. A rule with a parent stands under
	// Parents and Children, one that writes on the items that it reads under Own, any
	// other one under Sources, unless it folds records, and under Displays or Makers.
	Sources  []*Rule // read it, join from it to their target, and keep what each item causes
	Displays []*Rule // write an attribute on it that they work out from other items
	Makers   []*Rule // make its items: one makes them whole, or those under Displays together
	Parents  []*Rule // read it; their targets name it
	Children []*Rule // write attributes on it that they take from the parent that it names
	Own      []*Rule // write attributes on it that they work out from the item alone
	Located  bool    // some rule finds it by Unique

	Derived         bool          // the rules under Makers make its items together, and whatever stands under such a key is theirs
	Expire          time.Duration // of a derived one: how long an item lives after its last change; 0: for ever
	ExpireAttribute string        // holds the time to live

	shape  *templates.Shape
	unique joins.Ref // where Unique's value is
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
	Shown      []Attribute // of a rule whose target shows a list: what it shows of each item
	Order      string      // by whose values the items of one target are ordered: an attribute or key variable of Source; "" for none
	Each       Each

	By         []Joined   // as the file says it
	Per        Joined     // what the values of one target are told apart by, as the file says it; Theirs is ""
	Join       joins.Join // what By means for the keys of both sides
	ByUnique   bool       // the target, or the parent, is known by its Unique value alone
	Injective  bool       // of a rule that makes items: a target's key determines its source's key
	Collection bool       // of a rule with a parent: the children live in a collection that the parent's key gives, as Join.CollectionOf says

	byName      []int // indices of Writes in the order of their names; nil if they stand in that order
	per         joins.Ref
	where       *expr.Program   // nil: all
	expressions []*expr.Program // as Traits.Expressions lists them
}

// Joined is what a rule file says under `by`: a name of the other side, and what of this side holds its value.
type Joined struct {
	Theirs, Ours string
	Bare         bool // the file gives one name for both
	Expression   bool // Ours is no name
}

// Kind is one kind of rule. A caller gives the kinds to Load; this package names none.
// A Kind is compared with ==.
type Kind interface {
	declared.Kind
	Compile(r *Rule, d *declared.Declaration) Form // of a rule without problems; all but Form and Fingerprint is set
}

// Form is what a rule of one kind means beside what all rules have.
type Form interface {
	// Meaning returns lines of the fingerprint, in any order. Tables remember
	// fingerprints, so the lines of a rule must never change.
	Meaning() []string
	// Says returns what package rulediff compares beside what all rules have.
	Says() []Said
	// Cost returns what one change of a source costs.
	Cost() Cost
	// Replays says what a replay that brings the rule into force does, after "needs replay: ".
	Replays() string
	// Needs returns what the rule calls on the user's table beside what all rules call.
	Needs() []Need
}

// Cost is what one change costs for items of up to 1 KB.
type Cost struct {
	WriteUnits int
	Text       string // more exactly
}

// Need is an action of DynamoDB that a rule takes on the user's table.
type Need struct {
	Action string // e.g. "dynamodb:Query"
	Why    string // a sentence that names the action
}

// Said is one thing that a rule says, under the key of the rule file that says it.
type Said struct{ Key, Text string }

// Planned is a kind that a later version knows: a rule file that uses it is told so.
func Planned(word string) Kind { return planned{word: word} }

// planned has no other methods of a Kind: no rule is of it.
type planned struct {
	Kind
	word string
}

// Word is the key that will give a rule the kind.
func (k planned) Word() string { return k.word }

// Traits are none.
func (planned) Traits() *declared.Traits { return &declared.Traits{} }

// Attribute is one attribute that a rule writes, or shows in a list. One that the rule works out from several items has neither From, nor
// Constant, nor Template.
type Attribute struct {
	As, From string
	Constant change.Value   // absent: from the source
	Template *expr.Template // worked out from the source alone
}

// Match is an item seen as one of its entity: the entity and the variables parsed from the item's key.
type Match struct {
	Entity  *Entity
	vars    [VariablesMax]string
	element *element // for which a rule with each takes the item; nil if it takes the item as a whole
}

// ItemError says why one item can have no effect under one rule as it is. The
// (item, rule) is parked with it.
type ItemError struct {
	Code   string // e.g. "key.smuggled", "value.type", "number.overflow"
	Reason string // a sentence that names attribute and value
}

func (e *ItemError) Error() string { return e.Reason }

// UniqueInKey reports whether Unique is a variable of the entity's key, so that it never changes.
func (e *Entity) UniqueInKey() bool { return e.unique.IsVariable() }

// MakesItems reports whether the rule makes its target's items, alone or with others. A Rule without a
// Kind, which a caller made of what it knows of a rule, has no role.
func (r *Rule) MakesItems() bool { return r.Kind != nil && (r.Kind.Traits().MakesItems || r.Derives()) }

// Derives reports whether the rule is one of those that make the items of a derived entity together.
func (r *Rule) Derives() bool { return r.Displays() && r.Target != nil && r.Target.Derived }

// Deletes reports whether the rule deletes its target's items, which the application made, with their parents.
func (r *Rule) Deletes() bool { return r.Kind != nil && r.Kind.Traits().Deletes }

// HasParent reports whether the rule's targets name its source, their parent.
func (r *Rule) HasParent() bool { return r.Kind != nil && r.Kind.Traits().HasParent }

// WritesSource reports whether the rule writes on the items that it reads.
func (r *Rule) WritesSource() bool { return r.Kind != nil && r.Kind.Traits().WritesSource() }

// AlongItself reports whether the parents that the rule's targets name are of the targets' entity.
func (r *Rule) AlongItself() bool { return r.HasParent() && r.Kind.Traits().AlongItself() }

// Displays reports whether the rule works out from several items what its target shows.
func (r *Rule) Displays() bool { return r.Kind != nil && r.Kind.Traits().Displays != "" }

// Pointed is the entity at whose items the rule's join points: the parents of a rule that has them, else the targets.
func (r *Rule) Pointed() *Entity {
	theirs, _ := r.sides()
	return theirs
}

// sides are the entity whose key the rule's join fills, and the entity that fills it.
func (r *Rule) sides() (theirs, ours *Entity) {
	if r.HasParent() {
		return r.Source, r.Target
	}
	return r.Target, r.Source
}
