package sightings

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"time"

	"github.com/dynamill/dynamill/internal/awscall"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/projections"
)

const (

	// missingEvery is how often an engine writes those rows beside the stream, at most.
	missingEvery = time.Minute
	// missingStale is after how long a row may be replaced by one that knows of less.
	missingStale = 24 * time.Hour
)

// missingRows is what an engine wrote of missing targets.
type missingRows struct {
	mu      sync.Mutex
	at      time.Time
	written map[string]projections.MissingTargets // by rule id
}

// RecordMissing writes to the state table which targets are missing, for `status`, if that has
// changed. Without atOnce it does so at most once a minute. Several processes write the same rows:
// one that looked at the whole table replaces any row, another one only rows that say less.
func (o *Observer) RecordMissing(ctx context.Context, atOnce bool) error {
	rows := &o.rows
	rows.mu.Lock()
	defer rows.mu.Unlock()
	now := o.now()
	if !atOnce && now.Sub(rows.at) < missingEvery {
		return nil
	}
	rows.at = now
	if rows.written == nil {
		rows.written = map[string]projections.MissingTargets{}
	}
	var failed error
	var recorded map[string]bool // rows that are there; nil: not read yet
	for _, b := range o.planner.InForce {
		m := o.missing[b]
		if m == nil {
			continue
		}
		t, lacking := m.report()
		before, known := rows.written[b.ID]
		whole := m.takeUnwritten()
		if !whole && (lacking == known && reflect.DeepEqual(t, before) || !lacking && !known) {
			continue
		}
		if whole && !lacking {
			if recorded == nil {
				var err error
				if recorded, err = o.recordedRules(ctx); err != nil {
					m.notePass(true)
					return errors.Join(failed, err)
				}
			}
			if !recorded[b.Rule.Name] {
				continue
			}
		}
		if err := o.recordOne(ctx, b, t, lacking, whole, now); err != nil {
			failed = errors.Join(failed, err)
			m.notePass(whole) // the next call writes it
			continue
		}
		if rows.written[b.ID] = t; !lacking {
			delete(rows.written, b.ID)
		}
	}
	return failed
}

// recordedRules names the rules of which the state table says that targets are missing.
func (o *Observer) recordedRules(ctx context.Context) (map[string]bool, error) {
	rows, err := ReadRecorded(ctx, o.tables.Reader, o.planner)
	names := make(map[string]bool, len(rows))
	for _, r := range rows {
		names[r.Rule] = true
	}
	return names, err
}

// takeUnwritten reports, once for each pass over the whole table, that its result is not written yet.
func (m *Missing) takeUnwritten() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	was := m.unwritten
	m.unwritten = false
	return was
}

// recordOne writes what is known of one rule, unless another process knows more.
func (o *Observer) recordOne(ctx context.Context, b *plan.Binding, t projections.MissingTargets, lacking, whole bool, now time.Time) error {
	c := table.NewExpression()
	if !lacking {
		condition := ""
		if !whole {
			condition = c.Format("%n = %v", "by", table.Text(o.process))
		}
		return o.tables.DeleteState(ctx, b.ID, "noting that no target is missing", state.MissingKey(b.ID), condition, c)
	}
	condition := ""
	if !whole {
		condition = c.Format("attribute_not_exists(%n) OR %n = %v OR %n <= %v OR %n < %v", table.PK, "by", table.Text(o.process),
			"targets", table.Number(t.Targets), "at", table.Text(now.Add(-missingStale).UTC().Format(time.RFC3339)))
	}
	row := state.MissingRow(b.ID, o.process, state.RecordedMissing{MissingTargets: t, At: now, Whole: whole})
	err := o.tables.PutState(ctx, b.ID, "noting missing targets", row, condition, c)
	if err != nil && awscall.Classify(err) == awscall.Condition {
		return nil // another process knows of more
	}
	return err
}

// ReadRecorded reads what is recorded of the rules in force.
func ReadRecorded(ctx context.Context, rd *table.Reader, p *plan.Planner) ([]state.RecordedMissing, error) {
	c := table.NewExpression()
	in := rd.StateQuery(c.Format("%n = %v", table.PK, table.Text(state.MissingPartition)), c)
	var found []state.RecordedMissing
	err := rd.QueryPages(ctx, "reading which targets are missing", in, func(rows []table.Row) error {
		for _, r := range rows {
			if b := p.ByID(table.TextOf(r[table.SK])); b != nil {
				found = append(found, state.ReadMissing(b.Rule.Name, r))
			}
		}
		return nil
	})
	return found, err
}
