package population

import (
	"math/rand/v2"
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/rules"
)

// kind is how items of one entity are drawn.
type kind struct {
	entity    *rules.Entity
	twins     []*rules.Entity // those of the same key
	keys      []keyAttribute
	variables []variable
	marks     []slot // the attributes that tell it from other entities
	slots     []slot // the other attributes that the application writes
	derived   []slot // those that rules write, which it should leave alone
}

// keyAttribute is one of the table's keys, as this entity fills it.
type keyAttribute struct {
	name   string
	number bool
	parts  []keyPart
}

// keyPart is a literal, or the variable at a place in kind.variables.
type keyPart struct {
	part
	at int // of the variable; -1 for a literal
}

type variable struct {
	name  string
	texts []string
}

// slot is an attribute with the values that it can have.
type slot struct {
	name string
	pool pool
}

// newKind compiles how an entity's items are drawn. templates are those of
// its key, in the order of the table's keys.
func newKind(p *Population, e *rules.Entity, templates [][]part, v *vocabulary) *kind {
	k := &kind{entity: e}
	for i, name := range p.keyNames() {
		key := keyAttribute{name: name, number: p.keyKind(i) == change.KindNumber}
		for _, part := range templates[i] {
			if part.variable == "" {
				key.parts = append(key.parts, keyPart{part, -1})
				continue
			}
			texts := v.keyTexts(part.variable, key.number || part.width > 0, part.rest)
			key.parts = append(key.parts, keyPart{part, k.variable(part.variable, texts)})
		}
		k.keys = append(k.keys, key)
	}
	k.addMatches(p.Set, p.madePercent == squattedPercent)
	derived := k.writtenByRules()
	for _, name := range k.read() {
		switch {
		case k.marked(name), slices.Contains(derived, name):
		case k.holdsInCase(name): // it tells the letters that the key does not
			k.slots = append(k.slots, slot{name, only(change.Value{}, v.inBothCases(name), 60)})
		case slices.ContainsFunc(k.variables, func(v variable) bool { return v.name == name }):
			k.slots = append(k.slots, slot{name, only(change.Value{}, v.pool(name).usual, 10)}) // it hides the variable
		default:
			k.slots = append(k.slots, slot{name, v.pool(name)})
		}
	}
	for _, name := range derived {
		k.derived = append(k.derived, slot{name, v.pool(name)})
	}
	k.slots = append(k.slots, slot{remark, remarks})
	return k
}

// remark is an attribute that no rule cares for.
const remark = "remark"

var remarks = pool{usual: []change.Value{{}, change.String("A"), change.String("B")}}

// variable returns the place of a variable. One that is used twice has the
// values of the stricter use.
func (k *kind) variable(name string, texts []string) int {
	at := slices.IndexFunc(k.variables, func(v variable) bool { return v.name == name })
	if at < 0 {
		k.variables = append(k.variables, variable{name, texts})
		return len(k.variables) - 1
	}
	if len(texts) < len(k.variables[at].texts) {
		k.variables[at].texts = texts
	}
	return at
}

// addMatches adds the attributes that tell the entity from others. An odd
// value of them makes an item of another entity, or of none.
func (k *kind) addMatches(set *rules.Set, squatted bool) {
	for _, eq := range k.entity.Equals {
		odd := []change.Value{{}, change.String("nothing")}
		for _, other := range set.Entities {
			for _, theirs := range other.Equals {
				if theirs.Attribute == eq.Attribute && !theirs.Value.Equal(eq.Value) {
					odd = append(odd, theirs.Value, theirs.Value)
				}
			}
		}
		odds := 8
		if squatted && len(k.entity.Makers) > 0 {
			odds = 50
		}
		k.marks = append(k.marks, slot{eq.Attribute, only(eq.Value, odd, odds)})
	}
}

func (k *kind) marked(name string) bool {
	return slices.ContainsFunc(k.marks, func(s slot) bool { return s.name == name })
}

