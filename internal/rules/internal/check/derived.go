package check

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dynamill/dynamill/internal/rules/internal/declared"
	"github.com/dynamill/dynamill/internal/rules/internal/templates"
)

// derives reports whether the rule is one of those that make the items of a derived entity.
func (r *Rule) derives() bool {
	return r.traits.Displays != "" && r.Target != nil && r.Target.Decl.Derived.Given()
}

// derived checks the entities whose items rules make together, and the rules that do.
func (c *checker) derived() {
	for _, e := range c.out.Entities {
		c.expiry(e)
		if e.Decl.Derived.Given() {
			c.derivedEntity(e)
			c.derivedPlace(e)
		}
	}
}

func (c *checker) derivedEntity(e *Entity) {
	name, count, rows, attributes := e.Decl.Name.Text, 0, 0, 0
	for _, r := range c.out.Rules {
		switch {
		case r.Target != e:
		case r.traits.MakesItems:
			c.Add(r.Decl.Target.At, "rule.makes_derived", "name another entity, or drop `derived` of "+name,
				"%s items are made by the rules that show values on them: %s is derived", name, name)
		case r.derives() && r.traits.OnItems != "":
			c.Add(r.Decl.Target.At, "rule.derived_by_kind", r.traits.OnItems, "%s shows on items that the application makes: %s is derived",
				r.traits.Noun, name)
		case r.derives() && r.Join.ByUnique:
			c.Add(r.Decl.Target.At, "rule.derived_by_unique", "join by all variables of its key: an item that does not exist yet has no other id",
				"a derived %s cannot be found by its %s alone", name, e.Decl.Unique.Text)
		case r.derives():
			count, rows, attributes = count+1, rows+r.Decl.Rows, attributes+len(r.Writes)
		}
		if slices.ContainsFunc(r.Writes, func(w Written) bool {
			return r.Target == e && w.As.Text == e.Decl.ExpireAttribute.Text
		}) {
			c.Add(e.Decl.ExpireAttribute.At, "rule.two_writers", "give one of them another attribute",
				"%s.%s is written by rule %s already", name, e.Decl.ExpireAttribute.Text, r.Decl.Name.Text)
		}
	}
	at := e.Decl.Derived.At
	switch {
	case count == 0 && len(c.unknown) == 0 && !c.targeted(e):
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
func (c *checker) targeted(e *Entity) bool {
	return slices.ContainsFunc(c.file.Rules, func(d *declared.Declaration) bool { return d.Target.Text == e.Decl.Name.Text })
}

// derivedPlace reports another entity whose items could have the key of a derived one: dynamill replaces what stands there.
func (c *checker) derivedPlace(e *Entity) {
	budget := templates.OverlapStepsMax
	for i, other := range c.out.Entities {
		made := slices.ContainsFunc(c.out.Rules, func(r *Rule) bool { return r.Target == other && r.traits.MakesItems })
		later := other.Decl.Derived.Given() && i > slices.Index(c.out.Entities, e)
		if other == e || made || later || e.broken || other.broken {
			continue
		}
		example, overlap := templates.Overlapping(&e.Shape, &other.Shape, &budget)
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
