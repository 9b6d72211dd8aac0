package projections

import (
	"time"

	"github.com/dynamill/dynamill/change"
)

// Description says what the engine found and did when it started.
type Description struct {
	StateTable        string
	StateTableCreated bool
	NewRules          []string // to be seeded
	FormerRules       []string // changed or removed: what they wrote is to be taken back
}

// Stats are counts since the engine started.
type Stats struct {
	Records      int64 // given to the engine
	Relevant     int64 // that some rule had to act on
	Unmatched    int64 // of items of no entity
	Transactions int64
	Writes       int64 // write requests sent, transactions among them
	Rollups      int64 // display attributes written
	Children     int64 // children written
	Made         int64 // items that rules make, written or deleted
	Deleted      int64 // items of the application that rules deleted with their parents
	Parked       int64
	Heals        int64 // corrections of what another program wrote
	Tasks        int64 // large fan-outs whose rest became a task
	TaskPieces   int64 // pieces of such tasks that were worked off
	Retries      int64 // requests sent again after a transient failure, beside those of the AWS SDK itself
	Conflicts    int64 // requests refused because another writer changed the same item at that moment
	Throttles    int64 // requests refused because of the table's or the account's capacity
}

// RuleStats are the counts of one rule since the engine started.
type RuleStats struct {
	// Rule is the rule's name, "unique <Entity>" for the locators of one, or "(engine)" for writes that serve
	// no rule alone.
	Rule   string
	Writes int64 // actions that DynamoDB accepted, each on one item
	// WriteUnits are what DynamoDB reported of them. The units of a transaction
	// are shared among its rules by the number of their actions, its ledger
	// entries included; what DynamoDB refused is not in it.
	WriteUnits float64
}

// BudgetStats are how a process keeps to its budget of write units.
type BudgetStats struct {
	UnitsPerSecond int                  // 0: there is no budget
	Spending       float64              // units per second, over the last ten seconds
	Waits          map[string]time.Time // "fan-outs", "seeding", "replay" or "repairs" that wait for units, since when
}

// SeedProgress is how far seeding has come.
type SeedProgress struct {
	Rules        []string // being seeded
	Pass, Passes int      // scans of the table, from 1
	Items        int64    // in this pass
	Done         bool
}

// TaskProgress is how far a task is; the zero value: none is left.
type TaskProgress struct {
	Rule     string
	Parent   change.Key
	Children int // looked at so far
}

// Unfinished is what the engine has set aside.
type Unfinished struct {
	Parked     map[string]int // how many by code
	Tasks      int            // rests of large fan-outs
	OldestTask time.Time      // zero if there is none, or its row does not say
}
