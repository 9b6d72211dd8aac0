package oracle

import (
	"maps"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/rules"
)

// Foreign says where items, the whole of a table, differ from base, what the
// application wrote last under each key, beside what the rules own: the
// attributes, and their stamps, that rules write on items of an entity with a
// key like the item's (promise 8, users' items are theirs). It does not say
// whether what the rules own is right: Drift does.
//
// Mirror items are their rule's. Without base, one carries a stamp and nothing
// but what rules write. What the application put on it beside that is there
// unchanged, or gone as a whole, with the item or, where the source has come
// back since, without it. A mirror item without a stamp is the application's.
//
// What former sets wrote, whose rules are not in force any more, must be gone or
// as the application has it.
func Foreign(set *rules.Set, base, items []change.Item, former ...*rules.Set) []Difference {
	f := &foreign{was: newTable(set, base), is: newTable(set, items), former: former}
	keys := slices.Concat(sortedKeys(f.was.actual), sortedKeys(f.is.actual))
	slices.SortFunc(keys, func(a, b change.Key) int { return strings.Compare(a.String(), b.String()) })
	for _, key := range slices.Compact(keys) {
		f.compare(key)
	}
	slices.SortFunc(f.found, compareDifferences)
	return f.found
}

type foreign struct {
	was, is *table
	former  []*rules.Set
	found   []Difference
}

func (f *foreign) compare(key change.Key) {
	was, is := f.was.actual[key], f.is.actual[key]
	entities := f.entitiesAt(key)
	mirror := slices.ContainsFunc(entities, func(e *rules.Entity) bool { return len(e.Mirrors) > 0 })
	switch {
	case is == nil && f.wasMirror(key):
	case is == nil && !mirror:
		f.found = append(f.found, Difference{Key: key, Want: change.Map(was)})
	case is == nil:
	case was == nil && !(mirror && f.is.stampedAs(is)):
		f.found = append(f.found, Difference{Key: key, Got: change.Map(is)})
	default:
		mirrored := mirror && f.is.stampedAs(is)
		f.attributes(key, was, is, f.owned(entities, mirrored), mirrored)
	}
}

// entitiesAt are the entities that an item with this key can be of, or can have
// been of: an application may change by what they are told apart.
func (f *foreign) entitiesAt(key change.Key) []*rules.Entity {
	return slices.DeleteFunc(slices.Clone(f.is.set.Entities), func(e *rules.Entity) bool { return !e.HasKey(key) })
}

// owned tells the attributes that rules write on items of some entities, and,
// of a mirror item, those that make it what it is.
func (f *foreign) owned(entities []*rules.Entity, mirrored bool) func(attribute string) bool {
	names := map[string]bool{f.is.set.Table.PartitionKey: true, f.is.set.Table.SortKey: true}
	stamps := false
	for _, entity := range entities {
		writers := slices.Concat(entity.Displays, entity.Children)
		if mirrored {
			writers = append(writers, entity.Mirrors...)
			for _, eq := range entity.Equals {
				names[eq.Attribute] = true
			}
		}
		for _, rule := range writers {
			for _, name := range rule.Writes {
				names[name] = true
			}
		}
		stamps = stamps || len(writers) > 0
	}
	return func(name string) bool { return names[name] || stamps && strings.HasPrefix(name, stampPrefix) }
}

// attributes compares what nobody but the application owns. Where it may be
// gone as a whole, all of it may.
func (f *foreign) attributes(key change.Key, was, is change.Item, owned func(string) bool, mayBeGone bool) {
	is, was = maps.Clone(is), maps.Clone(was)
	maps.DeleteFunc(is, func(name string, _ change.Value) bool { return owned(name) })
	maps.DeleteFunc(was, func(name string, _ change.Value) bool { return owned(name) })
	if mayBeGone && len(is) == 0 {
		return
	}
	names := slices.Concat(slices.Collect(maps.Keys(is)), slices.Collect(maps.Keys(was)))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if is[name].Kind() == change.KindAbsent && f.formerly(key, name) {
			continue
		}
		if want, got := was[name], is[name]; !normalize(want).Equal(normalize(got)) {
			f.found = append(f.found, Difference{Key: key, Attribute: name, Want: want, Got: got})
		}
	}
}

// formerly reports whether a former rule wrote an attribute of an item with this key.
func (f *foreign) formerly(key change.Key, attribute string) bool {
	return f.wrote(key, func(r *rules.Rule) bool { return slices.Contains(r.Writes, attribute) })
}

// wasMirror reports whether a former rule wrote whole items with this key.
func (f *foreign) wasMirror(key change.Key) bool {
	return f.wrote(key, func(r *rules.Rule) bool { return r.Kind == rules.Mirror })
}

func (f *foreign) wrote(key change.Key, which func(*rules.Rule) bool) bool {
	return slices.ContainsFunc(f.former, func(set *rules.Set) bool {
		return slices.ContainsFunc(set.Rules, func(r *rules.Rule) bool { return r.Target.HasKey(key) && which(r) })
	})
}
