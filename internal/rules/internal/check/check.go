// Package check finds the problems of a rule file that is read: what is unknown, what does not fit together,
// and what two rules or entities do to each other. It works out how rules join on the way.
package check

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/rules/expr"
	"github.com/dynamill/dynamill/internal/rules/internal/declared"
	"github.com/dynamill/dynamill/internal/rules/internal/templates"
)

// reservedPrefix begins the names of the engine's own attributes.
const reservedPrefix = "_dm"

// File is a rule file in which everything is found and fits together.
type File struct {
	Table    *declared.Table
	Entities []*Entity
	Rules    []*Rule
}

// Entity is an entity with the shape of its keys.
type Entity struct {
	Decl   *declared.Entity
	Shape  templates.Shape
	Equals []Equals
	Unique Ref
	Expire time.Duration // how long an item of it lives after its last change; 0: for ever
	broken bool          // its key has problems: nothing is concluded from it

	uncertain []uncertainPlaceholder // each $name and :name of its key
	blamed    map[string]bool        // names of uncertain placeholders that a problem was reported of
}

// Rule is a rule with its entities, and how it joins them.
type Rule struct {
	Decl           *declared.Declaration
	traits         *declared.Traits
	Source, Target *Entity
	Join           Join
	Each           declared.Each
	Per            Ref // what the values of one target are told apart by; nowhere without `per`
	Where          *expr.Program
	Expressions    []*expr.Program // as Traits.Expressions lists them
	Writes         []Written
	Level          int

	Reads, ChildReads []string // attributes of the source, and of a child, on which the effect depends
}

// Written is an attribute that a rule writes, and what it is made from.
type Written struct {
	declared.Written
	Template *expr.Template // nil of one that is not worked out from an item alone
}

// sides are the entity whose key the join fills, and the entity that fills it.
func (r *Rule) sides() (theirs, ours *Entity) {
	if r.traits.HasParent {
		return r.Source, r.Target
	}
	return r.Target, r.Source
}

// checker finds the problems of a file. What it adds to findings names the
// place; what it returns is of use only if there are none.
type checker struct {
	declared.Parser
	file *declared.File
	out  File

	keysRefused bool                       // one problem tells that all entities have other keys than the table
	unknown     map[string][]declared.Word // names of entities that there are not, where rules have them
}

// Check adds the problems of a file to those that the parser found. What it returns is of use only if there are no problems.
func Check(p declared.Parser, file *declared.File) *File {
	c := &checker{Parser: p, file: file, out: File{Table: &file.Table}, unknown: map[string][]declared.Word{}}
	c.table()
	c.otherKeyNames()
	for i := range file.Entities {
		c.out.Entities = append(c.out.Entities, c.entity(&file.Entities[i]))
	}
	c.ambiguous()
	for _, decl := range file.Rules {
		if r := c.rule(decl); r != nil {
			r.Reads, r.ChildReads = c.readsOf(r)
			c.out.Rules = append(c.out.Rules, r)
		}
	}
	c.sayUnknown()
	c.twoWriters()
	c.places()
	c.derived()
	c.deleted()
	c.widths()
	c.circles()
	c.warnUncertain()
	return &c.out
}

func (c *checker) table() {
	for _, w := range append([]declared.Word{c.file.Table.TypeAttribute}, c.file.Table.Keys...) {
		c.topLevel(w)
	}
	for _, k := range c.file.Table.Keys {
		if k.Text == c.file.Table.TypeAttribute.Text {
			c.Add(c.file.Table.TypeAttribute.At, "table.type", "name the attribute that holds each item's entity name, or drop `type`",
				"the type attribute is the key %s", k.Text)
		}
	}
}

// reserved reports an attribute that is the engine's own.
func (c *checker) reserved(w declared.Word) { c.reservedHint(w, "choose another name") }

