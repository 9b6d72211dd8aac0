package projections

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/sightings"
)

// auditSeen collects what an audit reports beside drift: how many items are of each entity, and the
// targets that do not exist although sources point at them.
type auditSeen struct {
	mu      sync.Mutex
	items   plan.Seen
	targets map[string]*auditTargets // by rule id
}

// auditTargets are the missing targets of one rule. All are counted, and the first of them held.
type auditTargets struct {
	MissingTargets                  // without examples
	held           map[string]int64 // sources of each
}

func (s *auditSeen) item(p *plan.Planner, key change.Key, img change.Image) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.SeeItem(&s.items, key, img)
}

// Matches counts the items that the audit has looked at, by their entities.
func (a *Audit) Matches() Matches {
	a.seen.mu.Lock()
	defer a.seen.mu.Unlock()
	return sightings.MatchesOf(a.planner.Set, a.seen.items, plan.Seen{})
}

// addPointed adds a target at which sources point.
func (a *Audit) addPointed(p audit.Pointed) {
	a.seen.mu.Lock()
	defer a.seen.mu.Unlock()
	if a.seen.targets == nil {
		a.seen.targets = map[string]*auditTargets{}
	}
	t := a.seen.targets[p.Rule]
	if t == nil {
		r := a.planner.ByID(p.Rule).Rule
		t = &auditTargets{MissingTargets{Rule: r.Name, Entity: sightings.TargetEntity(r).Name, All: true}, map[string]int64{}}
		if r.ByUnique {
			t.Unique = r.Target.Unique
		}
		a.seen.targets[p.Rule] = t
	}
	if p.Exists {
		t.All = false
		return
	}
	t.Targets, t.Sources = t.Targets+1, t.Sources+p.Sources
	if len(t.held) < sightings.TargetsHeld(len(a.planner.Set.Rules)) {
		t.held[p.Target] = p.Sources
	}
}

// LookForTargets returns, by rule, at which targets that do not exist sources point. It looks at
// about a thousand of each rule once more: the scan may have passed them before they came.
func (a *Audit) LookForTargets(ctx context.Context) ([]MissingTargets, error) {
	a.seen.mu.Lock()
	defer a.seen.mu.Unlock()
	var all []MissingTargets
	for id, t := range a.seen.targets {
		b := a.planner.ByID(id)
		if t.Targets > 0 && !b.Rule.ByUnique {
			if err := a.lookAgain(ctx, b, t); err != nil {
				return nil, err
			}
		}
		if t.Targets == 0 {
			continue
		}
		m := t.MissingTargets
		m.Examples = slices.Sorted(maps.Keys(t.held))
		m.Examples = m.Examples[:min(sightings.ExamplesMax, len(m.Examples))]
		for i := 0; i < len(m.Examples) && m.OtherCase == nil && !b.Rule.ByUnique; i++ {
			var err error
			if m.OtherCase, err = sightings.FindOtherCase(ctx, a.tables.Reader, a.planner, b, m.Examples[i]); err != nil {
				return nil, err
			}
		}
		all = append(all, m)
	}
	sightings.SortMissing(all)
	return all, nil
}

// lookAgain takes targets out that exist by now.
func (a *Audit) lookAgain(ctx context.Context, b *plan.Binding, t *auditTargets) error {
	there, err := sightings.Existing(ctx, a.tables.Reader, a.planner, b, slices.Sorted(maps.Keys(t.held)))
	if err != nil {
		return err
	}
	for target, exists := range there {
		if exists {
			t.All, t.Targets, t.Sources = false, t.Targets-1, t.Sources-t.held[target]
			delete(t.held, target)
		}
	}
	return nil
}
