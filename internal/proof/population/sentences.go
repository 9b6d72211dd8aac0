package population

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// copy = { copy: [name as userName], from: User, to: Comment, by: userId, if_missing: { userName: "?" } }.
func (g *grammar) copy(parent, child *entity) {
	parent, child = pairUp(parent, child)
	by, ok := g.by(parent, child, false)
	if !ok {
		return
	}
	var pairs []string
	missing := ""
	for _, from := range g.someOf(parent, 2) {
		as := attribute{name: child.fresh(prefixed(parent, from.name)), sort: from.sort, of: from.of, derived: true}
		child.attributes = append(child.attributes, as)
		pairs = append(pairs, inYAML(named(from.name)+" as "+named(as.name)))
		if missing == "" && g.chance(35) {
			missing = fmt.Sprintf("if_missing: { %s: %s }", inYAML(named(as.name)), g.pick(`"?"`, "0", "null"))
		}
	}
	g.add("copy", "copy: ["+strings.Join(pairs, ", ")+"]", "from: "+parent.name, "to: "+child.name, by, missing)
}

// mirror = turned | indexed: a new entity whose items are those of another, under another key.
func (g *grammar) mirror(source *entity) {
	if len(g.entities) == entitiesMax {
		return
	}
	variables, by := g.turned(source), ""
	if len(variables) == 0 || g.chance(60) {
		var ok bool
		if variables, by, ok = g.indexed(source); !ok {
			return
		}
	}
	target := &entity{name: fmt.Sprintf("%sView%d", source.name, len(g.entities)), mirror: true, source: source, variables: variables}
	g.shape(target)
	var pairs []string
	for _, from := range g.someOf(source, 3) {
		as := attribute{name: from.name, sort: from.sort, of: from.of, derived: true}
		pair := named(from.name)
		if target.has(from.name) || g.chance(25) {
			as.name = target.fresh("its" + title(from.name))
			pair += " as " + named(as.name)
		}
		target.attributes = append(target.attributes, as)
		pairs = append(pairs, inYAML(pair))
	}
	if x := g.element; x.name != "" && g.chance(30) {
		target.attributes = append(target.attributes, attribute{name: target.fresh(x.name), sort: x.sort, of: x.of, derived: true})
		pairs = append(pairs, x.name+" as "+target.attributes[len(target.attributes)-1].name)
	}
	set := ""
	if g.chance(25) {
		set = "set: { origin: " + g.pick("mirror", "7", "true", "null") + " }"
	}
	if links := ofSort(target.readable(), link); len(links) > 0 && g.chance(35) {
		target.unique = g.oneOf(links).name
	}
	if g.chance(25) {
		target.match = g.pick("{ kind: view }", "{ draft: false, level: 1 }")
	}
	g.entities = append(g.entities, target)
	g.add("mirror", "mirror: "+source.name, "as: "+target.name, g.each, "attributes: ["+strings.Join(pairs, ", ")+"]", set, by,
		g.where(source, 35))
}

// derive = { count: Post, as: PostSum4.postCount, by: code }, at times beside a sum: a new derived entity.
func (g *grammar) derive(source *entity) {
	if len(g.entities) == entitiesMax {
		return
	}
	variables, by := g.turned(source), ""
	if len(variables) == 0 || g.chance(60) {
		var ok bool
		if variables, by, ok = g.indexed(source); !ok {
			return
		}
	}
	name := fmt.Sprintf("%sSum%d", source.name, len(g.entities))
	target := &entity{name: name, mirror: true, source: source, derived: "derived: true", variables: variables}
	g.shape(target)
	if g.chance(25) {
		target.match = g.pick("{ kind: sum }", "{ draft: false, level: 1 }")
	}
	if g.chance(50) {
		target.derived += ", expire: 30d, expire_attribute: until"
	}
	numbers := ofSort(source.attributes, number)
	if len(numbers) == 0 || g.chance(60) {
		g.total("count", source, target, "count: "+source.name, "count", by)
	}
	if len(numbers) > 0 && (len(target.attributes) == 0 || g.chance(70)) {
		kind := g.adderWord(g.r.IntN(10))
		g.total(kind, source, target, kind+": '"+g.oneOf(numbers).name+"', of: "+source.name, "total", by)
	}
	g.entities = append(g.entities, target)
}

// turned = the same variables in another order, or only the last of them:
// then several sources ask for one mirror item.
func (g *grammar) turned(source *entity) (variables []string) {
	last := len(source.variables) - 1
	if last == 0 {
		return nil
	}
	variables = []string{source.variables[last]}
	if g.chance(70) {
		variables = append(variables, source.variables[:last]...)
	}
	return variables
}

