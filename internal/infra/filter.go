package infra

import (
	"cmp"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/internal/rules"
)

// Bounds of the filters of one event source mapping (Lambda developer guide, "Event filtering basics" and "Lambda quotas").
// Five can be raised to ten on request; what is made here must fit every account.
const (
	filtersMax     = 5
	patternCharMax = 4096
)

// Filters returns the patterns of the event source mapping's filters: a record that passes none of them concerns no rule. No
// pattern at all means no filter. They are derived from the keys of every entity that some rule reads or writes, so that the
// record of an application's write over derived data arrives, too. They are derived from keys alone: attributes differ between
// the images, and a record that takes an item out of an entity matters as much as one that brings it in. former are the rules
// that these take the place of, or nil: the function takes back what workers with the former file write late.
func Filters(set, former *rules.Set) []string {
	var shapes []keyFilter
	entities := set.Entities
	if former != nil {
		entities = slices.Concat(entities, former.Entities)
	}
	for _, e := range entities {
		if !concerned(e) {
			continue
		}
		partition, sort := e.FixedKeyTexts()
		shapes = append(shapes, keyFilter{alternatives(partition), alternatives(sort)})
	}
	shapes = fewer(shapes, filtersMax)
	var patterns []string
	for _, f := range shapes {
		f, text := f.fit(set.Table)
		if f.all() {
			return nil
		}
		patterns = append(patterns, text)
	}
	slices.Sort(patterns)
	return patterns
}

func concerned(e *rules.Entity) bool {
	return len(e.Sources)+len(e.Displays)+len(e.Makers)+len(e.Parents)+len(e.Children)+len(e.Own) > 0 || e.Located
}

// text is one thing that a key may be.
type text struct {
	literal string
	how     how
}

// how is the key under which a filter pattern gives a text; "" for the text itself.
type how string

const (
	exact  how = "" // a plain text
	prefix how = "prefix"
	suffix how = "suffix"
)

// wanted is what a filter pattern asks for.
func (t text) wanted() any {
	if t.how == exact {
		return t.literal
	}
	return map[how]string{t.how: t.literal}
}

// anyOf are the things that a key may be; nil means anything, a number included.
type anyOf []text

// alternatives says what is asked of a key with this fixed text. A pattern cannot ask for a beginning and an end at once.
func alternatives(k rules.KeyText) anyOf {
	switch {
	case k.Exact:
		return anyOf{{k.Prefix, exact}}
	case k.Prefix != "":
		return anyOf{{k.Prefix, prefix}}
	case k.Suffix != "":
		return anyOf{{k.Suffix, suffix}}
	}
	return nil
}

// covers reports whether every key that u takes is one that t takes.
func (t text) covers(u text) bool {
	switch t.how {
	case prefix:
		return u.how != suffix && strings.HasPrefix(u.literal, t.literal)
	case suffix:
		return u.how != prefix && strings.HasSuffix(u.literal, t.literal)
	}
	return t == u
}

func (a anyOf) takes(u text) bool {
	return a == nil || slices.ContainsFunc(a, func(t text) bool { return t.covers(u) })
}

// takesAll reports whether every key that b takes is one that a takes.
func (a anyOf) takesAll(b anyOf) bool {
	if a == nil || b == nil {
		return a == nil
	}
	return !slices.ContainsFunc(b, func(u text) bool { return !a.takes(u) })
}

// with takes what either takes, sorted and without what another covers.
func (a anyOf) with(b anyOf) anyOf {
	if a == nil || b == nil {
		return nil
	}
	all := slices.Concat(a, b)
	slices.SortFunc(all, func(x, y text) int {
		return cmp.Or(cmp.Compare(x.literal, y.literal), cmp.Compare(x.how, y.how))
	})
	all = slices.Compact(all)
	return slices.DeleteFunc(slices.Clone(all), func(u text) bool {
		return slices.ContainsFunc(all, func(t text) bool { return t != u && t.covers(u) })
	})
}

