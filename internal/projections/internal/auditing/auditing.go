// Package auditing reads what an audit suspects, judges it by what is there now, and mends what rederiving an item cannot
// mend: package audit is its pure half. It holds what is the same for all kinds of rules, and knows no kind; each adds
// procedures for what its rules alone derive. It keeps promise 1 in sight, as audit does: every write is on condition of
// the state that was read.
package auditing

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/registry"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// Family is what a kind of rule tells an audit of how its rules' suspects are read.
type Family interface {
	// Procedure is that for suspects of a sort under a rule of the kind; nil: the family
	// has none of its own.
	Procedure(of drift.Kind) *Procedure
}

// Keys are those that a suspect asks for at one step, after what the steps before it read.
type Keys[K any] func(e *Evidence, sus drift.Suspect) []K

// Rows and Items are the steps in which keys are read. A step may use what the step before has read.
type (
	Rows  []Keys[table.Key]
	Items []Keys[change.Key]
)

// Procedure says how suspects of one sort are read, judged and mended. Its keys are
// read in the order of the fields, those of many suspects at once.
type Procedure struct {
	Rows  Rows
	Items Items // by default the suspect's item

	// More reads what keys alone do not lead to, after the rows and before the items; nil: nothing.
	More  func(ctx context.Context, e *Evidence, sus drift.Suspect) error
	Judge func(e *Evidence, sus drift.Suspect) drift.Reading // nil: nothing is wrong
	// Rows that, if present, park a finding of the reading; nil: that of the rule and the item.
	Parkings func(e *Evidence, r *drift.Reading, f drift.Finding) []table.Key
	Tasks    func(e *Evidence, r *drift.Reading) []table.Key // of fan-outs that have still to come to the item; nil: none

	Stage drift.Stage // of a repair
	// Operations is how often an aggregate was changed; nil: the suspect is none.
	Operations func(e *Evidence, sus drift.Suspect) int64
	// Mend mends what was found, from the evidence that was read again (for an aggregate only its rows). It reports
	// false if another writer changed it since. nil: only rederiving items mends it.
	Mend func(ctx context.Context, e *Evidence, r drift.Reading) (bool, error)
}

// common are the procedures for what is the same for all kinds.
var common = map[drift.Kind]*Procedure{
	drift.Entry:    {Rows: Rows{entryRows}, Judge: judgeEntry, Parkings: entryParkings, Mend: mendEntry, Stage: drift.StageEntries},
	drift.Claims:   sets,
	drift.Locator:  sets,
	drift.Position: torn,
	drift.Task:     torn,
	drift.Leftover: {Judge: judgeLeftover, Parkings: leftoverParkings},
	drift.Parked:   {Rows: Rows{ParkedRows}, Judge: judgeParked, Mend: ClearParked},
}

// Table is a table under audit. It is safe for concurrent use.
type Table struct {
	*audit.Auditor
	Tables *table.Tables
}

// procedure is that of the suspect's rule, or of any rule if it names none, before the common one.
func (t *Table) procedure(sus drift.Suspect) *Procedure {
	for _, b := range t.Bindings.InForce {
		if sus.Rule != "" && sus.Rule != b.ID {
			continue
		}
		if p := b.Family.(Family).Procedure(sus.Kind); p != nil {
			return p
		}
	}
	return cmp.Or(common[sus.Kind], &Procedure{})
}

// suspectsAtOnce is how many suspects are read together.
const suspectsAtOnce = 50

// Sums are what is known of aggregates before they are read, by drift.Suspect.GroupID.
type Sums struct {
	Want   map[string]string // what the ledger entries add up to; an aggregate that is missing is taken to be right
	Before map[string]int64  // its operations then: if there are others now, it is not to be judged
}

// Read reads suspects anew, consistently, and judges each by what is there now.
// Entries are read before items and children before their parents, so that an item
// that is being written at this moment is told by a change of State.
func (t *Table) Read(ctx context.Context, suspects []drift.Suspect, sums Sums) ([]drift.Reading, error) {
	chunks := slices.Collect(slices.Chunk(suspects, suspectsAtOnce))
	readings := make([][]drift.Reading, len(chunks))
	err := t.Tables.Each(ctx, len(chunks), func(ctx context.Context, i int) (err error) {
		e := t.NewEvidence()
		e.Sums = sums
		readings[i], err = e.read(ctx, chunks[i])
		return err
	})
	return slices.Concat(readings...), err
}

// Operations reads how often each aggregate was changed. Every move of a contribution raises it in the same
// transaction: if it is the same as before, nothing was added or taken away.
func (t *Table) Operations(ctx context.Context, suspects []drift.Suspect) ([]int64, error) {
	all := make([]int64, 0, len(suspects))
	for chunk := range slices.Chunk(suspects, suspectsAtOnce) {
		e := t.NewEvidence()
		if err := e.readRows(ctx, chunk); err != nil {
			return nil, err
		}
		for _, sus := range chunk {
			all = append(all, t.procedure(sus).Operations(e, sus))
		}
	}
	return all, nil
}

// Mend mends what only the engine knows, if no other writer has changed it since it was read.
func (t *Table) Mend(ctx context.Context, r drift.Reading) (bool, error) {
	p, e, suspects := t.procedure(r.Suspect), t.NewEvidence(), []drift.Suspect{r.Suspect}
	if p.Operations != nil { // what the sum should be takes a scan: the count tells whether it moved
		if err := e.readRows(ctx, suspects); err != nil || strconv.FormatInt(p.Operations(e, r.Suspect), 10) != r.Fix.Seen {
			return false, err
		}
		return p.Mend(ctx, e, r)
	}
	again, err := e.read(ctx, suspects)
	if err != nil || again[0].State != r.State {
		return false, err
	}
	return p.Mend(ctx, e, again[0])
}

// Transact sends the writes that mend something. It reports false if a condition did not hold.
func (e *Evidence) Transact(ctx context.Context, doing, rule string, items []ddb.TransactWriteItem) (bool, error) {
	err := e.Tables.Transact(ctx, doing, []string{rule}, items)
	if table.LostRace(err) {
		return false, nil
	}
	return err == nil, err
}

// checkEpoch makes sure that the rules are those that were judged by: under others, everything else is right.
func (t *Table) checkEpoch(ctx context.Context) error {
	if t.Incarnation == "" {
		return nil
	}
	_, err := registry.CheckEpoch(ctx, t.Tables.Reader, t.Planner)
	return err
}
