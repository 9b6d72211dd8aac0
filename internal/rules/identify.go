package rules

import (
	"fmt"
	"strings"
	"sync"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/rules/internal/templates"
)

// Bounds of keys (DynamoDB developer guide, "Quotas": partition and sort key length).
const (
	partitionBytesMax = 2048
	sortBytesMax      = 1024
)

// keyKinds holds the table's real key types, once CheckKeys has told them.
type keyKinds struct {
	partition, sort change.Kind

	told bool       // they do not change any more
	mu   sync.Mutex // held while they are told
}

// shape is what an entity's keys look like.
type shape struct {
	partition, sort templates.Template
	hasSort         bool
	variables       []string // by slot
	kinds           *keyKinds
}

// Identify says which entity the item with this key is of. Items of no entity
// are none of the rules' business. It allocates nothing; img is read only for
// entities that have Equals, and may be nil if no entity has.
func (s *Set) Identify(key change.Key, img change.Image) (Match, bool) {
	for _, e := range s.Entities {
		m := Match{Entity: e}
		if e.shape.match(key, &m.vars) && e.equal(img) {
			return m, true
		}
	}
	return Match{}, false
}

// HasKey reports whether items of the entity have keys like this one. Whether
// an item is of the entity depends on its attributes, too.
func (e *Entity) HasKey(key change.Key) bool {
	var vars [VariablesMax]string
	return e.shape.match(key, &vars)
}

// Is reports whether an item under a key of the entity's is one of its items, by the attributes that tell it.
func (e *Entity) Is(img change.Image) bool { return e.equal(img) }

func (e *Entity) equal(img change.Image) bool {
	if len(e.Equals) > 0 && img == nil {
		return false
	}
	for i := range e.Equals {
		if !img.Lookup(e.Equals[i].Attribute).Equal(e.Equals[i].Value) {
			return false
		}
	}
	return true
}

func (sh *shape) match(key change.Key, vars *[VariablesMax]string) bool {
	if !sh.partition.Match(key.Partition, vars) {
		return false
	}
	if !sh.hasSort {
		return key.Sort == ""
	}
	return sh.sort.Match(key.Sort, vars)
}

// Key returns the item's key, rendered back from its variables.
func (m *Match) Key() change.Key {
	sh := &m.Entity.shape
	var key change.Key
	key.Partition, _ = sh.partition.Render(&m.vars)
	if sh.hasSort {
		key.Sort, _ = sh.sort.Render(&m.vars)
	}
	return key
}

// render makes the key that vars ask for and reads it back: a value that would
// make it another key than the template gives (a # where none may be) is
// refused. blame names where the value of a slot came from.
func (e *Entity) render(vars *[VariablesMax]string, blame func(slot int) string) (change.Key, error) {
	sh := &e.shape
	if err := sh.normalize(vars, blame); err != nil {
		return change.Key{}, err
	}
	m := Match{Entity: e, vars: *vars}
	key := m.Key()
	if len(key.Partition) > partitionBytesMax || len(key.Sort) > sortBytesMax {
		return change.Key{}, &ItemError{Code: "key.too_long", Reason: fmt.Sprintf(
			"the key of %s would have %d and %d bytes: DynamoDB allows %d for the partition key and %d for the sort key",
			e.Name, len(key.Partition), len(key.Sort), partitionBytesMax, sortBytesMax)}
	}
	var back [VariablesMax]string
	if sh.match(key, &back) && back == *vars {
		return key, nil
	}
	return change.Key{}, e.smuggled(vars, &back, blame)
}

// smuggled finds the variable to blame for a key that does not read back.
func (e *Entity) smuggled(vars, back *[VariablesMax]string, blame func(slot int) string) error {
	sh := &e.shape
	for slot := range sh.variables {
		if strings.Contains(vars[slot], "#") && !sh.rests(slot) {
			return &ItemError{Code: "key.smuggled", Reason: fmt.Sprintf(
				"%s is %s: a key variable must not contain #", blame(slot), quote(vars[slot]))}
		}
	}
	culprit := 0
	for slot := range sh.variables {
		if vars[slot] != back[slot] {
			culprit = slot
			break
		}
	}
	if len(sh.variables) == 0 {
		return &ItemError{Code: "key.smuggled", Reason: fmt.Sprintf("the key of %s, %q, does not read back", e.Name, sh.text())}
	}
	return &ItemError{Code: "key.smuggled", Reason: fmt.Sprintf(
		"%s is %s: it would not read back from the key of %s, %q", blame(culprit), quote(vars[culprit]), e.Name, sh.text())}
}

