package projections

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/awscall"
	"github.com/dynamill/dynamill/projections/internal/plan"
	"github.com/dynamill/dynamill/projections/internal/table"
)

const (
	// missingPartition holds one row for each rule with missing targets; sort: the rule's id.
	missingPartition = "missing"
	// missingEvery is how often an engine writes those rows beside the stream, at most.
	missingEvery = time.Minute
	// missingStale is after how long a row may be replaced by one that knows of less.
	missingStale = 24 * time.Hour
)

// RecordedMissing is what the state table says of one rule's missing targets.
type RecordedMissing struct {
	MissingTargets
	At    time.Time // when it was written
	Whole bool      // after a look at the whole table; otherwise one process saw it since it started
}

// missingRows is what an engine wrote of missing targets.
type missingRows struct {
	mu      sync.Mutex
	at      time.Time
	written map[string]MissingTargets // by rule id
}

// RecordMissing writes to the state table which targets are missing, for `status`, if that has
// changed. Without atOnce it does so at most once a minute. Several processes write the same rows:
// one that looked at the whole table replaces any row, another one only rows that say less.
func (e *Engine) RecordMissing(ctx context.Context, atOnce bool) error {
	rows := &e.missingRows
	rows.mu.Lock()
	defer rows.mu.Unlock()
	now := e.now()
	if !atOnce && now.Sub(rows.at) < missingEvery {
		return nil
	}
	rows.at = now
	if rows.written == nil {
		rows.written = map[string]MissingTargets{}
	}
	var failed error
	var recorded map[string]bool // rows that are there; nil: not read yet
	for _, r := range e.planner.Set.Rules {
		b := e.planner.Of(r)
		m := e.missing[b]
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
				if recorded, err = e.recordedRules(ctx); err != nil {
					m.notePass(true)
					return errors.Join(failed, err)
				}
			}
			if !recorded[r.Name] {
				continue
			}
		}
		if err := e.recordMissing(ctx, b, t, lacking, whole, now); err != nil {
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
func (e *Engine) recordedRules(ctx context.Context) (map[string]bool, error) {
	rows, err := e.inspectMissing(ctx)
	names := make(map[string]bool, len(rows))
	for _, r := range rows {
		names[r.Rule] = true
	}
	return names, err
}

// takeUnwritten reports, once for each pass over the whole table, that its result is not written yet.
func (m *missingTargets) takeUnwritten() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	was := m.unwritten
	m.unwritten = false
	return was
}

func (e *Engine) recordMissing(ctx context.Context, b *plan.Binding, t MissingTargets, lacking, whole bool, now time.Time) error {
	key, c := table.Key{Partition: missingPartition, Sort: b.ID}, table.NewExpression()
	if !lacking {
		condition := ""
		if !whole {
			condition = c.Format("%n = %v", "by", table.Text(e.process))
		}
		return e.tables.DeleteState(ctx, b.ID, "noting that no target is missing", key, condition, c)
	}
	item := key.Attributes()
	item["entity"], item["at"], item["by"] = table.Text(t.Entity), table.Text(now.UTC().Format(time.RFC3339)), table.Text(e.process)
	item["targets"], item["sources"] = table.Number(t.Targets), table.Number(t.Sources)
	for name, yes := range map[string]bool{"about": t.About, "all": t.All, "whole": whole} {
		item[name] = &ddb.AttributeValueMemberBOOL{Value: yes}
	}
	var examples []ddb.AttributeValue
	for _, example := range t.Examples {
		examples = append(examples, table.Text(example))
	}
	item["examples"] = &ddb.AttributeValueMemberL{Value: examples}
	if t.Unique != "" {
		item["unique"] = table.Text(t.Unique)
	}
	if t.OtherCase != nil {
		item["otherMissing"], item["otherExists"] = table.Text(t.OtherCase.Missing), table.Text(t.OtherCase.Exists)
	}
	condition := ""
	if !whole {
		condition = c.Format("attribute_not_exists(%n) OR %n = %v OR %n <= %v OR %n < %v", table.PK, "by", table.Text(e.process),
			"targets", table.Number(t.Targets), "at", table.Text(now.Add(-missingStale).UTC().Format(time.RFC3339)))
	}
	err := e.tables.PutState(ctx, b.ID, "noting missing targets", item, condition, c)
	if err != nil && awscall.Classify(err) == awscall.Condition {
		return nil // another process knows of more
	}
	return err
}

// inspectMissing reads what is recorded of the rules in force.
func (rd *ruleReader) inspectMissing(ctx context.Context) ([]RecordedMissing, error) {
	c := table.NewExpression()
	in := rd.reader.StateQuery(c.Format("%n = %v", table.PK, table.Text(missingPartition)), c)
	var found []RecordedMissing
	err := rd.reader.QueryPages(ctx, "reading which targets are missing", in, func(rows []table.Row) error {
		for _, r := range rows {
			if b := rd.planner.ByID(table.TextOf(r[table.SK])); b != nil {
				found = append(found, recordedMissing(b.Rule.Name, r))
			}
		}
		return nil
	})
	return found, err
}

func recordedMissing(rule string, r table.Row) RecordedMissing {
	yes := func(name string) bool {
		v, ok := r[name].(*ddb.AttributeValueMemberBOOL)
		return ok && v.Value
	}
	m := RecordedMissing{Whole: yes("whole"), MissingTargets: MissingTargets{
		Rule: rule, Entity: table.TextOf(r["entity"]), Unique: table.TextOf(r["unique"]), Sources: table.NumberOf(r["sources"]), Targets: table.NumberOf(r["targets"]),
		About: yes("about"), All: yes("all"),
	}}
	m.At, _ = time.Parse(time.RFC3339, table.TextOf(r["at"]))
	if list, ok := r["examples"].(*ddb.AttributeValueMemberL); ok {
		for _, v := range list.Value {
			m.Examples = append(m.Examples, table.TextOf(v))
		}
	}
	if exists := table.TextOf(r["otherExists"]); exists != "" {
		m.OtherCase = &OtherCase{Missing: table.TextOf(r["otherMissing"]), Exists: exists}
	}
	return m
}
