package declared

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/internal/rules/expr"
	"github.com/dynamill/dynamill/internal/rules/internal/document"
)

// Kind is one kind of rule, as far as declarations of its rules are read and checked.
type Kind interface {
	Word() string         // the key that gives a rule this kind
	Traits() *Traits      // what the language must know of the kind
	Read(d *Declaration)  // reads the values of keys that the traits do not tell of
	Check(d *Declaration) // reports problems that only rules of this kind have
}

// Traits are what the language must know of a kind. The keys of the rule file that
// they name are those that problems and comparisons print.
type Traits struct {
	// Variant is set if another kind has the same word: the key that makes a rule one of this kind.
	Variant string
	// Pays says when the variant costs less than the kind with its word alone.
	Pays string

	Number  int    // of the kind in fingerprints: it never changes
	Noun    string // the word with its article
	Plural  string
	Example string // a rule of the kind with its name, as an example for Post and Comment; "" if another kind's is better

	Keys        []Key        // the keys of its rules beside the word
	Expressions []Expression // beside `where`

	SourceField     string // names the entity that a rule reads; required
	TargetField     string // names the entity that a rule writes; required; SourceField, if a rule reads and writes items of one entity
	AttributesField string // lists the attributes that a rule hands on; "" if it hands none on

	// ListsTo is set if attributes can stand under the kind's word, in the place of a number: a rule takes them from one item. It names
	// the entity that gets them, and such a rule has no TargetField.
	ListsTo string

	HasParent  bool // the join goes from the target, a child, to the source, its parent; else from the source to the target
	MakesItems bool // a rule makes its target's items whole; else it writes on items of the application
	Deletes    bool // with HasParent: a rule deletes its target's items, which the application made; it writes on none

	// OnItems is set if a rule shows values on items of the application alone: the remedy where its target is derived.
	OnItems string

	// Displays is set if a rule works out from several items what it writes. It is an
	// example of the target field, which then names the one attribute, too.
	Displays string

	WholeKey *WholeKey // set if a rule must fill the whole key of the other side, and cannot join by its Unique value
}

// NameOf is a kind as lists of rules name it: its word, behind the key that makes it a variant.
func NameOf(k Kind) string { return strings.TrimSpace(k.Traits().Variant + " " + k.Word()) }

// Key is a key of a rule.
type Key struct {
	Name     string
	Required bool
	Hint     string // how to write a required key
	Under    Under  // what stands under the kind's word in rules that have the key
}

// Under is what stands under the word of a kind.
type Under uint8

// What can stand there.
const (
	Anything Under = iota
	AList          // attributes
	ANumber
)

// Expression is a key of a rule that holds an expression.
type Expression struct {
	Key  string
	Want string // what it must be, with an example
	Type expr.Type

	Ordered bool // it must be a number or a text
}

// WholeKey says why a kind's rules cannot join by a Unique value.
type WholeKey struct {
	Reason string // the first half of the sentence
	Hint   string // in it, {items} is the entity on this side and {variables} are those of the other side's key
}

// Kinds lists the kinds that there are, and those that are planned.
type Kinds []Kind

// named returns the kind of a word that is no variant of another; nil if there is none.
func (l Kinds) named(word string) Kind {
	return l.kind(word, func(t *Traits) bool { return t.Variant == "" })
}

// variant returns the kind of a rule with a word and other keys.
func (l Kinds) variant(word string, has func(key string) bool) Kind {
	if k := l.kind(word, func(t *Traits) bool { return t.Variant != "" && has(t.Variant) }); k != nil {
		return k
	}
	return l.named(word)
}

func (l Kinds) kind(word string, is func(*Traits) bool) Kind {
	if i := slices.IndexFunc(l, func(k Kind) bool { return k.Word() == word && is(k.Traits()) }); i >= 0 {
		return l[i]
	}
	return nil
}

// variantsOf returns the variants of a kind: each has a key that makes a rule with the kind's word one of it.
func (l Kinds) variantsOf(k Kind) []Kind {
	return slices.DeleteFunc(slices.Clone(l), func(other Kind) bool {
		return other.Word() != k.Word() || other.Traits().Variant == "" || k.Traits().Variant != ""
	})
}

// givenBy returns the fields that give a rule its kind. The word of one kind that is a key of another
// one, which the rule has too, gives none.
func (l Kinds) givenBy(fields []document.Field) []document.Field {
	words := slices.DeleteFunc(slices.Clone(fields), func(f document.Field) bool {
		kind := l.named(f.Name)
		return kind == nil || isPlanned(kind)
	})
	return slices.DeleteFunc(slices.Clone(words), func(f document.Field) bool {
		return slices.ContainsFunc(words, func(other document.Field) bool { return l.named(other.Name).Traits().hasKey(f.Name) })
	})
}

// isPlanned reports whether no rule can be of the kind yet: its rules have no name.
func isPlanned(k Kind) bool { return k.Traits().Plural == "" }

func (l Kinds) words() []string {
	var words []string
	for _, k := range l {
		if !isPlanned(k) && k.Traits().Variant == "" {
			words = append(words, k.Word())
		}
	}
	return words
}

// hasKey reports whether rules of some kind have the key beside their word.
func (l Kinds) hasKey(name string) bool {
	return slices.ContainsFunc(l, func(k Kind) bool { return k.Traits().hasKey(name) })
}

// OneEntity reports whether a rule reads and writes items of one entity, which the file names once.
func (t *Traits) OneEntity() bool { return t.SourceField == t.TargetField }

// WritesSource reports whether a rule writes on the items that it reads.
func (t *Traits) WritesSource() bool { return t.OneEntity() && !t.HasParent }

// AlongItself reports whether the children that name a parent are of the parent's entity.
func (t *Traits) AlongItself() bool { return t.OneEntity() && t.HasParent }

func (t *Traits) hasKey(name string) bool {
	return slices.ContainsFunc(t.Keys, func(k Key) bool { return k.Name == name })
}

// hasKeyUnder reports whether a rule has the key with this under the kind's word.
func (t *Traits) hasKeyUnder(name string, under Under) bool {
	return slices.ContainsFunc(t.Keys, func(k Key) bool { return k.Name == name && k.isUnder(under) })
}

func (k Key) isUnder(under Under) bool { return k.Under == Anything || k.Under == under }

// keyNames lists the keys of a kind's rules beside their word, sorted.
func (t *Traits) keyNames(under Under) []string {
	var names []string
	for _, k := range t.Keys {
		if k.isUnder(under) {
			names = append(names, k.Name)
		}
	}
	slices.Sort(names)
	return names
}

// example is the example of the first kind that has one.
func (l Kinds) example() string {
	if i := slices.IndexFunc(l, func(k Kind) bool { return k.Traits().Example != "" }); i >= 0 {
		return l[i].Traits().Example
	}
	return "name: {}"
}

// enumerate writes "a, b and c".
func enumerate(words []string, last string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return fmt.Sprintf("%s %s %s", strings.Join(words[:len(words)-1], ", "), last, words[len(words)-1])
}

// smallestEntities are those of the smallest rule file, which problems of files without content show.
const smallestEntities = `entities:
  Post:    { key: { pk: "POST#${postId}", sk: "METADATA" } }
  Comment: { key: { pk: "POST#${postId}", sk: "COMMENT#${commentId}" } }`

func (l Kinds) smallestRules() string { return "rules:\n  " + l.example() }

// SmallestFile is an example of a rule file.
func (l Kinds) SmallestFile() string {
	return "version: 1\ntable: { keys: [pk, sk] }\n" + smallestEntities + "\n" + l.smallestRules()
}
