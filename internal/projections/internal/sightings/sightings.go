package sightings

import (
	"sync"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/effects"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/projections"
)

// MatchesOf sums up the items and records that were counted under a rule set.
func MatchesOf(set *rules.Set, items, records plan.Seen) projections.Matches {
	m := projections.Matches{UnmatchedItems: items.Unmatched, UnmatchedRecords: records.Unmatched, Items: items.Unmatched,
		Records: records.Unmatched}
	var all plan.Seen
	all.Add(items)
	all.Add(records)
	m.Unmatched = all.UnmatchedKeys
	for _, e := range set.Entities {
		em := projections.EntityMatches{Entity: e.Name}
		if items.Matched != nil {
			em.Items, em.KeyOnly = items.Matched[e.Index], items.KeyOnly[e.Index]
		}
		if records.Matched != nil {
			em.Records = records.Matched[e.Index]
		}
		m.Items, m.Records = m.Items+em.Items, m.Records+em.Records
		if len(e.Makers) == 0 { // the engine makes items of the others
			em.Rules = set.RulesOf(e)
		}
		m.Entities = append(m.Entities, em)
	}
	for _, c := range all.Cases {
		mismatch := projections.CaseMismatch{Entity: c.Entity.Name, Item: c.Key, Variable: c.Variable, Attribute: c.Attribute,
			Key: c.CaseDifference.Key}
		for _, r := range set.Rules {
			if r.JoinsAcrossCase(c.Entity, c.Variable) {
				mismatch.Rules = append(mismatch.Rules, r.Name)
			}
		}
		if len(mismatch.Rules) > 0 {
			m.Cases = append(m.Cases, mismatch)
		}
	}
	return m
}

// seenCounts is what an engine has seen since Open: the records that it applied, and the items of
// the last pass over the table.
type seenCounts struct {
	mu      sync.Mutex
	records plan.Seen
	items   plan.Seen
	pass    string
	looked  int64                           // items of the pass, those that vanished among them
	whole   bool                            // all of the pass, by this process alone
	targets map[*plan.Binding]*targetSample // at which the items of the pass point
}

// Page is what was seen of a part of a pass. It counts once all of that part is worked off:
// a part that fails comes again.
type Page struct {
	Items    plan.Seen
	Looked   int64
	pointing []plan.GroupRef // targets, once for each source that points at them
}

// AddRecords adds what was seen of records that are applied.
func (s *seenCounts) AddRecords(seen plan.Seen) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records.Add(seen)
}

// AddPage adds a page of a pass. A pass that follows another begins with nothing.
func (s *seenCounts) AddPage(pass string, seen Page, ruleCount int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pass != pass {
		s.pass, s.items, s.looked, s.whole, s.targets = pass, plan.Seen{}, 0, false, nil
	}
	if s.targets == nil {
		s.targets = map[*plan.Binding]*targetSample{}
	}
	s.items.Add(seen.Items)
	s.looked += seen.Looked
	for _, target := range seen.pointing {
		sample := s.targets[target.Binding]
		if sample == nil {
			sample = newTargetSample(TargetsHeld(ruleCount))
			s.targets[target.Binding] = sample
		}
		sample.add(target.Group)
	}
}

// EndSeeding notes that a pass is over. items is how many items all processes together looked at in it.
func (s *seenCounts) EndSeeding(pass string, items int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.whole = s.whole || s.pass == pass && s.looked >= items || s.pass == "" && items == 0
}

// takeTargets gives the targets of the last pass, once; nil if there was no pass since.
func (s *seenCounts) takeTargets() map[*plan.Binding]*targetSample {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.targets
	s.targets = nil
	return taken
}

// Matches sums up what was seen, under the rules in force.
func (s *seenCounts) Matches(set *rules.Set) projections.Matches {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := MatchesOf(set, s.items, s.records)
	m.Pass, m.Looked, m.Whole = s.pass, s.looked, s.whole
	return m
}

// AddItems adds the items that a rederivation has read, and the targets at which they point
// by their effects, or were found to point beside those.
func (p *Page) AddItems(planner *plan.Planner, moves []*plan.Move, items map[change.Key]change.Item, pointing []plan.GroupRef) {
	for _, mv := range moves {
		img := table.Image(items[mv.Key])
		if img == nil {
			continue // it vanished since it was listed
		}
		planner.SeeItem(&p.Items, mv.Key, img)
		for k, f := range mv.New {
			if b := planner.ByID(k.ID); b != nil && f.Kind == effects.Contribution {
				p.pointing = append(p.pointing, plan.GroupRef{Binding: b, Group: f.Group})
			}
		}
	}
	p.pointing = append(p.pointing, pointing...)
}
