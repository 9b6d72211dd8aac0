package declared

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/rules/internal/document"
	"github.com/dynamill/dynamill/internal/rules/internal/spelling"
)

// Declaration is one rule of a file, as its kind reads and checks it. What a
// method reports or finds missing it returns as nothing.
type Declaration struct {
	Own any // what the kind read of keys that no other kind has; nil if nothing

	parser Parser
	Name   Word
	Kind   Kind
	Rows   int            // of the state table over which the value of one target is spread; 0: there is no such value
	At     document.Place // of the key that gives the kind
	keys   []document.Field
	values map[string]*document.Node

	Source, Target Word // entities
	Written        []Written
	By             []JoinPair
	BadBy          bool // a problem was reported of what a `by` fills
	Each           Each
	Per            Word      // whose values are added up apart
	Lists          bool      // attributes stand under the kind's word: Written has them
	Order          Word      // by whose values the items of one target are ordered
	Shown          []Written // what the target shows of each item, in a list
	Where          Word
	Expressions    []Word // as Traits.Expressions lists them
}

// Written is an attribute that a rule writes, and what it is made from.
type Written struct {
	As, From Word // from is not given for a constant, and for what the rule works out
	Constant change.Value
	Template Word // of what the rule works out from an item alone
}

// Each is the list of which a rule takes every element by itself, and the name that it gives to one.
type Each struct {
	List, As Word
	Unread   bool // a problem was reported instead
}

// JoinPair is one pair of `by`: the other side's name and ours.
type JoinPair struct{ Theirs, Ours Word }

// IsBare reports whether the file gives one name for both sides.
func (p JoinPair) IsBare() bool { return p.Theirs.At == p.Ours.At }

// Constant is an attribute with its value, as a rule file says it.
type Constant struct {
	Name  Word
	Value change.Value
}

// Given reports whether the file has the word.
func (w Word) Given() bool { return w.Text != "" }

// Report adds a problem at a word of the file.
func (d *Declaration) Report(w Word, code, hint, message string, args ...any) {
	d.parser.Add(w.At, code, hint, message, args...)
}

// ReportUnknown adds a problem at a word of the file that is none of the known ones.
func (d *Declaration) ReportUnknown(w Word, code string, known []string, message string, args ...any) {
	d.Report(w, code, spelling.DidYouMean(w.Text, known), message, args...)
}

// readDisplay takes the target apart into an entity and its one attribute that the rule writes.
func (d *Declaration) readDisplay(t *Traits) {
	as := d.Target
	d.Target = Word{}
	if !as.Given() {
		return
	}
	dot := strings.IndexByte(as.Text, '.')
	if dot < 1 || dot == len(as.Text)-1 {
		d.Report(as, "rule."+t.TargetField, "write an entity and an attribute, as in `"+t.Displays+"`",
			"%q does not name an attribute of an entity", as.Text)
		return
	}
	d.Target = as.within(0, dot)
	d.Written = append(d.Written, Written{As: d.parser.name(as.within(dot+1, len(as.Text)-dot-1))})
}

// ReadConstants reads attributes that the rule sets to constants.
func (d *Declaration) ReadConstants(key string) {
	for _, c := range d.constants(key, "{ set: { %s: %q }, of: THEIR_ENTITY }") {
		d.Written = append(d.Written, Written{As: c.Name, Constant: c.Value})
	}
}

// ReadTemplates reads attributes that the rule sets to what templates give. Numbers and
// conditions without quotes are constants.
func (d *Declaration) ReadTemplates(key string) {
	n := d.values[key]
	if n == nil {
		return
	}
	for _, c := range d.parser.constants(n, key, false) {
		w := Written{As: c.Name, Constant: c.Value}
		if c.Value.Kind() == change.KindString {
			w.Constant, w.Template = change.Value{}, Word{At: c.Name.Node.Place, Text: c.Name.Node.Text, Node: c.Name.Node}
		}
		d.Written = append(d.Written, w)
	}
}

// IsEmpty reports whether the rule has the key, with a mapping or list that is empty.
func (d *Declaration) IsEmpty(key string) bool {
	n := d.values[key]
	return n != nil && (n.Kind == document.MappingNode || n.Kind == document.ListNode) && len(n.Fields)+len(n.Items) == 0
}

// HasKey reports whether the rule has the key, whatever it holds.
func (d *Declaration) HasKey(key string) bool { return d.values[key] != nil }

// Constants reads a mapping from attributes to constants.
func (d *Declaration) Constants(key string) []Constant { return d.constants(key, "") }

func (d *Declaration) constants(key, otherRule string) []Constant {
	if n := d.values[key]; n != nil {
		return d.parser.plainConstants(n, key, true, otherRule)
	}
	return nil
}

// Attribute reads the name of one attribute; not given where the file does not say it.
func (d *Declaration) Attribute(key string) Word {
	if n := d.values[key]; n != nil {
		return d.parser.name(d.parser.word(n, key))
	}
	return Word{}
}

// Whole reads a whole number from 1 to most. It is 1 where the file does not say it.
func (d *Declaration) Whole(key string, most int, hint string) int {
	return max(1, d.number(key, "", most, hint, fmt.Sprintf("a whole number from 1 to %d", most)))
}

// Seconds reads a key with a whole number of seconds, as in 5s, from 1s to most; 0 if it is not there, or a problem was reported.
func (d *Declaration) Seconds(key string, most int, hint string) int {
	return d.number(key, "s", most, hint, fmt.Sprintf("a number of seconds, from 1s to %ds", most))
}

// number reads a whole number from 1 to most, with its unit; 0 if it is not there, or a problem was reported.
func (d *Declaration) number(key, unit string, most int, hint, want string) int {
	n := d.values[key]
	if n == nil || n.Kind == document.BadNode {
		return 0
	}
	text, ends := strings.CutSuffix(n.Text, unit)
	number, err := strconv.Atoi(text)
	if n.Kind != document.ScalarNode || !ends || err != nil || number < 1 || number > most {
		d.parser.Add(n.Place, "rule."+key, hint, "%s must be %s", key, want)
		return 0
	}
	return number
}

// OneOf reads a word that must be one of some. It is the first of them where the file does not say it.
func (d *Declaration) OneOf(key string, words []string, hint string) string {
	n := d.values[key]
	if n == nil || n.Kind == document.BadNode {
		return words[0]
	}
	if n.Kind != document.ScalarNode || !slices.Contains(words, n.Text) {
		d.parser.Add(n.Place, "rule."+key, hint, "%s must be %s", key, enumerate(words, "or"))
		return words[0]
	}
	return n.Text
}

// Writes lists the names of the attributes that the file says the rule writes.
func (d *Declaration) Writes() []string {
	names := make([]string, len(d.Written))
	for i, w := range d.Written {
		names[i] = w.As.Text
	}
	return names
}

// PlaceOf is the place of the rule's key, or of the rule's name where it has no such key.
func (d *Declaration) PlaceOf(key string) document.Place {
	if i := slices.IndexFunc(d.keys, func(f document.Field) bool { return f.Name == key }); i >= 0 {
		return d.keys[i].Place
	}
	return d.Name.At
}

// under is what stands under the word of the rule's kind.
func (d *Declaration) under() Under {
	switch {
	case d.Kind.Traits().ListsTo == "":
		return Anything
	case d.Lists:
		return AList
	}
	return ANumber
}

// TargetField is the key that names the rule's target.
func (d *Declaration) TargetField() string {
	if d.Lists {
		return d.Kind.Traits().ListsTo
	}
	return d.Kind.Traits().TargetField
}