// indexed = by what an attribute says, at times beside the source's own id; or by each element of a list, mostly beside all
// of the source's key.
func (g *grammar) indexed(source *entity) (variables []string, by string, ok bool) {
	of := g.pick("code", "code", g.entities[0].variables[0])
	variables = []string{"code"}
	if slices.Contains(source.variables, "code") {
		return nil, "", false
	}
	for _, a := range ofSort(source.attributes, list) {
		if a.derived && a.of != "" && g.chance(70) {
			of = a.of
		}
	}
	if len(source.variables) < 3 && g.chance(60) && g.takeElement(source, of) {
		if g.chance(80) {
			variables = append(variables, source.variables...)
		}
		return variables, joined([][2]string{{"code", g.element.name}}), true
	}
	name, ok := g.link(source, of)
	if !ok {
		return nil, "", false
	}
	if g.chance(40) {
		variables = append(variables, source.variables[0])
	}
	return variables, joined([][2]string{{"code", name}}), true
}

// takeElement has the rule take every element of a list of these values by itself. An entity that the application writes
// is given one.
func (g *grammar) takeElement(e *entity, of string) bool {
	var known []attribute
	for _, a := range ofSort(e.attributes, list) {
		if a.of == of {
			known = append(known, a)
		}
	}
	base, sort := strings.TrimSuffix(of, "Id"), link
	if of == "" {
		base, sort = "size", number
	}
	switch {
	case len(known) == 0 && e.mirror:
		return false
	case len(known) == 0:
		known = []attribute{{name: e.fresh(base + "List"), sort: list, of: of}}
		e.attributes = append(e.attributes, known[0])
	}
	g.element = attribute{name: "one" + title(base), sort: sort, of: of}
	if e.has(g.element.name) {
		g.element = attribute{}
		return false
	}
	g.each = "each: " + g.oneOf(known).name + " as " + g.element.name
	return true
}

// count = { count: Comment, as: Post.commentCount, by: postId, where: 'role != "A"', write_shards: 2 }.
func (g *grammar) count(source, target *entity) {
	source, target = pairUp(source, target)
	g.aggregate("count", source, target, "count: "+source.name, "count")
}

// adder = { sum: 'price * quantity', of: Item, as: Order.itemTotal, ... }.
func (g *grammar) adder(kind string, source, target *entity) {
	source, target = pairUp(source, target)
	if g.chance(15) && g.takeElement(source, "") {
		g.aggregate(kind, source, target, kind+": '"+g.pick("oneSize", "oneSize", "oneSize * 2")+"', of: "+source.name, "total")
		return
	}
	numbers := ofSort(source.attributes, number)
	if len(numbers) == 0 {
		return
	}
	one, two := g.oneOf(numbers).name, g.oneOf(numbers).name
	amount := g.pick(one, one, one+" * "+two, one+" + 0.1", one+" - "+two, one+" / 3", one+" / "+two, one+" / "+two)
	g.aggregate(kind, source, target, kind+": '"+amount+"', of: "+source.name, "total")
}

func (g *grammar) aggregate(kind string, source, target *entity, what, suffix string) {
	if by, ok := g.by(target, source, true); ok {
		g.total(kind, source, target, what, suffix, by)
	}
}

// total adds a rule that shows a total on a target.
func (g *grammar) total(kind string, source, target *entity, what, suffix, by string) {
	where := g.where(source, 35) // drawn before the attribute is there, or it could read what it writes
	per := g.per(kind, source, target, by)
	as := attribute{name: target.fresh(prefixed(source, suffix)), sort: number, derived: true}
	if per != "" {
		as.sort = apart
	}
	target.attributes = append(target.attributes, as)
	shards := ""
	if g.chance(35) {
		shards = "write_shards: " + strconv.Itoa(1+g.r.IntN(4))
	}
	none := ""
	if kind != "average" && g.chance(25) {
		none = "if_none: absent"
	}
	g.add(kind, what, "as: "+target.name+"."+as.name, g.each, by, per, where, shards, none)
	g.ordered(source, target, by, where)
}