// coarser takes more with fewer characters: the two neighbours with the longest beginning in common become that beginning.
func (a anyOf) coarser() anyOf {
	at, most := -1, 0
	for i := 1; i < len(a); i++ {
		if n := common(a[i-1], a[i]); n > most {
			at, most = i, n
		}
	}
	if at < 0 {
		return nil
	}
	merged := anyOf{{a[at].literal[:most], prefix}}
	return merged.with(slices.Concat(a[:at-1], a[at+1:]))
}

// common is the length of two beginnings' common beginning, in whole characters.
func common(a, b text) int {
	if a.how == suffix || b.how == suffix {
		return 0
	}
	n := 0
	for i, r := range a.literal {
		size := len(string(r))
		if i+size > len(b.literal) || a.literal[i:i+size] != b.literal[i:i+size] {
			break
		}
		n = i + size
	}
	return n
}

// keyFilter takes the keys of which both parts are taken.
type keyFilter struct{ partition, sort anyOf }

// all reports whether it takes every key.
func (f keyFilter) all() bool { return f.partition == nil && f.sort == nil }

func (f keyFilter) takesAll(g keyFilter) bool {
	return f.partition.takesAll(g.partition) && f.sort.takesAll(g.sort)
}

func (f keyFilter) with(g keyFilter) keyFilter {
	return keyFilter{f.partition.with(g.partition), f.sort.with(g.sort)}
}

// anything is the weight of a part of a key that may be anything, in alternatives.
const anything = 1000

func (a anyOf) weight() int {
	if a == nil {
		return anything
	}
	return len(a)
}

func (f keyFilter) weight() int { return f.partition.weight() * f.sort.weight() }

// excess is how many pairs of alternatives f and g take together as one filter but not as two; 0 if merging loses nothing.
func (f keyFilter) excess(g keyFilter) int {
	if f.takesAll(g) || g.takesAll(f) ||
		f.partition.takesAll(g.partition) && g.partition.takesAll(f.partition) || f.sort.takesAll(g.sort) && g.sort.takesAll(f.sort) {
		return 0
	}
	return max(1, f.with(g).weight()-f.weight()-g.weight())
}

// fewer merges filters: first those that lose nothing by it, then, while there are more than most, the two that lose least.
func fewer(filters []keyFilter, most int) []keyFilter {
	filters = slices.Clone(filters)
	lost := make([][]int, len(filters)) // by merging i with j < i
	for i := range filters {
		lost[i] = make([]int, i)
		for j := range i {
			lost[i][j] = filters[i].excess(filters[j])
		}
	}
	for len(filters) > 1 {
		a, b := 1, 0
		for i := range filters {
			for j := range i {
				if lost[i][j] < lost[a][b] {
					a, b = i, j
				}
			}
		}
		if lost[a][b] > 0 && len(filters) <= most {
			break
		}
		// b takes a in, and the last one takes a's place.
		last := len(filters) - 1
		filters[b] = filters[b].with(filters[a])
		filters[a] = filters[last]
		filters, lost = filters[:last], lost[:last]
		for i := range filters {
			for j := range i {
				if i == a || j == a || i == b || j == b {
					lost[i][j] = filters[i].excess(filters[j])
				}
			}
		}
	}
	return filters
}

// fit returns the filter and its pattern, made coarser until that is short enough. The part with more alternatives gives way.
func (f keyFilter) fit(table rules.Table) (keyFilter, string) {
	for {
		text := f.pattern(table)
		if len(text) <= patternCharMax || f.all() {
			return f, text
		}
		if len(f.sort) >= len(f.partition) {
			f.sort = f.sort.coarser()
		} else {
			f.partition = f.partition.coarser()
		}
	}
}

// pattern writes the filter in the language of filter patterns.
func (f keyFilter) pattern(table rules.Table) string {
	keys := map[string]any{}
	for attribute, alternatives := range map[string]anyOf{table.PartitionKey: f.partition, table.SortKey: f.sort} {
		var wanted []any
		for _, t := range alternatives {
			wanted = append(wanted, t.wanted())
		}
		if wanted != nil {
			keys[attribute] = map[string]any{"S": wanted} // a key with fixed text is no number
		}
	}
	return plainJSON(map[string]any{"dynamodb": map[string]any{"Keys": keys}})
}
