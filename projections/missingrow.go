package projections

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/projections/internal/plan"
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
	key, c := stateKey{missingPartition, b.ID}, newExpression()
	if !lacking {
		condition := ""
		if !whole {
			condition = c.sprintf("%n = %v", "by", textValue(e.process))
		}
		return e.tables.deleteState(ctx, b.ID, "noting that no target is missing", key, condition, c)
	}
	item := key.attributes()
	item["entity"], item["at"], item["by"] = textValue(t.Entity), textValue(now.UTC().Format(time.RFC3339)), textValue(e.process)
	item["targets"], item["sources"] = numberValue(t.Targets), numberValue(t.Sources)
	for name, yes := range map[string]bool{"about": t.About, "all": t.All, "whole": whole} {
		item[name] = &ddb.AttributeValueMemberBOOL{Value: yes}
	}
	var examples []ddb.AttributeValue
	for _, example := range t.Examples {
		examples = append(examples, textValue(example))
	}
	item["examples"] = &ddb.AttributeValueMemberL{Value: examples}
	if t.Unique != "" {
		item["unique"] = textValue(t.Unique)
	}
	if t.OtherCase != nil {
		item["otherMissing"], item["otherExists"] = textValue(t.OtherCase.Missing), textValue(t.OtherCase.Exists)
	}
	in := &dynamodb.PutItemInput{Item: item}
	if !whole {
		in.ConditionExpression = new(c.sprintf("attribute_not_exists(%n) OR %n = %v OR %n <= %v OR %n < %v", statePartition, "by", textValue(e.process),
			"targets", numberValue(t.Targets), "at", textValue(now.Add(-missingStale).UTC().Format(time.RFC3339))))
		in.ExpressionAttributeNames, in.ExpressionAttributeValues = c.names, c.values
	}
	err := e.tables.putState(ctx, b.ID, "noting missing targets", in)
	if err != nil && classify(err) == classCondition {
		return nil // another process knows of more
	}
	return err
}

// inspectMissing reads what is recorded of the rules in force.
func (rd *ruleReader) inspectMissing(ctx context.Context) ([]RecordedMissing, error) {
	c := newExpression()
	in := rd.stateQuery(c.sprintf("%n = %v", statePartition, textValue(missingPartition)), c)
	var found []RecordedMissing
	err := rd.queryPages(ctx, "reading which targets are missing", in, func(rows []row) error {
		for _, r := range rows {
			if b := rd.planner.ByID(textOf(r[stateSort])); b != nil {
				found = append(found, recordedMissing(b.Rule.Name, r))
			}
		}
		return nil
	})
	return found, err
}

func recordedMissing(rule string, r row) RecordedMissing {
	yes := func(name string) bool {
		v, ok := r[name].(*ddb.AttributeValueMemberBOOL)
		return ok && v.Value
	}
	m := RecordedMissing{Whole: yes("whole"), MissingTargets: MissingTargets{
		Rule: rule, Entity: textOf(r["entity"]), Unique: textOf(r["unique"]), Sources: numberOf(r["sources"]), Targets: numberOf(r["targets"]),
		About: yes("about"), All: yes("all"),
	}}
	m.At, _ = time.Parse(time.RFC3339, textOf(r["at"]))
	if list, ok := r["examples"].(*ddb.AttributeValueMemberL); ok {
		for _, v := range list.Value {
			m.Examples = append(m.Examples, textOf(v))
		}
	}
	if exists := textOf(r["otherExists"]); exists != "" {
		m.OtherCase = &OtherCase{Missing: textOf(r["otherMissing"]), Exists: exists}
	}
	return m
}
