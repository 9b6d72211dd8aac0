package rules

import (
	"fmt"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/printable"
	"github.com/dynamill/dynamill/internal/rules/internal/templates"
)

// Identify says which entity the item with this key is of, if any. It allocates nothing; img is read only for
// entities that have Equals, and may be nil if no entity has.
func (s *Set) Identify(key change.Key, img change.Image) (Match, bool) {
	for _, e := range s.Entities {
		m := Match{Entity: e}
		if e.shape.Match(key, &m.vars) && e.Is(img) {
			return m, true
		}
	}
	return Match{}, false
}

// HasKey reports whether items of the entity have keys like this one. Whether
// an item is of the entity depends on its attributes, too.
func (e *Entity) HasKey(key change.Key) bool {
	var vars [VariablesMax]string
	return e.shape.Match(key, &vars)
}

// HasKeysLike reports whether two entities make the same keys, whatever the names of their variables.
func (e *Entity) HasKeysLike(other *Entity) bool {
	partition, sort := e.shape.Outlines()
	otherPartition, otherSort := other.shape.Outlines()
	return partition == otherPartition && sort == otherSort
}

// TemplateText is the entity's key templates, as the file has them, with " / " between.
func (e *Entity) TemplateText() string { return e.shape.Text() }

// Templates are the entity's key templates, as the file has them; sort is "" for a table without a sort key.
func (e *Entity) Templates() (partition, sort string) {
	return e.shape.Partition.Text, e.shape.Sort.Text
}

// FixedKeyTexts says what is fixed about the keys of the entity's items: enough to tell most records that concern no rule by
// their keys alone, and never to miss one. sort is nothing for a table without a sort key. A text that is fixed in no
// way, such as "${x}", may also be a number.
func (e *Entity) FixedKeyTexts() (partition, sort KeyText) {
	if e.shape.HasSort {
		sort = e.shape.Sort.Fixed()
	}
	return e.shape.Partition.Fixed(), sort
}

// Is reports whether an item under a key of the entity's is one of its items, by the attributes that tell it.
func (e *Entity) Is(img change.Image) bool {
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

// Key returns the item's key, rendered back from its variables.
func (m *Match) Key() change.Key {
	sh := m.Entity.shape
	var key change.Key
	key.Partition, _ = sh.Partition.Render(&m.vars)
	if sh.HasSort {
		key.Sort, _ = sh.Sort.Render(&m.vars)
	}
	return key
}

// render makes the key that vars ask for and reads it back: it refuses a value that would make it another key (a # where
// none may be). blame names where the value of a slot came from.
func (e *Entity) render(vars *[VariablesMax]string, blame func(slot int) string) (change.Key, error) {
	sh := e.shape
	if err := normalize(sh, vars, blame); err != nil {
		return change.Key{}, err
	}
	m := Match{Entity: e, vars: *vars}
	key := m.Key()
	if len(key.Partition) > templates.PartitionBytesMax || len(key.Sort) > templates.SortBytesMax {
		return change.Key{}, &ItemError{Code: "key.too_long", Reason: fmt.Sprintf(
			"the key of %s would have %d and %d bytes: DynamoDB allows %d for the partition key and %d for the sort key",
			e.Name, len(key.Partition), len(key.Sort), templates.PartitionBytesMax, templates.SortBytesMax)}
	}
	var back [VariablesMax]string
	if sh.Match(key, &back) && back == *vars {
		return key, nil
	}
	return change.Key{}, e.smuggled(vars, &back, blame)
}

// smuggled finds the variable to blame for a key that does not read back.
func (e *Entity) smuggled(vars, back *[VariablesMax]string, blame func(slot int) string) error {
	sh := e.shape
	for slot := range sh.Variables {
		if strings.Contains(vars[slot], "#") && !sh.Rests(slot) {
			return &ItemError{Code: "key.smuggled", Reason: fmt.Sprintf(
				"%s is %s: a key variable must not contain #", blame(slot), printable.Quoted(vars[slot]))}
		}
	}
	for slot := range sh.Variables {
		if vars[slot] != back[slot] {
			return &ItemError{Code: "key.smuggled", Reason: fmt.Sprintf(
				"%s is %s: it would not read back from the key of %s, %q", blame(slot), printable.Quoted(vars[slot]), e.Name, sh.Text())}
		}
	}
	return &ItemError{Code: "key.smuggled", Reason: fmt.Sprintf("the key of %s, %q, does not read back", e.Name, sh.Text())}
}

// normalize brings the variables to the form in which keys of the shape hold them: DynamoDB's form of numbers where they are
// whole number keys, and the variables' own formats.
func normalize(sh *templates.Shape, vars *[VariablesMax]string, blame func(slot int) string) error {
	for slot := range sh.Numbers {
		number, err := decimal.Parse(vars[slot])
		if err != nil {
			return &ItemError{Code: "value.type", Reason: fmt.Sprintf(
				"%s is %s: the table's key is a number", blame(slot), printable.Quoted(vars[slot]))}
		}
		vars[slot] = number.String()
	}
	for slot, format := range sh.Formats {
		text, err := formatted(vars[slot], format, func() string { return blame(slot) })
		if err != nil {
			return err
		}
		vars[slot] = text
	}
	return nil
}

// formatted is a value in the form in which a key of a format holds it, but for the zeros before a padded number.
func formatted(text string, format templates.Format, blame func() string) (string, error) {
	if format.Width == 0 {
		return format.Case.Of(text), nil
	}
	number, err := decimal.Parse(text)
	if err != nil {
		return "", &ItemError{Code: "value.type", Reason: fmt.Sprintf(
			"%s is %s: the key holds a number of %d digits", blame(), printable.Quoted(text), format.Width)}
	}
	if plain := number.String(); len(plain) <= format.Width && strings.Trim(plain, "0123456789") == "" {
		return plain, nil
	}
	return "", &ItemError{Code: "number.width", Reason: fmt.Sprintf(
		"%s is %s: the key holds a whole number from 0 up, of at most %d digits", blame(), printable.Quoted(text), format.Width)}
}
