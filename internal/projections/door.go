package projections

import (
	"context"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/registry"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/projections"
)

// StampPrefix begins the name of every attribute in which the engine leaves a stamp.
const StampPrefix = plan.StampPrefix

// Names that callers of the engine need of its rooms.
type (
	// Client is what the engine needs of DynamoDB; *dynamodb.Client satisfies it.
	Client = projections.Client
	// InspectClient is what Inspect needs of DynamoDB: reading. *dynamodb.Client satisfies it.
	InspectClient = table.InspectClient
	// Limiter holds writes back.
	Limiter = table.Limiter
	// SetupError says that the engine cannot start as things are around it.
	SetupError = projections.SetupError
	// MissingTargets says of one rule at which items its sources point although they do not exist.
	MissingTargets = projections.MissingTargets
	// OtherCase is a target that does not exist, and one that does and differs in letter case alone.
	OtherCase = projections.OtherCase
	// Matches counts the items and records that an engine or an audit looked at, by their entities.
	Matches = projections.Matches
	// EntityMatches counts the items and records of one entity.
	EntityMatches = projections.EntityMatches
	// CaseMismatch is an attribute whose text differs in letter case alone from what rules compare it with.
	CaseMismatch = projections.CaseMismatch
	// Description is what Open found and did, for the operator.
	Description = projections.Description
	// RulesChangedError says that the rule file differs from the rules in force.
	RulesChangedError = projections.RulesChangedError
	// Comparison is what a rule file would change in a table.
	Comparison = registry.Comparison
	// RuleChange is one rule of a Comparison.
	RuleChange = registry.RuleChange
	// Stats are counts since Open.
	Stats = projections.Stats
	// RuleStats are the counts of one rule since Open.
	RuleStats = projections.RuleStats
	// SeedProgress is how far seeding has come.
	SeedProgress = projections.SeedProgress
	// TaskProgress is how far a task is.
	TaskProgress = projections.TaskProgress
	// Unfinished is what the engine has set aside.
	Unfinished = projections.Unfinished
	// RecordedMissing is what the state table says of one rule's missing targets.
	RecordedMissing = state.RecordedMissing
)

// What can become of a rule under another rule file. Those that are retiring are changed or
// removed already, and what they wrote is still to be taken back.
const (
	RuleUnchanged = registry.RuleUnchanged
	RuleRenamed   = registry.RuleRenamed
	RuleSpread    = registry.RuleSpread // over more write_shards
	RuleAdded     = registry.RuleAdded
	RuleChanged   = registry.RuleChanged
	RuleRemoved   = registry.RuleRemoved
	RuleRetiring  = registry.RuleRetiring
)

// ErrEpochMoved is returned by Process when another process has registered
// newer rules. The records are not done; the process must stop and be started
// again with the new rule file.
var ErrEpochMoved = registry.ErrEpochMoved

// Compare says what a rule file would change against the rules in force. It writes
// nothing. Where there is no state table, or nothing in it, every rule is new.
func Compare(ctx context.Context, client InspectClient, stateTable string, set *rules.Set) (*registry.Comparison, error) {
	return registry.Compare(ctx, table.NewReader(client, stateTable), set)
}

// CheckTable compares the rule file's keys with those of the table that it is for,
// as Open does: names, types, and templates that must give a number. The error is
// a *SetupError or a *rules.Problems.
func CheckTable(t *ddb.TableDescription, set *rules.Set) error { return registry.CheckTable(t, set) }
