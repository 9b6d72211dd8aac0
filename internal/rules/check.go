package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/rules/expr"
	"github.com/dynamill/dynamill/internal/rules/internal/document"
)

// Bounds of a rule file. actionsMax: DynamoDB API, TransactWriteItems.
const (
	FileBytesMax = document.FileBytesMax
	EntitiesMax  = 200
	RulesMax     = 500
	actionsMax   = 100
)

// reservedPrefix begins the names of the engine's own attributes.
const reservedPrefix = "_dm"

// checked is a rule file in which everything is found and fits together.
type checked struct {
	table    *tableDecl
	entities []*checkedEntity
	rules    []*checkedRule
}

type checkedEntity struct {
	decl   *entityDecl
	shape  shape
	equals []Equals
	unique ref
	broken bool // its key has problems: nothing is concluded from it

	uncertain []uncertainPlaceholder // each $name and :name of its key
	blamed    map[string]bool        // names of uncertain placeholders that a problem was reported of
}

type checkedRule struct {
	decl           *Declaration
	traits         *Traits
	source, target *checkedEntity
	join           join
	where          *expr.Program
	expressions    []*expr.Program // as Traits.Expressions lists them
	writes         []written
	level          int
}

// sides are the entity whose key the join fills, and the entity that fills it.
func (r *checkedRule) sides() (theirs, ours *checkedEntity) {
	if r.traits.HasParent {
		return r.source, r.target
	}
	return r.target, r.source
}

// checker finds the problems of a file. What it adds to findings names the
// place; what it returns is of use only if there are none.
type checker struct {
	fileParser
	file   *fileDecl
	out    checked
	former bool // placeholders of other tools are constants

	keysRefused bool              // one problem tells that all entities have other keys than the table
	unknown     map[string][]Word // names of entities that there are not, where rules have them
}

func check(p fileParser, file *fileDecl, former bool) *checked {
	c := &checker{fileParser: p, file: file, out: checked{table: &file.table}, former: former, unknown: map[string][]Word{}}
	c.table()
	c.otherKeyNames()
	for i := range file.entities {
		c.out.entities = append(c.out.entities, c.entity(&file.entities[i]))
	}
	c.ambiguous()
	for _, decl := range file.rules {
		if r := c.rule(decl); r != nil {
			c.out.rules = append(c.out.rules, r)
		}
	}
	c.sayUnknown()
	c.twoWriters()
	c.places()
	c.widths()
	c.circles()
	c.actions()
	c.warnUncertain()
	return &c.out
}

func (c *checker) table() {
	for _, w := range append([]Word{c.file.table.typeAttribute}, c.file.table.keys...) {
		c.reserved(w)
	}
	for _, k := range c.file.table.keys {
		if k.text == c.file.table.typeAttribute.text {
			c.Add(c.file.table.typeAttribute.at, "table.type", "name the attribute that holds each item's entity name, or drop `type`",
				"the type attribute is the key %s", k.text)
		}
	}
}

// reserved reports an attribute that is the engine's own.
func (c *checker) reserved(w Word) {
	if strings.HasPrefix(w.text, reservedPrefix) {
		c.Add(w.at, "rule.reserved_attribute", "choose another name",
			"%q is reserved: dynamill keeps its stamps in attributes that begin with %s", w.text, reservedPrefix)
	}
}

// isKey reports whether the attribute is one of the table's keys.
func (c *checker) isKey(attribute string) bool {
	for _, k := range c.file.table.keys {
		if k.text == attribute {
			return true
		}
	}
	return false
}

func (c *checker) entity(decl *entityDecl) *checkedEntity {
	e := &checkedEntity{decl: decl, unique: nowhere}
	c.templates(e)
	c.equals(e)
	if u := decl.unique; u.Given() {
		e.unique = ref{slot: slices.Index(e.shape.variables, u.text), attribute: u.text}
		c.reserved(u)
		if c.isKey(u.text) {
			c.Add(u.at, "entity.unique", "name a variable of the key, or another attribute", "%s is the table's key, not an id of %s", u.text,
				decl.name.text)
		}
	}
	return e
}

// equals collects the attributes that the entity's items must have. A match on
// the type attribute says what the type is, where it is not the entity's name.
func (c *checker) equals(e *checkedEntity) {
	typed := c.file.table.typeAttribute.text
	for _, m := range e.decl.match {
		c.reserved(m.Name)
		if c.isKey(m.Name.text) {
			c.Add(m.Name.at, "entity.match", "the key template says what the key is", "%s is a key of the table and cannot be matched on",
				m.Name.text)
		}
		if m.Name.text == typed {
			typed = ""
		}
		e.equals = append(e.equals, Equals{Attribute: m.Name.text, Value: m.Value})
	}
	if typed != "" {
		e.equals = append(e.equals, Equals{Attribute: typed, Value: change.String(e.decl.name.text)})
	}
}

// ambiguous reports entities that one item could be of at once.
func (c *checker) ambiguous() {
	budget := overlapStepsMax
	for i, b := range c.out.entities {
		for _, a := range c.out.entities[:i] {
			if a.broken || b.broken || contradict(a.equals, b.equals) {
				continue
			}
			example, overlap := overlapping(&a.shape, &b.shape, &budget)
			if budget <= 0 {
				c.Add(b.decl.name.at, "entity.too_complex", "make the templates shorter",
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

func (c *checker) sayAmbiguous(a, b *checkedEntity, example string) {
	an, bn := a.decl.name.text, b.decl.name.text
	if example != "" {
		example = ": an item with the key " + example + " could be either"
	}
	c.Add(b.decl.name.at, "entity.ambiguous",
		fmt.Sprintf("change a template; or give each a `match` of its own, as in `match: { kind: %s }`; or name the table's `type` attribute",
			strings.ToLower(bn)),
		"%s and %s (line %d) cannot be told apart%s", bn, an, a.decl.name.at.Line, example)
}

// contradict reports whether no item can have both lists of attributes.
func contradict(a, b []Equals) bool {
	for _, x := range a {
		for _, y := range b {
			if x.Attribute == y.Attribute && !x.Value.Equal(y.Value) {
				return true
			}
		}
	}
	return false
}
