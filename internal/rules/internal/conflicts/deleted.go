package conflicts

import (
	"slices"

	"github.com/dynamill/dynamill/internal/rules/internal/check"
	"github.com/dynamill/dynamill/internal/rules/internal/joins"
	"github.com/dynamill/dynamill/internal/rules/internal/templates"
)

// deleted checks the rules that delete items which the application made. A deletion cannot be taken back. So nothing that another rule
// works out, and that may be wrong for a while, decides on it: both sides are the application's items, and so is what joins them.
func (c *checker) deleted() {
	for _, r := range c.file.Rules {
		if !r.Traits.Deletes {
			continue
		}
		c.deletesOwnParents(r)
		c.deletesAll(r)
		c.deletesInPlace(r)
		c.deletesMade(r)
		c.deletesByWritten(r)
	}
}

// deletesOwnParents reports a rule whose children are parents of the same entity.
func (c *checker) deletesOwnParents(r *check.Rule) {
	if name := r.Target.Decl.Name.Text; r.Target == r.Source {
		c.Add(r.Decl.Source.At, "rule.deletes_itself",
			"have the application delete the "+name+" items below, or give those that are to go an entity of their own",
			"%s items would go with %s items: the deletion of one item could end in that of all", name, name)
	}
}

// deletesAll reports a rule under which all children go with one item: the parents' key has no variable, or constants fill it.
func (c *checker) deletesAll(r *check.Rule) {
	parent, refs := r.Source, r.Join.Refs()
	reads := func(from joins.Ref) bool { return from.Expression == nil || len(from.Expression.Reads()) > 0 }
	if c.Former || r.Target == parent || parent.Broken || r.Decl.BadBy || slices.ContainsFunc(refs, reads) {
		return
	}
	if len(refs) == 0 {
		c.Add(r.Decl.Source.At, "rule.deletes_all", "give the key of "+parent.Decl.Name.Text+" a variable, as in `POST#${postId}`",
			"the key of %s has no variable: all %s items would go with one item", parent.Decl.Name.Text, r.Target.Decl.Name.Text)
		return
	}
	c.Add(r.Decl.PlaceOf("by"), "rule.deletes_all", "join by an attribute of the items that are to go",
		"every %s would belong to one %s: all would go with it", r.Target.Decl.Name.Text, parent.Decl.Name.Text)
}

// deletesInPlace reports a rule whose children have the keys of their parents: no child can be there beside its parent.
func (c *checker) deletesInPlace(r *check.Rule) {
	budget := templates.OverlapStepsMax
	isNot := func(from joins.Ref) bool { return !from.IsVariable() }
	if r.Target == r.Source || r.Source.Broken || r.Target.Broken || r.Join.ByUnique || slices.ContainsFunc(r.Join.Fill, isNot) {
		return
	}
	if _, overlap := templates.Overlapping(r.Source.Shape, r.Target.Shape, &budget); overlap {
		c.Add(r.Decl.Source.At, "rule.deletes_itself", "name another entity, or join by an attribute: `by: { ...: ... }`",
			"a %s could have the same key as the %s that it belongs to: a table holds only one of them", r.Target.Decl.Name.Text,
			r.Source.Decl.Name.Text)
	}
}

// deletesMade reports items that rules make, on either side: they come and go with their sources.
func (c *checker) deletesMade(r *check.Rule) {
	maker := func(e *check.Entity) *check.Rule {
		i := slices.IndexFunc(c.file.Rules, func(m *check.Rule) bool { return m.Target == e && (m.Traits.MakesItems || m.Derives()) })
		if i < 0 {
			return nil
		}
		return c.file.Rules[i]
	}
	if m := maker(r.Source); m != nil {
		name := m.Decl.Name.Text
		c.Add(r.Decl.Source.At, "rule.deletes_with_made", "name "+m.Source.Decl.Name.Text+", whose items cause them",
			"rule %s makes %s items and deletes them again: such an item must not decide a deletion that cannot be undone", name,
			r.Source.Decl.Name.Text)
	}
	if m := maker(r.Target); m != nil {
		name := m.Decl.Name.Text
		c.Add(r.Decl.Target.At, "rule.deletes_made", "let "+m.Source.Decl.Name.Text+" items go: what rule "+name+" makes of them goes with them",
			"rule %s makes %s items, and would put a deleted one back", name, r.Target.Decl.Name.Text)
	}
}

// deletesByWritten reports attributes, written by rules, on which it depends to which parent a child belongs.
func (c *checker) deletesByWritten(r *check.Rule) {
	for _, w := range c.file.Rules {
		for _, written := range w.Writes {
			if w.Target != r.Target || !slices.Contains(r.ChildReads, written.As.Text) {
				continue
			}
			c.Add(r.Decl.PlaceOf("by"), "rule.deletes_by_written", "join by an attribute that the application writes",
				"rule %s writes %s of %s: while it is wrong, items would be deleted", w.Decl.Name.Text, written.As.Text,
				r.Target.Decl.Name.Text)
		}
	}
}
