// Package check finds the problems that a rule or an entity of a rule file has by itself: what is unknown, and what
// does not fit together. It works out how rules join on the way.
package check

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/rules/expr"
	"github.com/dynamill/dynamill/internal/rules/internal/declared"
	"github.com/dynamill/dynamill/internal/rules/internal/joins"
	"github.com/dynamill/dynamill/internal/rules/internal/templates"
)

// reservedPrefix begins the names of the engine's own attributes.
const reservedPrefix = "_dm"

// File is a rule file with what its rules and entities say, as far as they have no problems.
type File struct {
	Decl         *declared.File
	Entities     []*Entity
	Rules        []*Rule // those of known entities
	NamesUnknown bool    // a rule names an entity that does not exist
}

// Equals is one attribute that an entity's items must have.
type Equals struct {
	Attribute string
	Value     change.Value // S, N or BOOL
}

// Entity is an entity with the shape of its keys.
type Entity struct {
	Decl   *declared.Entity
	Shape  *templates.Shape // allocated on its own: a compiled set keeps it
	Equals []Equals
	Unique joins.Ref
	Expire time.Duration // how long an item of it lives after its last change; 0: for ever
	Broken bool          // its key has problems: nothing is concluded from it

	uncertain []uncertainPlaceholder // each $name and :name of its key
	blamed    map[string]bool        // names of uncertain placeholders that a problem was reported of
}

// Rule is a rule with its entities, and how it joins them.
type Rule struct {
	Decl           *declared.Declaration
	Traits         *declared.Traits
	Source, Target *Entity
	Join           joins.Join
	Each           declared.Each
	Per            joins.Ref // what the values of one target are told apart by; nowhere without `per`
	Where          *expr.Program
	Expressions    []*expr.Program // as Traits.Expressions lists them
	Writes         []Written
	Level          int // as package conflicts finds it

	Reads, ChildReads []string // attributes of the source, and of a child, on which the effect depends
}

// Written is an attribute that a rule writes, and what it is made from.
type Written struct {
	declared.Written
	Template *expr.Template // nil of one that is not worked out from an item alone
}

// sides are the entity whose key the join fills, and the entity that fills it.
func (r *Rule) sides() (theirs, ours *Entity) {
	if r.Traits.HasParent {
		return r.Source, r.Target
	}
	return r.Target, r.Source
}

// Derives reports whether the rule is one of those that make the items of a derived entity.
func (r *Rule) Derives() bool {
	return r.Traits.Displays != "" && r.Target != nil && r.Target.Decl.Derived.Given()
}

// checker finds the problems of a file.
type checker struct {
	declared.Parser
	file *declared.File
	out  File

	keysRefused bool                       // one problem tells that all entities have other keys than the table
	unknown     map[string][]declared.Word // names of entities that there are not, where rules have them
}

// Check adds the problems that each entity and rule has by itself. Package conflicts reads the result even if there are problems;
// compile reads it only if there are none.
func Check(p declared.Parser, file *declared.File) *File {
	c := &checker{Parser: p, file: file, out: File{Decl: file}, unknown: map[string][]declared.Word{}}
	c.table()
	c.otherKeyNames()
	for i := range file.Entities {
		c.out.Entities = append(c.out.Entities, c.entity(&file.Entities[i]))
	}
	for _, decl := range file.Rules {
		if r := c.rule(decl); r != nil {
			r.Reads, r.ChildReads = c.readsOf(r)
			c.out.Rules = append(c.out.Rules, r)
		}
	}
	c.out.NamesUnknown = len(c.unknown) > 0
	c.sayUnknown()
	c.widths()
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
	e := &Entity{Decl: decl, Shape: &templates.Shape{}, Unique: joins.Nowhere, blamed: map[string]bool{}}
	c.templates(e)
	c.equals(e)
	if u := decl.Unique; u.Given() {
		e.Unique = joins.Named(u.Text, e.Shape)
		c.topLevel(u)
		if c.isKey(u.Text) {
			c.Add(u.At, "entity.unique", "name a variable of the key, or another attribute", "%s is the table's key, not an id of %s", u.Text,
				decl.Name.Text)
		}
	}
	c.expiry(e)
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

// expiry checks how long items of an entity live.
func (c *checker) expiry(e *Entity) {
	x, attribute, name := e.Decl.Expire, e.Decl.ExpireAttribute, e.Decl.Name.Text
	const hint = "write `derived: true, expire: 90d, expire_attribute: ttl`"
	switch {
	case !x.Given() && !attribute.Given():
		return
	case !e.Decl.Derived.Given():
		at := x
		if !x.Given() {
			at = attribute
		}
		c.Add(at.At, "entity.expire", hint, "only items of a derived entity expire; %s is none", name)
		return
	case !attribute.Given():
		c.Add(x.At, "entity.expire", hint+" with the table's TTL attribute", "%s does not say which attribute holds the time", name)
		return
	case !x.Given():
		c.Add(attribute.At, "entity.expire", hint, "%s does not say after how long its items expire", name)
		return
	}
	number, isDays := strings.CutSuffix(x.Text, "d")
	days, err := strconv.Atoi(number)
	if !isDays || err != nil || days < 1 || days > expireDaysMax {
		c.Add(x.At, "entity.expire", hint, "expire must be a number of days, from 1d to %dd", expireDaysMax)
		return
	}
	e.Expire = time.Duration(days) * 24 * time.Hour
	c.plainAttribute(attribute)
	tells := slices.ContainsFunc(e.Equals, func(eq Equals) bool { return eq.Attribute == attribute.Text })
	if c.isKey(attribute.Text) || tells || e.Decl.Unique.Text == attribute.Text {
		c.Add(attribute.At, "entity.expire", "choose an attribute that is for nothing else", "%s tells a %s item from others",
			attribute.Text, name)
	}
}
