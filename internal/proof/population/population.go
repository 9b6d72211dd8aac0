package population

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/rules"
)

// Population is a rule file and what an application that uses it writes. It is
// immutable and safe for concurrent use.
type Population struct {
	Name string
	File string     // the rule file's text
	Set  *rules.Set // compiled, its keys checked

	// The types of the table's keys: KindString or KindNumber; KindAbsent for no
	// sort key. A rule file does not say them: a key is taken for a number
	// wherever every entity's template allows it.
	PartitionKind, SortKind change.Kind

	kinds  []*kind // by entity, in the file's order
	writes []*kind // those that the application writes
	makes  []*kind // those whose items rules make

	madePercent int // how often the application writes these all the same
}

// New makes a Population of any rule file that has rules of these kinds.
func New(name, src string, kinds []rules.Kind) (*Population, error) {
	return newPopulation(name, src, kinds, nil)
}

func newPopulation(name, src string, kinds []rules.Kind, w *wild) (*Population, error) {
	set, err := rules.Load(name, []byte(src), kinds)
	if err != nil {
		return nil, err
	}
	f, err := readFile(src, set)
	if err != nil {
		return nil, err
	}
	p := &Population{Name: name, File: src, Set: set, madePercent: madePercent}
	if w != nil && w.squatted {
		p.madePercent = squattedPercent
	}
	templates := make([][][]part, len(set.Entities))
	for i, e := range set.Entities {
		for _, key := range p.keyNames() {
			templates[i] = append(templates[i], f.parts(f.templates[e.Name][key]))
		}
	}
	p.setKeyKinds(templates)
	if err := set.CheckKeys(p.PartitionKind, p.SortKind); err != nil {
		return nil, fmt.Errorf("checking the keys of %s: %w", name, err)
	}
	v := newVocabulary(f, p.ids(templates), p.counted(templates))
	v.inCases(templates)
	v.inSharedKeys(templates)
	v.goWild(w, p.rooms(templates))
	for i, e := range set.Entities {
		k := newKind(p, e, templates[i], v)
		for n, other := range set.Entities {
			if n != i && slices.EqualFunc(templates[n], templates[i], slices.Equal[[]part]) {
				k.twins = append(k.twins, other)
			}
		}
		p.kinds = append(p.kinds, k)
		if len(e.Makers) > 0 {
			p.makes = append(p.makes, k)
		} else {
			p.writes = append(p.writes, k)
		}
	}
	return p, nil
}

// keyNames are the table's key attributes.
func (p *Population) keyNames() []string {
	if p.Set.Table.SortKey == "" {
		return []string{p.Set.Table.PartitionKey}
	}
	return []string{p.Set.Table.PartitionKey, p.Set.Table.SortKey}
}

func (p *Population) keyKind(i int) change.Kind {
	return [...]change.Kind{p.PartitionKind, p.SortKind}[i]
}

func (p *Population) setKeyKinds(templates [][][]part) {
	kindOf := func(key int) change.Kind {
		if slices.ContainsFunc(templates, func(entity [][]part) bool { return !single(entity[key]) }) {
			return change.KindString
		}
		return change.KindNumber
	}
	p.PartitionKind = kindOf(0)
	if p.Set.Table.SortKey != "" {
		p.SortKind = kindOf(1)
	}
}

// ids lists the names that are part of keys or unique.
func (p *Population) ids(templates [][][]part) []string {
	var names []string
	for i, e := range p.Set.Entities {
		for _, part := range slices.Concat(templates[i]...) {
			if part.variable != "" {
				names = append(names, part.variable)
			}
		}
		if e.Unique != "" {
			names = append(names, e.Unique)
		}
	}
	return names
}

// counted lists the variables that are number keys, or padded numbers, somewhere.
func (p *Population) counted(templates [][][]part) []string {
	var names []string
	for _, part := range slices.Concat(slices.Concat(templates...)...) {
		if part.width > 0 {
			names = append(names, part.variable)
		}
	}
	for i := range p.keyNames() {
		for _, entity := range templates {
			if p.keyKind(i) == change.KindNumber {
				names = append(names, entity[i][0].variable)
			}
		}
	}
	return names
}