// holdsInCase reports whether the entity's keys hold a variable in one letter case.
func (k *kind) holdsInCase(variable string) bool {
	return slices.ContainsFunc(k.keys, func(key keyAttribute) bool {
		return slices.ContainsFunc(key.parts, func(p keyPart) bool { return p.variable == variable && p.in != "" })
	})
}

// read lists the attributes on which some effect of the entity's items depends, those that a mirror item holds, and those
// that tell the letters of a variable, whether or not the rules know that they read them; sorted.
func (k *kind) read() []string {
	var names []string
	for _, v := range k.variables {
		if k.holdsInCase(v.name) {
			names = append(names, v.name)
		}
	}
	for _, r := range slices.Concat(k.entity.Sources, k.entity.Parents, k.entity.Own) {
		names = append(names, r.Reads...)
	}
	for _, r := range k.entity.Children {
		names = append(names, r.JoinReads...)
	}
	for _, r := range k.entity.Makers {
		names = append(names, r.Writes...)
	}
	if k.entity.Unique != "" {
		names = append(names, k.entity.Unique)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// writtenByRules lists the attributes that rules write on items of the application; sorted.
func (k *kind) writtenByRules() []string {
	var names []string
	for _, r := range slices.Concat(k.entity.Displays, k.entity.Children, k.entity.Own) {
		names = append(names, r.Writes...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// item draws an item whole.
func (k *kind) item(r *rand.Rand) change.Item {
	it := make(change.Item, len(k.keys)+len(k.marks)+len(k.slots)+1)
	for try := range keyTriesMax {
		if k.drawKey(r, it, try == keyTriesMax-1) {
			break
		}
	}
	for _, s := range k.marks {
		s.write(it, s.pool.draw(r))
	}
	for _, s := range k.slots {
		s.write(it, s.pool.draw(r))
	}
	if len(k.derived) > 0 && r.IntN(25) == 0 { // it wrote back what it had read, or another program meddled
		s := oneOf(r, k.derived)
		s.write(it, s.pool.draw(r))
	}
	return it
}

// keyTriesMax is how often a key is drawn until it is short enough.
const keyTriesMax = 4

// drawKey draws an item's key, and reports whether DynamoDB allows one so long.
// Each variable's first value is short.
func (k *kind) drawKey(r *rand.Rand, it change.Item, short bool) bool {
	var values [rules.VariablesMax]string
	for i, v := range k.variables {
		if values[i] = v.texts[0]; !short {
			values[i] = oneOf(r, v.texts)
		}
	}
	return k.fillKey(it, values)
}

// fillKey gives an item the key of some values of the variables, and reports whether DynamoDB allows one so long.
func (k *kind) fillKey(it change.Item, values [rules.VariablesMax]string) bool {
	fits := true
	for i, key := range k.keys {
		text := ""
		for _, p := range key.parts {
			if p.at < 0 {
				text += p.literal
			} else {
				text += p.held(values[p.at])
			}
		}
		if key.number {
			it[key.name] = change.Number(text)
			continue
		}
		it[key.name] = change.String(text)
		fits = fits && len(text) <= keyBytesMax[i]
	}
	return fits
}

// write gives the item a value, or takes it away where it is absent.
func (s *slot) write(it change.Item, value change.Value) {
	if value.Kind() == change.KindAbsent {
		delete(it, s.name)
		return
	}
	it[s.name] = value
}

// draw draws a value.
func (p *pool) draw(r *rand.Rand) change.Value {
	if p.odds > 0 && r.IntN(100) < p.odds {
		return oneOf(r, p.odd)
	}
	return oneOf(r, p.usual)
}

// other draws a value that is not the one given, if it can.
func (p *pool) other(r *rand.Rand, than change.Value) change.Value {
	const tries = 8
	value := p.draw(r)
	for range tries {
		if !value.Equal(than) {
			break
		}
		if value = oneOf(r, p.usual); len(p.odd) > 0 && r.IntN(2) == 0 {
			value = oneOf(r, p.odd)
		}
	}
	return value
}

func oneOf[T any](r *rand.Rand, all []T) T { return all[r.IntN(len(all))] }
