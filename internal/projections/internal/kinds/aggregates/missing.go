package aggregates

import (
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/sightings"
)

// noteRollupTarget notes whether the target of a roll-up exists.
func (r run) noteRollupTarget(g plan.GroupRef, t Total, there bool) {
	m := r.Missing[g.Binding]
	switch {
	case there && t.Members == 0: // no source points at it
		m.Forget(g.Group)
	case there:
		m.NoteTarget(g.Group)
	default:
		m.NoteMissing(g.Group, func(p *sightings.TargetSources) { p.Count(t.Members) })
	}
}
