package population

import (
	"math/rand/v2"
	"strings"
)

// layout is how a table keeps its items: its key attributes, and the templates
// for an entity that is known by some variables.
type layout struct {
	keys   []string
	repeat bool // a constant sort key may hold the variable once more
	rest   bool // the last variable may take the rest of the key
	number bool // one of the keys is a number
	// templates gives one template for each key attribute. home is the noun of
	// the first variable, in whose collection the entity lives; tag is the
	// entity's own word, which no other shape has.
	templates func(home, tag string, variables []string) []string
}

// layouts, with how often each is drawn.
var layouts = []struct {
	weight int
	layout layout
}{
	{6, layout{keys: []string{"pk", "sk"}, repeat: true, rest: true, templates: inCollections}},
	{3, layout{keys: []string{"PK", "SK"}, repeat: true, rest: true, templates: inCollections}},
	{3, layout{keys: []string{"pk"}, rest: true, templates: withoutSortKey}},
	{2, layout{keys: []string{"pk", "n"}, number: true, templates: numberedInside}},
	{2, layout{keys: []string{"id", "sk"}, rest: true, number: true, templates: numberedOutside}},
}

func drawLayout(r *rand.Rand) layout {
	total := 0
	for _, one := range layouts {
		total += one.weight
	}
	at := r.IntN(total)
	for _, one := range layouts {
		if at -= one.weight; at < 0 {
			return one.layout
		}
	}
	panic("population: the weights of the layouts do not add up")
}

// inCollections: USER#u / PROFILE, and what is the user's beside it: USER#u / ORDER#o.
func inCollections(home, tag string, variables []string) []string {
	partition := home + "#" + holes(variables[:1])
	if len(variables) == 1 {
		return []string{partition, tag}
	}
	return []string{partition, tag + "#" + holes(variables[1:])}
}

// withoutSortKey: ORDER#u#o.
func withoutSortKey(_, tag string, variables []string) []string {
	return []string{tag + "#" + holes(variables)}
}

// numberedInside has a number as the sort key: ORDER#u / 7. What is a number
// here is part of a text wherever it is not the last variable.
func numberedInside(_, tag string, variables []string) []string {
	last := len(variables) - 1
	if last == 0 {
		return []string{tag, holes(variables)}
	}
	return []string{tag + "#" + holes(variables[:last]), holes(variables[last:])}
}

// numberedOutside has a number as the partition key: 7 / ORDER#o.
func numberedOutside(_, tag string, variables []string) []string {
	if len(variables) == 1 {
		return []string{holes(variables), tag}
	}
	return []string{holes(variables[:1]), tag + "#" + holes(variables[1:])}
}

// holes writes the variables into a template: ${a}#${b}.
func holes(variables []string) string {
	return "${" + strings.Join(variables, "}#${") + "}"
}
