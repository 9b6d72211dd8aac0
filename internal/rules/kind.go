package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/internal/rules/expr"
)

// Kind is one kind of rule. A caller gives the kinds to Load; this package names none.
// A Kind is compared with ==.
type Kind interface {
	Word() string                         // the key that gives a rule this kind
	Traits() *Traits                      // what the language must know of the kind
	Read(d *Declaration)                  // reads the values of keys that the traits do not tell of
	Check(d *Declaration)                 // reports problems that only rules of this kind have
	Compile(r *Rule, d *Declaration) Form // of a rule without problems; all but Form and Fingerprint is set
}

// Form is what a rule of one kind means beside what all rules have.
type Form interface {
	// Meaning returns lines of the fingerprint, in any order. Tables remember
	// fingerprints, so the lines of a rule must never change.
	Meaning() []string
	// Says returns what Compare compares beside what all rules have.
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

// Traits are what the language must know of a kind. The keys of the rule file that
// they name are those that problems and comparisons print.
type Traits struct {
	Number  int    // of the kind in fingerprints: it never changes
	Noun    string // the word with its article
	Plural  string
	Example string // a rule of the kind with its name, as an example for Post and Comment; "" if another kind's is better

	Keys        []Key        // the keys of its rules beside the word
	Expressions []Expression // beside `where`

	SourceField     string // names the entity that a rule reads; required
	TargetField     string // names the entity that a rule writes; required
	AttributesField string // lists the attributes that a rule hands on; "" if it hands none on

	HasParent  bool // the join goes from the target, a child, to the source, its parent; else from the source to the target
	MakesItems bool // a rule makes its target's items whole; else it writes on items of the application

	// Displays is set if a rule writes one attribute, which it works out: it is an
	// example of the target field, which then names the attribute, too.
	Displays string

	WholeKey *WholeKey // set if a rule must fill the whole key of the other side, and cannot join by its Unique value
	Actions  int       // writes that one change of a source may need in its transaction, for each rule
}

// Key is a key of a rule.
type Key struct {
	Name     string
	Required bool
	Hint     string // how to write a required key
}

// Expression is a key of a rule that holds an expression.
type Expression struct {
	Key  string
	Want string // what it must be, with an example
	Type expr.Type
}

// WholeKey says why a kind's rules cannot join by a Unique value.
type WholeKey struct {
	Reason string // the first half of the sentence
	Hint   string // in it, {items} is the entity on this side and {variables} are those of the other side's key
}

// MakesItems reports whether the rule makes its target's items whole. A Rule without a
// Kind, which a caller made of what it knows of a rule, has no role.
func (r *Rule) MakesItems() bool { return r.Kind != nil && r.Kind.Traits().MakesItems }

// HasParent reports whether the rule's targets name its source, their parent.
func (r *Rule) HasParent() bool { return r.Kind != nil && r.Kind.Traits().HasParent }

// Displays reports whether the rule works out one attribute, which its target shows.
func (r *Rule) Displays() bool { return r.Kind != nil && r.Kind.Traits().Displays != "" }

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
func (planned) Traits() *Traits { return &Traits{} }

// kindList is what Load is given: the kinds that it knows, and those that are planned.
type kindList []Kind

// named returns the kind of a word; nil if there is none.
func (l kindList) named(word string) Kind {
	if i := slices.IndexFunc(l, func(k Kind) bool { return k.Word() == word }); i >= 0 {
		return l[i]
	}
	return nil
}

func isPlanned(k Kind) bool {
	_, is := k.(planned)
	return is
}

func (l kindList) words() []string {
	var words []string
	for _, k := range l {
		if !isPlanned(k) {
			words = append(words, k.Word())
		}
	}
	return words
}

// hasKey reports whether rules of some kind have the key beside their word.
func (l kindList) hasKey(name string) bool {
	return slices.ContainsFunc(l, func(k Kind) bool { return k.Traits().hasKey(name) })
}

func (t *Traits) hasKey(name string) bool {
	return slices.ContainsFunc(t.Keys, func(k Key) bool { return k.Name == name })
}

// keyNames lists the keys of a kind's rules beside their word, sorted.
func (t *Traits) keyNames() []string {
	names := make([]string, len(t.Keys))
	for i, k := range t.Keys {
		names[i] = k.Name
	}
	slices.Sort(names)
	return names
}

// example is the example of the first kind that has one.
func (l kindList) example() string {
	for _, k := range l {
		if t := k.Traits(); t.Example != "" {
			return t.Example
		}
	}
	return "name: {}"
}

// heavy names the kinds whose rules need room in a source's transaction, those that need least first.
func (l kindList) heavy() string {
	byActions := slices.SortedStableFunc(slices.Values(l), func(a, b Kind) int { return a.Traits().Actions - b.Traits().Actions })
	var plurals []string
	for _, k := range byActions {
		if t := k.Traits(); t.Actions > 0 {
			plurals = append(plurals, t.Plural)
		}
	}
	return enumerate(plurals, "or")
}

// enumerate writes "a, b and c".
func enumerate(words []string, last string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return fmt.Sprintf("%s %s %s", strings.Join(words[:len(words)-1], ", "), last, words[len(words)-1])
}
