package population

import (
	"fmt"
	"slices"
	"strings"
)

// sort is what an attribute is good for in a rule.
type sort uint8

const (
	text   sort = iota
	number      // may be summed and compared
	flag        // true or false
	link        // names another item: it holds the values of a key variable or of a unique id
	list        // holds several values: of a key variable or of a unique id, or numbers
	apart       // a number for each of several values
)

// attribute is one that the items of an entity have, in the sketch of a rule file.
type attribute struct {
	name    string
	sort    sort
	of      string // link, list: the variable or unique id whose values it holds; "" of a list of numbers
	derived bool   // a rule writes it
}

// entity is one in the sketch of a rule file.
type entity struct {
	name       string
	variables  []string
	templates  []string
	match      string // as the file writes it; "" for none
	unique     string
	derived    string  // as the file writes it; "" if one rule at most makes its items
	mirror     bool    // a rule makes its items, so that it has no attribute beside those mirrored and derived
	source     *entity // from whose items a rule makes its items; nil if none does
	attributes []attribute
}

var (
	nouns    = []string{"User", "Group", "Post", "Team", "Order", "Product"} // what an application is about
	members  = []string{"Comment", "Like", "Task", "Item", "Note"}           // what belongs to one of these
	edges    = []string{"Membership", "Follow", "Grant", "Visit"}            // what is between two
	payloads = []attribute{
		{name: "name"}, {name: "title"}, {name: "role"}, {name: "my-state, or none"},
		{name: "score", sort: number}, {name: "price", sort: number}, {name: "quantity", sort: number},
		{name: "active", sort: flag},
	}
)

// noun = USER#${userId} / USER, at times with a unique id that is an attribute.
func (g *grammar) noun() {
	e := g.entity(g.unused(nouns))
	e.variables = []string{strings.ToLower(e.name) + "Id"}
	g.shape(e)
	if g.layout.repeat && g.chance(15) {
		e.templates[1] += "#" + holes(e.variables)
	}
	if g.typed && g.chance(20) {
		e.match = "{ EntityType: " + strings.ToLower(e.name) + " }"
	}
	if g.chance(50) {
		e.unique = strings.ToLower(e.name) + "Slug"
		e.attributes = append(e.attributes, attribute{name: e.unique, sort: link, of: e.unique})
	}
}

// part = USER#${userId} / COMMENT#${at}#${commentId}, at times unique by its own
// id; or, of what is itself a part or an edge, USER#${userId} / NOTE#${taskId}#${noteId}.
func (g *grammar) part() {
	whole := g.entities[g.r.IntN(len(g.entities))]
	if len(whole.variables) > 2 || len(whole.variables) > 1 && g.chance(25) {
		whole = g.entities[0]
	}
	e := g.entity(g.unused(members))
	own := strings.ToLower(e.name) + "Id"
	e.variables = append(e.variables, whole.variables...)
	if len(e.variables) == 1 && g.chance(30) {
		e.variables = append(e.variables, "at")
	}
	e.variables = append(e.variables, own)
	g.shape(e)
	switch {
	case g.chance(50):
		e.unique = own
	case g.layout.rest && g.chance(25):
		last := len(e.templates) - 1
		e.templates[last] = strings.TrimSuffix(e.templates[last], "}") + "...}"
	}
}

// edge = USER#${userId} / MEMBERSHIP#${groupId}.
func (g *grammar) edge() {
	from, to := g.entities[0], g.entities[1]
	if g.chance(50) {
		from, to = to, from
	}
	e := g.entity(g.unused(edges))
	e.variables = []string{from.variables[0], to.variables[0]}
	g.shape(e)
}

// twins are entities of the same key as another, one or two, told apart by what
// all match, or, where items carry their entity's name, at times by that alone.
func (g *grammar) twins() {
	one := g.entities[g.r.IntN(len(g.entities))]
	words := [][3]string{
		{"{ kind: " + strings.ToLower(one.name) + " }", "{ kind: other }", "{ kind: 3 }"},
		{"{ draft: false }", "{ draft: true }", "{ draft: maybe }"},
		{"{ level: 1, kind: a }", "{ level: 2, kind: a }", "{ level: 2, kind: b }"},
	}[g.r.IntN(3)]
	if g.typed && one.match == "" && (g.chance(50) || strings.Contains(words[0], ",")) {
		words = [3]string{}
	}
	one.match = words[0]
	for i, name := range []string{"Other", "Third"}[:1+g.r.IntN(3)/2] {
		twin := g.entity(name + one.name)
		twin.variables, twin.templates, twin.match = one.variables, one.templates, words[i+1]
	}
}

