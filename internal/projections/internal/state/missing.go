package state

import (
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/projections"
)

// MissingKey is the key of what is known of a rule's missing targets.
func MissingKey(ruleID string) table.Key {
	return table.Key{Partition: MissingPartition, Sort: ruleID}
}

const (
	// MissingPartition holds one row for each rule with missing targets; sort: the rule's id.
	MissingPartition = "missing"
)

// RecordedMissing is what the state table says of one rule's missing targets.
type RecordedMissing struct {
	projections.MissingTargets
	At    time.Time // when it was written
	Whole bool      // after a look at the whole table; otherwise one process saw it since it started
}

// MissingRow is what one process, by, has found of a rule's missing targets.
func MissingRow(ruleID, by string, t RecordedMissing) table.Row {
	r := MissingKey(ruleID).Attributes()
	r["entity"], r["at"], r["by"] = table.Text(t.Entity), table.Text(t.At.UTC().Format(time.RFC3339)), table.Text(by)
	r["targets"], r["sources"] = table.Number(t.Targets), table.Number(t.Sources)
	for name, yes := range map[string]bool{"about": t.About, "all": t.All, "whole": t.Whole} {
		r[name] = &ddb.AttributeValueMemberBOOL{Value: yes}
	}
	var examples []ddb.AttributeValue
	for _, example := range t.Examples {
		examples = append(examples, table.Text(example))
	}
	r["examples"] = &ddb.AttributeValueMemberL{Value: examples}
	if t.Unique != "" {
		r["unique"] = table.Text(t.Unique)
	}
	if t.OtherCase != nil {
		r["otherMissing"], r["otherExists"] = table.Text(t.OtherCase.Missing), table.Text(t.OtherCase.Exists)
	}
	return r
}

// ReadMissing reads what MissingRow wrote.
func ReadMissing(rule string, r table.Row) RecordedMissing {
	yes := func(name string) bool {
		v, ok := r[name].(*ddb.AttributeValueMemberBOOL)
		return ok && v.Value
	}
	m := RecordedMissing{Whole: yes("whole"), MissingTargets: projections.MissingTargets{
		Rule: rule, Entity: table.TextOf(r["entity"]), Unique: table.TextOf(r["unique"]), Sources: table.NumberOf(r["sources"]),
		Targets: table.NumberOf(r["targets"]),
		About:   yes("about"), All: yes("all"),
	}}
	m.At, _ = time.Parse(time.RFC3339, table.TextOf(r["at"]))
	if list, ok := r["examples"].(*ddb.AttributeValueMemberL); ok {
		for _, v := range list.Value {
			m.Examples = append(m.Examples, table.TextOf(v))
		}
	}
	if exists := table.TextOf(r["otherExists"]); exists != "" {
		m.OtherCase = &projections.OtherCase{Missing: table.TextOf(r["otherMissing"]), Exists: exists}
	}
	return m
}
