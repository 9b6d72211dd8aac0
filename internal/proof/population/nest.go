package population

import "slices"

// nest = { tree: Post, by: { postId: upper }, path: title as ownPath, lineage: ownLine }, with copies of what it writes, and a count of
// all that is below an item. Whether a file has it, it draws as forms are drawn, so that the other drafts stay what they are.
func (g *grammar) nest() {
	f := forms{file: g.text(forms{off: true})}
	e := g.entities[g.r.IntN(len(g.entities))]
	if !f.draws(nestPercent, "nest") || e.mirror {
		return
	}
	own := e.variables[len(e.variables)-1]
	upper := attribute{name: e.fresh("upper"), sort: link, of: own}
	single := slices.DeleteFunc(e.readable(), severalValues)
	path, lineage := "", ""
	var written []attribute
	n := g.r.IntN(5)
	if n > 0 {
		as := attribute{name: e.fresh("ownPath"), derived: true}
		path, written = "path: "+inYAML(named(g.oneOf(single).name)+" as "+as.name), append(written, as)
	}
	if n != 1 {
		as := attribute{name: e.fresh("ownLine"), sort: list, of: own, derived: true}
		lineage, written = "lineage: "+as.name, append(written, as)
	}
	e.attributes = append(e.attributes, upper)
	e.attributes = append(e.attributes, written...)
	g.add("tree", "tree: "+e.name, "by: { "+own+": "+upper.name+" }", path, lineage)
	g.element, g.each = attribute{}, ""
	for range 1 + g.r.IntN(2) {
		g.copy(e, g.any())
	}
	if n != 1 && g.chance(60) {
		g.element = attribute{name: "oneAbove", sort: link, of: own}
		g.each = "each: " + written[len(written)-1].name + " as " + g.element.name
		g.total("count", e, e, "count: "+e.name, "below", joined([][2]string{{own, g.element.name}}))
	}
}
