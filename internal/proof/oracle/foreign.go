package oracle

import (
	"maps"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/rules"
)

// Foreign says where items, the whole of a table, differ from base, what the
// application wrote last under each key, beside what the rules own: the
// attributes, and their stamps, that rules write on items of an entity with a
// key like the item's (promise 8, users' items are theirs). It does not say
// whether what the rules own is right: Drift does.
//
// A mirror item that the engine made is its rule's. Without base, one has nothing
// but what rules write. What the application put on it beside that is there
// unchanged, or gone as a whole, with the item or, where the source has come
// back since, without it. Any other item at a mirror's key is the application's: it
// is never gone. While no source asks for it, each of the mirror rule's attributes
// is as the application has it, or gone.
//
// What former sets wrote, whose rules are not in force any more, must be gone or
// as the application has it.
func Foreign(set *rules.Set, base, items []change.Item, former ...*rules.Set) []Difference {
	f := &foreign{was: newTable(set, base), is: newTable(set, items), former: former}
	f.is.settle()
	f.asked = f.is.asked()
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
	asked   map[change.Key]bool // by some source of a mirror rule
	found   []Difference
}

func (f *foreign) compare(key change.Key) {
	was, is := f.was.actual[key], f.is.actual[key]
	mirror := f.is.mirrorAt(key)
	switch {
	case mirror != nil && mirror.Derives():
		f.derived(key, was, is)
	case is == nil && f.wasDerived(key):
	case is == nil && f.mayHaveGone(key, was):
	case is == nil && Made(key, was) && (mirror != nil || f.wasMirror(key)):
	case is == nil:
		f.found = append(f.found, Difference{Key: key, Want: change.Map(was)})
	case was == nil && (mirror == nil || !Made(key, is)):
		f.found = append(f.found, Difference{Key: key, Got: change.Map(is)})
	default:
		f.attributes(key, was, is)
	}
}

// mayHaveGone reports whether a rule deletes an item with its parent, if that is deleted. Whether it was, a Chronicle knows.
func (f *foreign) mayHaveGone(key change.Key, was change.Item) bool {
	for _, set := range append([]*rules.Set{f.is.set}, f.former...) {
		m, ok := set.Identify(key, was)
		for _, r := range set.Rules {
			if !ok || !r.Deletes() || m.Entity != r.Target {
				continue
			}
			if _, refers, err := r.JoinedKey(&m, was); refers && err == nil {
				return true
			}
		}
	}
	return false
}

// derived compares an item at the key of a derived one: what the application put there beside what rules write is as it put it, or gone.
func (f *foreign) derived(key change.Key, was, is change.Item) {
	entities := f.entitiesAt(key)
	owned := f.owned(entities, true)
	for name := range is {
		tells := slices.ContainsFunc(entities, func(e *rules.Entity) bool { return tells(e, name) || e.ExpireAttribute == name })
		if !owned(name) && !tells {
			f.differs(key, name, was, is)
		}
	}
}

// wasDerived reports whether former rules made items with this key together: whatever stood there was theirs.
func (f *foreign) wasDerived(key change.Key) bool { return f.wrote(key, (*rules.Rule).Derives) }

// entitiesAt are the entities that an item with this key can be of, or can have
// been of: an application may change by what they are told apart.
func (f *foreign) entitiesAt(key change.Key) []*rules.Entity {
	return slices.DeleteFunc(slices.Clone(f.is.set.Entities), func(e *rules.Entity) bool { return !e.HasKey(key) })
}

// owned tells the attributes that rules write on items of some entities, and,
// of an item that the engine made, those that make it what it is.
func (f *foreign) owned(entities []*rules.Entity, mirrored bool) func(attribute string) bool {
	names := map[string]bool{f.is.set.Table.PartitionKey: true, f.is.set.Table.SortKey: true, madeAttribute: mirrored}
	stamps := false
	for _, entity := range entities {
		for _, rule := range slices.Concat(entity.Displays, entity.Children, entity.Makers, entity.Own) {
			stamps = true
			for _, name := range rule.Writes {
				names[name] = names[name] || mirrored || !rule.MakesItems() || !tells(entity, name)
			}
		}
	}
	return func(name string) bool { return names[name] || stamps && strings.HasPrefix(name, stampPrefix) }
}

// attributes compares what the application alone owns. What it has put on
// an item that the engine made may be gone as a whole.
func (f *foreign) attributes(key change.Key, was, is change.Item) {
	atMirror := f.is.mirrorAt(key) != nil
	ours := atMirror && Made(key, is) && (was == nil || Made(key, was))
	owned := f.owned(f.entitiesAt(key), ours)
	if !ours && atMirror {
		f.takenOff(key, was, is)
	}
	is, was = maps.Clone(is), maps.Clone(was)
	maps.DeleteFunc(is, func(name string, _ change.Value) bool { return owned(name) })
	maps.DeleteFunc(was, func(name string, _ change.Value) bool { return owned(name) })
	if ours && len(is) == 0 {
		return
	}
	names := slices.Concat(slices.Collect(maps.Keys(is)), slices.Collect(maps.Keys(was)))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if is[name].Kind() == change.KindAbsent && f.formerly(key, name) {
			continue
		}
		f.differs(key, name, was, is)
	}
}

// takenOff compares what mirror rules write on an item that the application
// made: unless they write it now, it is as the application has it, or gone.
func (f *foreign) takenOff(key change.Key, was, is change.Item) {
	for _, rule := range f.is.rules {
		if !rule.MakesItems() || !rule.Target.HasKey(key) || f.asked[key] && !f.is.occupied(rule, key) {
			continue
		}
		for _, name := range rule.Writes {
			if is[name].Kind() != change.KindAbsent && !tells(rule.Target, name) {
				f.differs(key, name, was, is)
			}
		}
	}
}

// tells reports whether items of an entity are told from others by an attribute:
// on an item that the application made it is the application's, whatever rules write.
func tells(entity *rules.Entity, attribute string) bool {
	return slices.ContainsFunc(entity.Equals, func(eq rules.Equals) bool { return eq.Attribute == attribute })
}

func (f *foreign) differs(key change.Key, name string, was, is change.Item) {
	if want, got := was[name], is[name]; !normalize(want).Equal(normalize(got)) {
		f.found = append(f.found, Difference{Key: key, Attribute: name, Want: want, Got: got})
	}
}

// formerly reports whether a former rule wrote an attribute of an item with this key.
func (f *foreign) formerly(key change.Key, attribute string) bool {
	return f.wrote(key, func(r *rules.Rule) bool { return slices.Contains(r.Writes, attribute) })
}

// wasMirror reports whether a former rule wrote whole items with this key.
func (f *foreign) wasMirror(key change.Key) bool {
	return f.wrote(key, func(r *rules.Rule) bool { return r.MakesItems() })
}

func (f *foreign) wrote(key change.Key, which func(*rules.Rule) bool) bool {
	return slices.ContainsFunc(f.former, func(set *rules.Set) bool {
		return slices.ContainsFunc(set.Rules, func(r *rules.Rule) bool { return r.Target.HasKey(key) && which(r) })
	})
}