// per = role, or the element of a list, or a variable of the source's key, or an expression, but nothing that says which target an item
// belongs to. It draws nothing, so that all else of the file stays.
func (g *grammar) per(kind string, source, target *entity, by string) string {
	n := len(g.rules)
	if kind == "average" || n%3 != 0 {
		return ""
	}
	all := slices.DeleteFunc(source.readable(), severalValues)
	if g.element.name != "" {
		all = append(all, g.element, g.element)
	}
	for _, v := range source.variables {
		all = append(all, attribute{name: v, sort: link})
	}
	namesTarget := func(a attribute) bool {
		joins := regexp.MustCompile(`\b` + regexp.QuoteMeta(a.name) + `\b`)
		return a.name == target.unique || slices.Contains(target.variables, a.name) || joins.MatchString(by)
	}
	i := (7*n + len(source.attributes)) % len(all)
	if all = slices.DeleteFunc(slices.Concat(all[i:], all[:i]), namesTarget); len(all) == 0 {
		return ""
	}
	of := all[0]
	if n%4 == 2 && isWord.MatchString(of.name) && (of.sort == text || of.sort == link && of.of != "") {
		return "per: " + g.reworked(of.name)
	}
	return "per: " + inYAML(named(of.name))
}

// own = { set: { itsKey: '${pad(score, 3)}#${lower(name)}', itsTotal: = price * 2 }, of: Post, where: ... }.
func (g *grammar) own(e *entity) {
	where := g.where(e, 40)
	var set []string
	var written []attribute
	for range 1 + g.r.IntN(2) {
		as, text := g.worked(e)
		written, set = append(written, as), append(set, inYAML(named(as.name))+": '"+text+"'")
	}
	if g.chance(25) {
		as := attribute{name: e.fresh("ownKind"), derived: true}
		value := g.pick("thing", "7", "true")
		switch value {
		case "7":
			as.sort = number
		case "true":
			as.sort = flag
		}
		set, written = append(set, as.name+": "+value), append(written, as)
	}
	if slices.ContainsFunc(written, func(a attribute) bool { return e.has(a.name) }) ||
		len(written) > 1 && written[0].name == written[1].name {
		return
	}
	e.attributes = append(e.attributes, written...)
	g.add("set", "set: { "+strings.Join(set, ", ")+" }", "of: "+e.name, where)
}

// worked is an attribute that is worked out from others of its item, and the text that does.
func (g *grammar) worked(e *entity) (attribute, string) {
	from := g.oneOf(e.readable())
	as := attribute{name: e.fresh("own" + title(from.name)), derived: true}
	single := slices.DeleteFunc(e.readable(), severalValues)
	numbers := ofSort(e.attributes, number)
	switch {
	case severalValues(from) || g.chance(30): // as it is
		as.sort, as.of = from.sort, from.of
		return as, "${" + named(from.name) + "}"
	case len(numbers) > 0 && g.chance(40):
		one, two := g.oneOf(numbers).name, g.oneOf(numbers).name
		as.name, as.sort = e.fresh("own"+title(one)), number
		return as, "= " + g.pick(one+" * "+two, one+" + 0.1", one+" - "+two+" * 2", one+" / 4")
	}
	text := g.pick("X#", "", "#") + g.hole(from)
	for range g.r.IntN(3) {
		text += g.pick("#", "/", "") + g.hole(g.oneOf(single))
	}
	if strings.HasPrefix(text, "${") && strings.Count(text, "${") == 1 {
		text += "#"
	}
	return as, text
}

// hole is an expression inside a text.
func (g *grammar) hole(a attribute) string {
	name := named(a.name)
	switch a.sort {
	case number:
		return g.pick("${pad("+name+", 2)}", "${"+name+"}", "${"+name+" * 10}")
	case text:
		return g.pick("${lower("+name+")}", "${upper("+name+")}", "${trim("+name+")}", "${"+name+"[0:1]}", "${"+name+"}")
	}
	return "${" + a.name + "}"
}

// by says how the key of theirs is filled from ours: by variables of the same
// name, by attributes, or, for an aggregate, by their unique id alone.
func (g *grammar) by(theirs, ours *entity, aggregate bool) (by string, ok bool) {
	alike := theirs.excludes(ours)
	if theirs == ours && !g.chance(30) {
		return "", false
	}
	var pairs [][2]string
	missing := false
	for _, v := range theirs.variables {
		same := slices.Contains(ours.variables, v)
		if same && !alike && !g.chance(8) {
			continue
		}
		missing = missing || !same
		name, ok := g.joining(ours, v, aggregate)
		if !ok {
			return "", false
		}
		pairs = append(pairs, [2]string{v, name})
	}
	often := 35
	if aggregate {
		often = 70
	}
	if missing && theirs.unique != "" && g.chance(often) {
		if name, ok := g.joining(ours, theirs.unique, aggregate); ok {
			pairs = [][2]string{{theirs.unique, name}}
		}
	}
	switch {
	case len(pairs) > variablesJoinedMax:
		return "", false
	case aggregate && !missing && slices.Contains(ours.variables, theirs.unique): // their whole key is known, too
		return "by: " + theirs.unique, true
	case len(pairs) == 1 && missing && !theirs.has(pairs[0][1]) && pairs[0][0] != theirs.unique && len(g.rules)%2 == 0:
		return "by: " + pairs[0][1], true // the variable that is left
	}
	for i := range pairs {
		if (len(g.rules)+i)%8 == 1 && pairs[i][0] != theirs.unique {
			pairs[i][1] = g.reworked(pairs[i][1])
		}
	}
	return joined(pairs), true
}

