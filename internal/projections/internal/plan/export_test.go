package plan

import "github.com/dynamill/dynamill/change"

// Classify is classify, for the tests of allocations.
func (p *Planner) Classify(pl *Changes, rec *change.Record, index int) { p.classify(pl, rec, index) }
