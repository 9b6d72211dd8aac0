package projections

import (
	"context"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/kinds"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/registry"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/projections"
)

// StampPrefix begins the name of every attribute in which the engine leaves a stamp.
const StampPrefix = stamp.Prefix

// Names that callers of the engine need of its rooms, and of what programs see of it.
type (
	Client            = projections.Client
	InspectClient     = table.InspectClient
	SetupError        = projections.SetupError
	MissingTargets    = projections.MissingTargets
	OtherCase         = projections.OtherCase
	Matches           = projections.Matches
	EntityMatches     = projections.EntityMatches
	CaseMismatch      = projections.CaseMismatch
	Description       = projections.Description
	RulesChangedError = projections.RulesChangedError
	Comparison        = registry.Comparison
	RuleChange        = registry.RuleChange
	Stats             = projections.Stats
	RuleStats         = projections.RuleStats
	BudgetStats       = projections.BudgetStats
	SeedProgress      = projections.SeedProgress
	TaskProgress      = projections.TaskProgress
	Unfinished        = projections.Unfinished
)

// What can become of a rule under another rule file.
const (
	RuleUnchanged = registry.RuleUnchanged
	RuleRenamed   = registry.RuleRenamed
	RuleSpread    = registry.RuleSpread // over more write_shards
	RuleAdded     = registry.RuleAdded
	RuleChanged   = registry.RuleChanged
	RuleRemoved   = registry.RuleRemoved
	RuleRetiring  = registry.RuleRetiring
)

// ErrEpochMoved is returned by Process when another process has registered newer rules: see registry.ErrEpochMoved.
var ErrEpochMoved = registry.ErrEpochMoved

// ErrTooContended is returned for work that kept losing to other writers of the same items. It may be tried again.
var ErrTooContended = table.ErrTooContended

// IsMade reports whether the engine made the item that stands under a key.
func IsMade(key change.Key, item change.Image) bool { return plan.IsMade(key, item) }

// Compare says what a rule file would change against the rules in force. It writes
// nothing. Where there is no state table, or nothing in it, every rule is new.
func Compare(ctx context.Context, client InspectClient, stateTable string, set *rules.Set) (*registry.Comparison, error) {
	return registry.Compare(ctx, table.NewReader(client, stateTable), set)
}

// CheckTable compares the rule file's keys with a table's, as Open does. The error is a *SetupError or a *rules.Problems.
func CheckTable(t *ddb.TableDescription, set *rules.Set) error { return registry.CheckTable(t, set) }

// Kinds are the kinds of rules that the engine derives. rules.Load is given them.
var Kinds = kinds.All
