package sightings

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"time"

	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/projections"
)

const (
	// missingEvery is how often an engine writes the rows of missing targets beside the stream, at most.
	missingEvery = time.Minute
	// missingStale is after how long a row may be replaced by one that knows of less.
	missingStale = 24 * time.Hour
)

// Observer holds what one engine has seen of its table, looks for targets that are missing,
// and notes them in the state table. It is safe for concurrent use.
type Observer struct {
	seenCounts
	tables  *table.Tables
	planner *plan.Planner
	missing map[*plan.Binding]*MissingTracker
	now     func() time.Time
	process string // drawn at random: which rows of the state table are this engine's

	recording  sync.Mutex // guards recordedAt and written
	recordedAt time.Time
	written    map[string]projections.MissingTargets // rows of the state table, by rule id
}

// New returns an observer that has seen nothing. missing holds the missing targets of every rule that makes no items.
func New(ts *table.Tables, p *plan.Planner, missing map[*plan.Binding]*MissingTracker, now func() time.Time, process string) *Observer {
	return &Observer{
		tables: ts, planner: p, missing: missing, now: now, process: process, written: map[string]projections.MissingTargets{},
	}
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

// RecordMissing writes to the state table which targets are missing, for `status`, if that has
// changed. Without atOnce it does so at most once a minute. Several processes write the same rows:
// one that looked at the whole table replaces any row, another one only rows that say less.
func (o *Observer) RecordMissing(ctx context.Context, atOnce bool) error {
	o.recording.Lock()
	defer o.recording.Unlock()
	now := o.now()
	if !atOnce && now.Sub(o.recordedAt) < missingEvery {
		return nil
	}
	o.recordedAt = now
	var failed error
	recorded := sync.OnceValues(func() (map[string]bool, error) { // names of the rules that have a row
		names := map[string]bool{}
		rows, err := ReadRecorded(ctx, o.tables.Reader, o.planner)
		for _, r := range rows {
			names[r.Rule] = true
		}
		return names, err
	})
	for _, b := range o.planner.InForce {
		m := o.missing[b]
		if m == nil {
			continue
		}
		t, lacking := m.report()
		before, known := o.written[b.ID]
		whole := m.takeUnwritten()
		unchanged := lacking == known && reflect.DeepEqual(t, before)
		neverMissing := !lacking && !known
		if !whole && (unchanged || neverMissing) {
			continue
		}
		if whole && !lacking {
			names, err := recorded()
			if err != nil {
				m.notePass(true)
				return errors.Join(failed, err)
			}
			if !names[b.Rule.Name] {
				continue
			}
		}
		if err := o.recordOne(ctx, b, t, lacking, whole, now); err != nil {
			failed = errors.Join(failed, err)
			m.notePass(whole) // the next call writes it
			continue
		}
		if o.written[b.ID] = t; !lacking {
			delete(o.written, b.ID)
		}
	}
	return failed
}

// takeUnwritten reports, once for each pass over the whole table, that its result is not written yet.
func (m *MissingTracker) takeUnwritten() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	was := m.unwritten
	m.unwritten = false
	return was
}

// recordOne writes what is known of one rule, unless another process knows more.
func (o *Observer) recordOne(ctx context.Context, b *plan.Binding, t projections.MissingTargets, lacking, whole bool, now time.Time) error {
	c, condition := table.NewExpression(), ""
	if !whole {
		condition = c.Format("%n = %v", "by", table.Text(o.process))
	}
	if !lacking {
		return o.tables.DeleteState(ctx, b.ID, "noting that no target is missing", state.MissingKey(b.ID), condition, c)
	}
	if !whole {
		condition += c.Format(" OR attribute_not_exists(%n) OR %n <= %v OR %n < %v", table.PK,
			"targets", table.Number(t.Targets), "at", table.Text(now.Add(-missingStale).UTC().Format(time.RFC3339)))
	}
	row := state.MissingRow(b.ID, o.process, state.RecordedMissing{MissingTargets: t, At: now, Whole: whole})
	_, err := o.tables.PutState(ctx, b.ID, "noting missing targets", row, condition, c) // or another process knows of more
	return err
}

// ReadRecorded reads what is recorded of the rules in force.
func ReadRecorded(ctx context.Context, rd *table.Reader, p *plan.Planner) ([]state.RecordedMissing, error) {
	var found []state.RecordedMissing
	err := rd.EachRow(ctx, "reading which targets are missing", state.MissingPartition, func(r table.Row) {
		if b := p.ByID(table.TextOf(r[table.SK])); b != nil {
			found = append(found, state.ReadMissing(b.Rule.Name, r))
		}
	})
	return found, err
}
