package conflicts

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/internal/rules/internal/check"
	"github.com/dynamill/dynamill/internal/rules/internal/declared"
	"github.com/dynamill/dynamill/internal/rules/internal/templates"
)

// Bounds of one derived entity: a transaction that makes or deletes one of its items checks each row that its rules'
// values are spread over, one condition names the stamps of all its rules, and one expression of at most 4 KB their attributes (Amazon
// DynamoDB developer guide, "Quotas").
const (
	derivedRulesMax      = 20
	derivedRowsMax       = 50
	derivedAttributesMax = 200
)

// derived checks the entities whose items rules make together, and the rules that do.
func (c *checker) derived() {
	for _, e := range c.file.Entities {
		if e.Decl.Derived.Given() {
			c.derivedEntity(e)
			c.derivedPlace(e)
		}
	}
}

func (c *checker) derivedEntity(e *check.Entity) {
	name, count, rows, attributes := e.Decl.Name.Text, 0, 0, 0
	for _, r := range c.file.Rules {
		switch {
		case r.Target != e:
		case r.Traits.MakesItems:
			c.Add(r.Decl.Target.At, "rule.makes_derived", "name another entity, or drop `derived` of "+name,
				"%s items are made by the rules that show values on them: %s is derived", name, name)
		case r.Derives() && r.Traits.OnItems != "":
			c.Add(r.Decl.Target.At, "rule.derived_by_kind", r.Traits.OnItems, "%s shows on items that the application makes: %s is derived",
				r.Traits.Noun, name)
		case r.Derives() && r.Join.ByUnique:
			c.Add(r.Decl.Target.At, "rule.derived_by_unique", "join by all variables of its key: an item that does not exist yet has no other id",
				"a derived %s cannot be found by its %s alone", name, e.Decl.Unique.Text)
		case r.Derives():
			count, rows, attributes = count+1, rows+r.Decl.Rows, attributes+len(r.Writes)
		}
		if slices.ContainsFunc(r.Writes, func(w check.Written) bool {
			return r.Target == e && w.As.Text == e.Decl.ExpireAttribute.Text
		}) {
			c.Add(e.Decl.ExpireAttribute.At, "rule.two_writers", "give one of them another attribute",
				"%s.%s is written by rule %s already", name, e.Decl.ExpireAttribute.Text, r.Decl.Name.Text)
		}
	}
	at := e.Decl.Derived.At
	switch {
	case count == 0 && !c.file.NamesUnknown && !c.targeted(e):
		c.Add(at, "entity.nothing_derives", fmt.Sprintf("give it a rule, as in `{ count: Post, as: %s.postCount }`, or drop `derived`", name),
			"no rule shows a value on the items of %s, and so makes them", name)
	case count > derivedRulesMax:
		c.Add(at, "entity.too_many_rules", "divide the attributes between two entities",
			"%d rules make the items of %s; at most %d can, since DynamoDB bounds the length of a condition", count, name, derivedRulesMax)
	case rows > derivedRowsMax:
		c.Add(at, "entity.too_many_rows", "lower `write_shards`",
			"the values of one %s are spread over %d rows; at most %d are allowed: one transaction checks them, and those of former `write_shards`",
			name, rows, derivedRowsMax)
	case attributes > derivedAttributesMax:
		c.Add(at, "entity.too_many_attributes", "divide the attributes between two entities, or show some in a list",
			"the rules of %s write %d attributes; at most %d are allowed, since DynamoDB limits an expression to 4 KB", name, attributes,
			derivedAttributesMax)
	}
}

// targeted reports whether a rule names the entity as its target, even one that has other problems.
func (c *checker) targeted(e *check.Entity) bool {
	return slices.ContainsFunc(c.file.Decl.Rules, func(d *declared.Declaration) bool { return d.Target.Text == e.Decl.Name.Text })
}

// derivedPlace reports another entity whose items could have the key of a derived one: dynamill replaces what stands there.
func (c *checker) derivedPlace(e *check.Entity) {
	budget := templates.OverlapStepsMax
	for i, other := range c.file.Entities {
		made := slices.ContainsFunc(c.file.Rules, func(r *check.Rule) bool { return r.Target == other && r.Traits.MakesItems })
		later := other.Decl.Derived.Given() && i > slices.Index(c.file.Entities, e)
		if other == e || made || later || e.Broken || other.Broken {
			continue
		}
		example, overlap := templates.Overlapping(e.Shape, other.Shape, &budget)
		if budget <= 0 {
			c.Add(e.Decl.Name.At, "entity.too_complex", "make the templates shorter",
				"it takes too long to tell whether %s items have keys of their own", e.Decl.Name.Text)
			return
		}
		if !overlap {
			continue
		}
		if example != "" {
			example = ", " + example
		}
		name := e.Decl.Name.Text
		c.Add(e.Decl.Name.At, "entity.derived_overlap",
			fmt.Sprintf("give %s a key that no other entity has, for instance one that begins with %s#", name, strings.ToUpper(name)),
			"a derived %s can have the key of a %s item (line %d)%s: dynamill would replace it", name, other.Decl.Name.Text,
			other.Decl.Name.At.Line, example)
		return
	}
}