// Key returns the key of an item, as records have it.
func (p *Population) Key(it change.Item) change.Key {
	return change.Key{Partition: keyText(it[p.Set.Table.PartitionKey]), Sort: keyText(it[p.Set.Table.SortKey])}
}

// Makes reports whether rules make items with the key of this one.
func (p *Population) Makes(it change.Item) bool {
	return slices.ContainsFunc(p.makes, func(k *kind) bool { return k.entity.HasKey(p.Key(it)) })
}

// keyText returns a key's text, numbers in DynamoDB's normal form.
func keyText(v change.Value) string {
	if v.Kind() == change.KindNumber {
		if number, err := decimal.Parse(v.Text()); err == nil {
			return number.String()
		}
	}
	return v.Text()
}

// How often in a hundred an item is none of the usual.
const (
	foreignPercent  = 3  // of no entity
	madePercent     = 3  // of an entity whose items a rule makes
	squattedPercent = 15 // the same, where the application goes for it
)

// Item draws a whole item as the application puts it: of any entity that it
// writes, seldom of one whose items a rule makes, seldom of none.
func (p *Population) Item(r *rand.Rand) change.Item {
	switch n := r.IntN(100); {
	case n < foreignPercent:
		return p.foreign(r)
	case n < foreignPercent+p.madePercent && len(p.makes) > 0:
		return oneOf(r, p.makes).item(r)
	case len(p.writes) == 0:
		return oneOf(r, p.makes).item(r)
	}
	return oneOf(r, p.writes).item(r)
}

// foreign draws an item whose key is no entity's, or nearly one's.
func (p *Population) foreign(r *rand.Rand) change.Item {
	it := oneOf(r, p.kinds).item(r)
	names := p.keyNames()
	at := r.IntN(len(names))
	text := it[names[at]].Text() + oneOf(r, []string{"#x", "#"})
	switch {
	case p.keyKind(at) == change.KindNumber:
		it[names[at]] = change.Number("-1") // if numbers are all that tells entities apart, it is one of theirs
	case len(text) <= keyBytesMax[at]:
		it[names[at]] = change.String(text)
	}
	return it
}

// Vary returns the item with one or two of its attributes changed, added or
// removed; never the key. It is a rename, a move to another parent, a change
// of role, seldom of entity.
func (p *Population) Vary(r *rand.Rand, it change.Item) change.Item {
	varied := maps.Clone(it)
	k, known := p.kindOf(it)
	if known && len(k.twins) > 0 && r.IntN(12) == 0 {
		for _, eq := range oneOf(r, k.twins).Equals {
			varied[eq.Attribute] = eq.Value
		}
		return varied
	}
	slots := varying(r, k, known)
	for range 1 + r.IntN(2) {
		s := oneOf(r, slots)
		s.write(varied, s.pool.other(r, it[s.name]))
	}
	return varied
}

// varying draws which attributes of a kind of item can change: its own mostly, at
// times what tells its entity from others, or what rules have written on it.
// An item that has lost its mark often gets one again.
func varying(r *rand.Rand, k *kind, known bool) []slot {
	n := r.IntN(20)
	switch {
	case k == nil:
		return []slot{{remark, remarks}}
	case len(k.marks) > 0 && (n == 0 || !known && n < 10):
		return k.marks
	case len(k.derived) > 0 && n == 19:
		return k.derived
	}
	return k.slots
}

// kindOf finds what an item is of, or, where it has lost its mark, what it could be of and false.
func (p *Population) kindOf(it change.Item) (*kind, bool) {
	key := p.Key(it)
	if m, ok := p.Set.Identify(key, it); ok {
		return p.kinds[slices.Index(p.Set.Entities, m.Entity)], true
	}
	for _, k := range p.kinds {
		if k.entity.HasKey(key) {
			return k, false
		}
	}
	return nil, false
}
