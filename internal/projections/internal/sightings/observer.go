package sightings

import (
	"time"

	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/projections"
)

// Observer holds what one engine has seen of its table, looks for targets that are missing,
// and notes them in the state table. It is safe for concurrent use.
type Observer struct {
	tally
	tables  *table.Tables
	planner *plan.Planner
	missing map[*plan.Binding]*Missing
	rows    missingRows
	now     func() time.Time
	process string // drawn at random: which rows of the state table are this engine's
}

// New returns an observer that has seen nothing. missing are the targets of every rule but mirrors.
func New(ts *table.Tables, p *plan.Planner, missing map[*plan.Binding]*Missing, now func() time.Time, process string) *Observer {
	return &Observer{tables: ts, planner: p, missing: missing, now: now, process: process}
}

// MissingTargets returns, by rule, which targets do not exist as far as the observer knows.
func (o *Observer) MissingTargets() []projections.MissingTargets {
	var all []projections.MissingTargets
	for _, m := range o.missing {
		if t, lacking := m.report(); lacking {
			all = append(all, t)
		}
	}
	SortMissing(all)
	return all
}
