package aggregates

import (
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/sightings"
)

// noteRollupTarget notes whether the target of a roll-up exists.
func (r run) noteRollupTarget(g plan.GroupRef, t Total, there bool) {
	m := r.Missing[g.Binding]
	switch {
	case there && t.Value.IsZero():
		m.Forget(g.Group) // perhaps no source points at it
		return
	case there:
		m.NoteTarget(g.Group)
		return
	}
	m.NoteMissing(g.Group, func(p *sightings.Pointers) {
		if n, ok := t.Value.Int64(); ok && g.Rule.Kind == Count {
			p.Count(n) // a count is the number of its sources
		} else if p.All() == 0 {
			p.Count(1) // of a sum at least one, until noteSources names them
		}
	})
}

// noteSources names the sources of sums whose targets are missing, by the moves that were applied.
func (r run) noteSources(moves []*plan.Move) {
	for b, m := range r.Missing {
		if b.Rule.Kind != Sum || m.None() {
			continue
		}
		for _, mv := range moves {
			for _, k := range mv.Keys() {
				before, after := mv.Old[k], mv.New[k]
				if k.ID == b.ID && before.Kind == plan.Contribution && before.Group != after.Group {
					m.AdjustSources(before.Group, func(p *sightings.Pointers) { p.Remove(mv.Key) })
				}
				if k.ID == b.ID && after.Kind == plan.Contribution {
					m.AdjustSources(after.Group, func(p *sightings.Pointers) { p.Identify(mv.Key) })
				}
			}
		}
	}
}
