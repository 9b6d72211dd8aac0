package state

import (
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/projections"
)

// MissingKey is the key of what is known of a rule's missing targets.
func MissingKey(ruleID string) table.Key { return table.Key{Partition: MissingPartition, Sort: ruleID} }

// MissingPartition holds one row for each rule with missing targets; sort: the rule's id.
const MissingPartition = "missing"

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
	it := attributes.ItemFromTable(r)
	m := RecordedMissing{Whole: it["whole"].Bool(), MissingTargets: projections.MissingTargets{
		Rule: rule, Entity: it["entity"].Text(), Unique: it["unique"].Text(), Sources: table.NumberOf(r["sources"]),
		Targets: table.NumberOf(r["targets"]), About: it["about"].Bool(), All: it["all"].Bool(),
	}}
	m.At, _ = time.Parse(time.RFC3339, it["at"].Text())
	for _, example := range it["examples"].List() {
		m.Examples = append(m.Examples, example.Text())
	}
	if exists := it["otherExists"].Text(); exists != "" {
		m.OtherCase = &projections.OtherCase{Missing: it["otherMissing"].Text(), Exists: exists}
	}
	return m
}
