package check

import (
	"slices"
	"strings"

	"github.com/dynamill/dynamill/internal/rules/internal/joins"
)

// each checks the list of which a rule takes every element by itself, and the name of an element. That name stands for the
// element everywhere in the rule, so it must not be that of something else which the rule reads.
func (c *checker) each(r *Rule) {
	each := r.Decl.Each
	if each.Unread || !each.List.Given() {
		return
	}
	r.Each = each
	c.plainAttribute(each.List)
	c.plainAttribute(each.As)
	if c.isKey(each.List.Text) {
		c.Add(each.List.At, "rule.each", "name an attribute that holds a list or a set", "%s is a key of the table, and no list", each.List.Text)
	}
	name, is := each.As.Text, ""
	switch {
	case name == each.List.Text:
		is = "the list itself"
	case c.isKey(name):
		is = "a key of the table"
	case r.Source == nil:
	case slices.Contains(r.Source.Shape.Variables, name):
		is = "a variable of " + r.Source.Decl.Name.Text + "'s key"
	case slices.Contains(attributesOf(r.Source.Equals), name):
		is = "an attribute by which items are known as " + r.Source.Decl.Name.Text
	}
	if is != "" {
		c.Add(each.As.At, "rule.each_name", "give an element another name, as in `each: "+each.List.Text+" as "+another(name)+"`",
			"%s is %s, which the rule reads, too", name, is)
	}
}

// another is a name for an element that is not the one given.
func another(name string) string {
	if one, many := strings.CutSuffix(name, "s"); many && one != "" {
		return one
	}
	return "one" + strings.ToUpper(name[:1]) + strings.ReplaceAll(name[1:], " ", "")
}

// refOf says where a name is found on this side of a rule's join. Every name that is nothing else is an attribute's.
func (r *Rule) refOf(ours *Entity, name string) joins.Ref {
	if r.Each.As.Given() && name == r.Each.As.Text {
		return joins.Element(name)
	}
	return joins.Named(name, ours.Shape)
}

// eachMakesItems reports a rule that would make one item for all elements of a list.
func (c *checker) eachMakesItems(r *Rule) {
	target, name := r.Target.Decl.Name.Text, r.Each.As.Text
	holds := func(from joins.Ref) bool { return from.Holds(name) }
	if name == "" || !r.Traits.MakesItems || slices.ContainsFunc(r.Join.Fill, holds) || slices.ContainsFunc(r.Join.Fill, joins.Ref.IsNowhere) {
		return
	}
	hint := "put ${" + name + "} into the key of " + target + "; or fill a variable of it: `by: { variable: " + name + " }`"
	c.Add(r.Each.As.At, "rule.each_unused", hint,
		"the key of %s does not hold %s: all elements would ask for one item", target, name)
}
