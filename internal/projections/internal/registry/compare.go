package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/rules"
)

// WhatChanges is what becomes of one rule under another rule file.
type WhatChanges string

// What can become of a rule. Retiring: changed or removed already, and what it wrote is still to be taken back.
const (
	RuleUnchanged WhatChanges = "unchanged"
	RuleRenamed   WhatChanges = "renamed"
	RuleSpread    WhatChanges = "spread" // over more write_shards
	RuleAdded     WhatChanges = "added"
	RuleChanged   WhatChanges = "changed"
	RuleRemoved   WhatChanges = "removed"
	RuleRetiring  WhatChanges = "retiring"
)

// RuleChange is one rule of a Comparison.
type RuleChange struct {
	What       WhatChanges
	Name       string // in the file; of a rule that is not there, its former one
	FormerName string // of a renamed rule
	ID         string // the registry's, of the rule that is or was in force; "" of an added one
	Live       bool   // of a rule in force: it is seeded
	Rule       *rules.Rule
	Former     *rules.Rule // of a changed, removed or retiring rule; nil if the state table does not hold its file
	Shards     int         // write suffixes in force
}

// Comparison is what a rule file would change in a table.
type Comparison struct {
	StateTable string
	Table      string       // the user's, as the state table names it; "" if there is none
	Epoch      int          // of the rules in force; 0 if there are none
	Rules      []RuleChange // of the file, in its order; then those that are not in it, by name
}

// Idle reports whether nothing is to be done.
func (c *Comparison) Idle() bool {
	return !slices.ContainsFunc(c.Rules, func(r RuleChange) bool {
		return r.What != RuleUnchanged || !r.Live
	})
}

// Compare says what a rule file would change. It writes nothing. Without a registry, every rule is new. If the table refuses the file, the
// comparison comes with the error.
func Compare(ctx context.Context, rd *table.Reader, set *rules.Set) (*Comparison, error) {
	found := &Comparison{StateTable: rd.StateTable}
	own, known, err := Read(ctx, rd)
	if missing := new(ddb.ResourceNotFoundException); err != nil && !errors.As(err, &missing) {
		return nil, err
	}
	if own != nil {
		found.Table, found.Epoch = own.Name, own.Epoch
	}
	m := Match(set, known)
	former := slices.DeleteFunc(m.formers(), func(id string) bool { return known[id].Cleaned })
	compiled, err := m.compile(ctx, rd, former)
	if err != nil {
		return nil, err
	}
	changed := map[string]bool{}
	for _, r := range set.Rules {
		c := m.compareRule(r)
		if c.What == RuleChanged {
			c.Former, changed[c.ID] = compiled[c.ID], true
		}
		found.Rules = append(found.Rules, c)
	}
	var gone []RuleChange
	for _, id := range former {
		c := RuleChange{What: RuleRetiring, Name: known[id].Name, ID: id, Former: compiled[id]}
		if known[id].InForce() {
			c.What = RuleRemoved
		}
		if !changed[id] {
			gone = append(gone, c)
		}
	}
	slices.SortStableFunc(gone, func(a, b RuleChange) int { return cmp.Compare(a.Name, b.Name) })
	found.Rules = append(found.Rules, gone...)
	return found, m.checkRows()
}

// compareRule says what becomes of a rule of the file.
func (m Matched) compareRule(r *rules.Rule) RuleChange {
	c := RuleChange{What: RuleUnchanged, Name: r.Name, ID: m.IDs[r], Rule: r}
	if c.ID == "" {
		c.What = RuleAdded
		if i := slices.IndexFunc(m.Retire, func(id string) bool { return m.known[id].Name == r.Name }); i >= 0 {
			c.What, c.ID = RuleChanged, m.Retire[i]
		}
		c.Shards = m.known[c.ID].WriteShardsMax
		return c
	}
	item := m.known[c.ID]
	c.Live, c.Shards = item.State == state.Live, item.WriteShardsMax
	if item.Name != r.Name {
		c.What, c.FormerName = RuleRenamed, item.Name
	}
	if r.Suffixes() > c.Shards {
		c.What = RuleSpread
	}
	return c
}

// CheckTable compares the rule file's keys with a table's: names, types, and templates that must give a number. The error is a
// *table.SetupError or a *rules.Problems.
func CheckTable(t *ddb.TableDescription, set *rules.Set) error {
	return checkKeys(aws.ToString(t.TableName), table.SchemaOf(t), set)
}

// Describe learns the user table's keys, checks the rules against them, and returns the table's id.
func Describe(ctx context.Context, ts *table.Tables, set *rules.Set) (id string, err error) {
	id, err = ts.Describe(ctx)
	if err != nil {
		return "", err
	}
	return id, checkKeys(ts.Table, ts.Schema, set)
}

func checkKeys(name string, keys table.Schema, set *rules.Set) error {
	if keys.PartitionKey != set.Table.PartitionKey || keys.SortKey != set.Table.SortKey {
		return &table.SetupError{
			Problem: fmt.Sprintf("the keys of table %s are [%s], but the rule file says [%s]", name,
				keyNames(keys.PartitionKey, keys.SortKey), keyNames(set.Table.PartitionKey, set.Table.SortKey)),
			Remedy: "write the table's own key names under table.keys",
		}
	}
	return set.CheckKeys(keys.PartitionKind, keys.SortKind)
}

func keyNames(partition, sort string) string { return strings.TrimSuffix(partition+", "+sort, ", ") }
