package plan

import (
	"cmp"
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/rules"
)

// UnmatchedKeysMax is how many keys of items of no entity are kept as examples.
const UnmatchedKeysMax = 3

// Seen counts items or records by the entity that they are of.
type Seen struct {
	Matched       []int64 // by Entity.Index; nil as long as nothing matched
	KeyOnly       []int64 // of these, the items whose entity asks for attributes that were not read
	Unmatched     int64
	UnmatchedKeys []change.Key // keys of those that matched no entity, at most UnmatchedKeysMax
	Cases         []CaseSeen   // one for each entity and variable
}

// CaseSeen is an item whose attribute differs from its key in letter case.
type CaseSeen struct {
	Entity *rules.Entity
	Key    change.Key
	rules.CaseDifference
}

// See counts the records that some driver has seen applied.
func (p *Planner) See(records []change.Record) Seen {
	var s Seen
	for i := range records {
		sides := p.sidesOf(&records[i], i)
		p.see(&s, records[i].Key, records[i].New, &sides.new, &sides.old)
	}
	return s
}

// SeeItem counts an item of the table as one that was looked at.
func (p *Planner) SeeItem(s *Seen, key change.Key, img change.Image) {
	m := p.MatchOf(key, img)
	p.see(s, key, img, &m, &m)
}

// SeeKey counts an item by its key alone, as one of the first entity that has such keys.
func (p *Planner) SeeKey(s *Seen, key change.Key) {
	for _, e := range p.Set.Entities {
		if e.HasKey(key) {
			s.count(p, e)
			if len(e.Equals) > 0 {
				s.KeyOnly[e.Index]++
			}
			return
		}
	}
	s.Add(Seen{Unmatched: 1, UnmatchedKeys: []change.Key{key}})
}

// see counts an item or record under the entity of the first match, or of the second if the first has none.
func (p *Planner) see(s *Seen, key change.Key, img change.Image, first, second *rules.Match) {
	entity := cmp.Or(first.Entity, second.Entity)
	if entity == nil {
		s.Add(Seen{Unmatched: 1, UnmatchedKeys: []change.Key{key}})
		return
	}
	s.count(p, entity)
	if first.Entity != nil && img != nil {
		if d, differs := first.CaseDiffers(img); differs {
			s.addCase(CaseSeen{first.Entity, key, d})
		}
	}
}

func (s *Seen) count(p *Planner, e *rules.Entity) {
	if s.Matched == nil {
		s.Matched, s.KeyOnly = make([]int64, len(p.Set.Entities)), make([]int64, len(p.Set.Entities))
	}
	s.Matched[e.Index]++
}

// addCase notes the first item of an entity whose key differs from its attribute in letter case.
func (s *Seen) addCase(c CaseSeen) {
	if !slices.ContainsFunc(s.Cases, func(known CaseSeen) bool { return known.Entity == c.Entity && known.Variable == c.Variable }) {
		s.Cases = append(s.Cases, c)
	}
}

// Add adds what was counted elsewhere.
func (s *Seen) Add(more Seen) {
	if s.Matched == nil && more.Matched != nil {
		s.Matched, s.KeyOnly = make([]int64, len(more.Matched)), make([]int64, len(more.Matched))
	}
	for i, n := range more.Matched {
		s.Matched[i] += n
		s.KeyOnly[i] += more.KeyOnly[i]
	}
	s.Unmatched += more.Unmatched
	for _, key := range more.UnmatchedKeys {
		if len(s.UnmatchedKeys) < UnmatchedKeysMax && !slices.Contains(s.UnmatchedKeys, key) {
			s.UnmatchedKeys = append(s.UnmatchedKeys, key)
		}
	}
	for _, c := range more.Cases {
		s.addCase(c)
	}
}