// entity adds one with a few attributes.
func (g *grammar) entity(name string) *entity {
	e := &entity{name: name}
	for _, at := range g.r.Perm(len(payloads))[:2+g.r.IntN(2)] {
		e.attributes = append(e.attributes, payloads[at])
	}
	if g.chance(30) {
		e.attributes = append(e.attributes, attribute{name: "codeList", sort: list, of: "code"})
	}
	g.entities = append(g.entities, e)
	return e
}

// shape makes the key of the entity from its variables.
func (g *grammar) shape(e *entity) {
	home := strings.ToUpper(strings.TrimSuffix(e.variables[0], "Id"))
	e.templates = g.layout.templates(home, strings.ToUpper(e.name), e.variables)
}

// unused draws a name that no entity has yet.
func (g *grammar) unused(names []string) string {
	for {
		name := names[g.r.IntN(len(names))]
		if !slices.ContainsFunc(g.entities, func(e *entity) bool { return e.name == name }) {
			return name
		}
	}
}

func (e *entity) has(name string) bool {
	return slices.Contains(e.variables, name) ||
		slices.ContainsFunc(e.attributes, func(a attribute) bool { return a.name == name })
}

// fresh makes a name into one that the entity does not have.
func (e *entity) fresh(name string) string {
	for n := 2; e.has(name) || e.unique == name; n++ {
		name = fmt.Sprintf("%s%d", strings.TrimRight(name, "0123456789"), n)
	}
	return name
}

// origin returns the entity whose item each item of e comes from, if the item's key tells its key: the source of the rule that makes
// the items of e, or that source's origin. Otherwise it returns e.
func (e *entity) origin() *entity {
	for e.source != nil && containsAll(e.variables, e.source.variables) {
		e = e.source
	}
	return e
}

// excludes reports whether no item of e exists beside an item of other that has the same variables. Both would need one key, for
// themselves or for their origins.
func (e *entity) excludes(other *entity) bool {
	one, two := e.origin(), other.origin()
	return slices.Equal(e.templates, other.templates) || one != two && slices.Equal(one.templates, two.templates)
}

// pairUp returns the two entities for a rule. If one of them is a twin of the other's origin, it returns that origin for the twin:
// items with the same variables exist together then.
func pairUp(one, other *entity) (*entity, *entity) {
	switch {
	case slices.Equal(one.templates, other.templates) || !one.excludes(other):
	case other.origin() != other && slices.Equal(one.templates, other.origin().templates):
		return other.origin(), other
	case one.origin() != one && slices.Equal(other.templates, one.origin().templates):
		return one, one.origin()
	}
	return one, other
}

func containsAll(all, some []string) bool {
	return !slices.ContainsFunc(some, func(one string) bool { return !slices.Contains(all, one) })
}

// readable lists what a rule may read of the entity's items: the attributes,
// and the variables of the key that no attribute hides.
func (e *entity) readable() []attribute {
	all := slices.Clone(e.attributes)
	for _, v := range e.variables {
		all = append(all, attribute{name: v, sort: link, of: v})
	}
	return all
}

// line writes the entity as the rule file has it.
func (e *entity) line(keys []string, f forms) string {
	var b strings.Builder
	templates := f.in(e.templates, e.variables)
	fmt.Fprintf(&b, "  %s: { key: {", e.name)
	for i, key := range keys {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, " %s: %q", key, templates[i])
	}
	b.WriteString(" }")
	if e.unique != "" {
		b.WriteString(", unique: " + e.unique)
	}
	if e.match != "" {
		b.WriteString(", match: " + e.match)
	}
	if e.derived != "" {
		b.WriteString(", " + e.derived)
	}
	b.WriteString(" }\n")
	return b.String()
}