// variablesJoinedMax bounds how many variables attributes fill: of more, hardly ever all meet.
const variablesJoinedMax = 2

// joining finds what holds the values of a variable or a unique id: an attribute, or at times each element of a list.
func (g *grammar) joining(ours *entity, of string, aggregate bool) (name string, ok bool) {
	if aggregate && g.element.name == "" && g.chance(20) && g.takeElement(ours, of) {
		return g.element.name, true
	}
	return g.link(ours, of)
}

// link finds an attribute that holds the values of a variable or a unique id;
// an entity that the application writes is given one.
func (g *grammar) link(e *entity, of string) (name string, ok bool) {
	var known []attribute
	for _, a := range ofSort(e.attributes, link) {
		if a.of == of && a.name != e.unique {
			known = append(known, a)
		}
	}
	if len(known) > 0 && (e.mirror || g.chance(70)) {
		return g.oneOf(known).name, true
	}
	if e.mirror {
		return "", false
	}
	name = of
	if e.has(name) || g.chance(30) {
		name = e.fresh(g.pick("owner", "ref", "about"))
	}
	e.attributes = append(e.attributes, attribute{name: name, sort: link, of: of})
	return name, true
}

// reworked writes an expression that gives a name's usual values.
func (g *grammar) reworked(name string) string {
	return [...]string{`"` + name + `[0:2]"`, `"lower(` + name + `)"`, `"trim(` + name + `)"`, `"` + name + ` + ''"`}[len(g.rules)%4]
}

// joined writes `by`: a name, a list of names, or a mapping.
func joined(pairs [][2]string) string {
	var names, mapping []string
	same := true
	for _, p := range pairs {
		names = append(names, p[0])
		mapping = append(mapping, p[0]+": "+p[1])
		same = same && p[0] == p[1]
	}
	switch {
	case len(pairs) == 0:
		return ""
	case !same:
		return "by: { " + strings.Join(mapping, ", ") + " }"
	case len(pairs) == 1:
		return "by: " + names[0]
	}
	return "by: [" + strings.Join(names, ", ") + "]"
}

// someOf draws a few different attributes of an entity, what rules write more often.
func (g *grammar) someOf(e *entity, most int) []attribute {
	all := e.readable()
	g.r.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
	if g.chance(50) {
		slices.SortStableFunc(all, func(a, b attribute) int { return rank(a) - rank(b) })
	}
	return all[:min(len(all), 1+g.r.IntN(most))]
}

// rank puts what rules write, and lists, first.
func rank(a attribute) int {
	if a.derived || severalValues(a) {
		return 0
	}
	return 1
}

func (g *grammar) oneOf(attributes []attribute) attribute {
	return attributes[g.r.IntN(len(attributes))]
}

// severalValues reports whether an attribute holds a list or a map.
func severalValues(a attribute) bool { return a.sort == list || a.sort == apart }

func ofSort(attributes []attribute, want sort) []attribute {
	var found []attribute
	for _, a := range attributes {
		if a.sort == want {
			found = append(found, a)
		}
	}
	return found
}

// prefixed names a copy after its parent: userName.
func prefixed(e *entity, name string) string {
	return strings.ToLower(e.name[:1]) + e.name[1:] + title(name)
}

func title(name string) string { return strings.ToUpper(name[:1]) + name[1:] }

// named is a name as the rule file has it.
func named(name string) string {
	if isWord.MatchString(name) {
		return name
	}
	return "`" + name + "`"
}

var isWord = regexp.MustCompile(`^[A-Za-z_]\w*$`)

// inYAML writes a text so that YAML takes it for one.
func inYAML(text string) string {
	if strings.Contains(text, "`") {
		return `"` + text + `"`
	}
	return text
}