// rests reports whether every place of the variable takes the rest of its key.
func (sh *shape) rests(slot int) bool {
	return sh.partition.Rests(slot) && sh.sort.Rests(slot)
}

func (sh *shape) text() string {
	if !sh.hasSort {
		return sh.partition.Text
	}
	return sh.partition.Text + " / " + sh.sort.Text
}

// normalize brings the variables that are whole number keys to DynamoDB's form of numbers.
func (sh *shape) normalize(vars *[VariablesMax]string, blame func(slot int) string) error {
	if sh.kinds == nil {
		return nil
	}
	for _, key := range [...]struct {
		kind change.Kind
		t    *templates.Template
	}{{sh.kinds.partition, &sh.partition}, {sh.kinds.sort, &sh.sort}} {
		if key.kind != change.KindNumber {
			continue
		}
		slot, single := key.t.Single()
		if !single {
			continue
		}
		number, err := decimal.Parse(vars[slot])
		if err != nil {
			return &ItemError{Code: "value.type", Reason: fmt.Sprintf(
				"%s is %s: the table's key is a number", blame(slot), quote(vars[slot]))}
		}
		vars[slot] = number.String()
	}
	return nil
}

// CheckKeys compares the templates with the table's real key types (sort is
// change.KindAbsent for a table without a sort key): a key must be S, or N if
// every template of it is one single ${x}. The error is a *Problems. It also tells the
// Set how to render numbers, and so must be called before the Set is used. Engines may
// share a Set, and each may call it, if their tables have keys of the same types.
func (s *Set) CheckKeys(partition, sort change.Kind) error {
	var found Problems
	say := func(code, hint, message string, args ...any) {
		found.List = append(found.List, Problem{File: s.file, Code: code, Message: fmt.Sprintf(message, args...), Hint: hint})
	}
	if (sort == change.KindAbsent) != (s.Table.SortKey == "") {
		if sort == change.KindAbsent {
			say("table.sort_key", "name one key: `keys: ["+s.Table.PartitionKey+"]`",
				"the rule file names a sort key, %s, but the table has none", s.Table.SortKey)
		} else {
			say("table.sort_key", "name both keys: `keys: [partition, sort]`", "the table has a sort key, but the rule file names none")
		}
		return &found
	}
	check := func(attribute string, kind change.Kind, of func(*shape) *templates.Template) {
		if kind == change.KindBinary {
			say("table.binary_key", "", "the table's key %s is binary: only strings and numbers are supported", attribute)
		}
		for _, e := range s.Entities {
			t := of(&e.shape)
			if _, single := t.Single(); kind == change.KindNumber && !single {
				say("template.number", "use a single variable, as in \"${x}\"",
					"the table's key %s is a number, which %s's template %q cannot give", attribute, e.Name, t.Text)
			}
		}
	}
	check(s.Table.PartitionKey, partition, func(sh *shape) *templates.Template { return &sh.partition })
	if s.Table.SortKey != "" {
		check(s.Table.SortKey, sort, func(sh *shape) *templates.Template { return &sh.sort })
	}
	if len(found.List) > 0 {
		return &found
	}
	s.kinds.mu.Lock()
	defer s.kinds.mu.Unlock()
	if s.kinds.told {
		if s.kinds.partition != partition || s.kinds.sort != sort {
			say("table.key_types", "load the rule file once more for this table",
				"the rules are in use for a table whose keys have other types")
			return &found
		}
		return nil
	}
	s.kinds.partition, s.kinds.sort, s.kinds.told = partition, sort, true
	for _, r := range s.Rules {
		r.heedNumbers()
	}
	return nil
}

// heedNumbers takes back what holds only while both sides of a join write a
// variable in the same way: a number key drops the zeros that a string key
// keeps, so that the way back from one to the other is not unique.
func (r *Rule) heedNumbers() {
	theirs, ours := r.sides()
	for slot, from := range r.join.fill {
		if from.isVariable() && theirs.shape.number(slot) != ours.shape.number(from.slot) {
			r.Injective, r.Collection = false, false
		}
	}
}

// number reports whether a variable is a whole number key.
func (sh *shape) number(slot int) bool {
	whole := func(kind change.Kind, t *templates.Template) bool {
		if kind != change.KindNumber {
			return false
		}
		of, single := t.Single()
		return single && of == slot
	}
	return whole(sh.kinds.partition, &sh.partition) || sh.hasSort && whole(sh.kinds.sort, &sh.sort)
}

// quote shows a value in a sentence, cut where it is long.
func quote(value string) string {
	const shown = 80
	if len(value) > shown {
		return fmt.Sprintf("%q...", value[:shown])
	}
	return fmt.Sprintf("%q", value)
}