// reservedHint is reserved with a hint of the caller's.
func (c *checker) reservedHint(w declared.Word, hint string) {
	if strings.HasPrefix(w.Text, reservedPrefix) {
		c.Add(w.At, "rule.reserved_attribute", hint,
			"%q is reserved: dynamill keeps its stamps in attributes that begin with %s", w.Text, reservedPrefix)
	}
}

// topLevel checks an attribute by which items are known: it must not be the engine's own, or inside another one. A file that was in force
// once may have the latter.
func (c *checker) topLevel(w declared.Word) {
	c.reserved(w)
	if !c.Former {
		c.whole(w, "")
	}
}

// isKey reports whether the attribute is one of the table's keys.
func (c *checker) isKey(attribute string) bool {
	return slices.ContainsFunc(c.file.Table.Keys, func(k declared.Word) bool { return k.Text == attribute })
}

func (c *checker) entity(decl *declared.Entity) *Entity {
	e := &Entity{Decl: decl, Unique: nowhere, blamed: map[string]bool{}}
	c.templates(e)
	c.equals(e)
	if u := decl.Unique; u.Given() {
		e.Unique = Ref{Slot: slices.Index(e.Shape.Variables, u.Text), Attribute: u.Text}
		c.topLevel(u)
		if c.isKey(u.Text) {
			c.Add(u.At, "entity.unique", "name a variable of the key, or another attribute", "%s is the table's key, not an id of %s", u.Text,
				decl.Name.Text)
		}
	}
	return e
}

// equals collects the attributes that the entity's items must have. A match on
// the type attribute says what the type is, where it is not the entity's name.
func (c *checker) equals(e *Entity) {
	typed := c.file.Table.TypeAttribute.Text
	for _, m := range e.Decl.Match {
		c.topLevel(m.Name)
		if c.isKey(m.Name.Text) {
			c.Add(m.Name.At, "entity.match", "the key template says what the key is", "%s is a key of the table and cannot be matched on",
				m.Name.Text)
		}
		if m.Name.Text == typed {
			typed = ""
		}
		e.Equals = append(e.Equals, Equals{Attribute: m.Name.Text, Value: m.Value})
	}
	if typed != "" {
		e.Equals = append(e.Equals, Equals{Attribute: typed, Value: change.String(e.Decl.Name.Text)})
	}
}

// ambiguous reports entities that one item could be of at once.
func (c *checker) ambiguous() {
	budget := templates.OverlapStepsMax
	for i, b := range c.out.Entities {
		for _, a := range c.out.Entities[:i] {
			if a.broken || b.broken || contradict(a.Equals, b.Equals) {
				continue
			}
			example, overlap := templates.Overlapping(&a.Shape, &b.Shape, &budget)
			if budget <= 0 {
				c.Add(b.Decl.Name.At, "entity.too_complex", "make the templates shorter",
					"it takes too long to tell whether these entities can be told apart")
				return
			}
			if overlap {
				c.sayAmbiguous(a, b, example)
				break // the others of this shape cannot be told from the first either
			}
		}
	}
}

func (c *checker) sayAmbiguous(a, b *Entity, example string) {
	an, bn := a.Decl.Name.Text, b.Decl.Name.Text
	if example != "" {
		example = ": an item with the key " + example + " could be either"
	}
	c.Add(b.Decl.Name.At, "entity.ambiguous",
		fmt.Sprintf("change a template; or give each a `match` of its own, as in `match: { kind: %s }`; or name the table's `type` attribute",
			strings.ToLower(bn)),
		"%s and %s (line %d) cannot be told apart%s", bn, an, a.Decl.Name.At.Line, example)
}

// contradict reports whether no item can have both lists of attributes.
func contradict(a, b []Equals) bool {
	return slices.ContainsFunc(a, func(x Equals) bool {
		return slices.ContainsFunc(b, func(y Equals) bool { return x.Attribute == y.Attribute && !x.Value.Equal(y.Value) })
	})
}
