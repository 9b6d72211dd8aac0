package population

// where = condition [ ( "&&" | "||" ) condition ], so often in a hundred.
func (g *grammar) where(e *entity, percent int) string {
	if !g.chance(percent) {
		return ""
	}
	all := e.readable()
	if g.element.name != "" {
		all = append(all, g.element, g.element)
	}
	text := g.condition(g.oneOf(all))
	if g.chance(25) {
		text += g.pick(" && ", " || ") + g.condition(g.oneOf(all))
	}
	return "where: '" + text + "'"
}

// condition is one that the attribute's values do not all meet.
func (g *grammar) condition(a attribute) string {
	name := named(a.name)
	switch a.sort {
	case number:
		return a.name + g.pick(" > 1", " <= 2", " != 0", " == 1", " < 2.5")
	case flag:
		return g.pick(name, "!"+name, name+" != true")
	case list, apart:
		if g.element.name == "" && g.chance(10) { // an item without a list has no elements either
			return "!has(" + name + ")"
		}
		return g.pick("has("+name+")", name+" != null")
	case link:
		return g.pick("has("+name+")", name+" != null", `!(`+name+` in ["5"])`)
	}
	return g.pick(name+` != "A"`, name+` == "A"`, name+` in ["A", "B"]`, "has("+name+")", name+`.startsWith("B")`)
}
