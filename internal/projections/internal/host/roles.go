package host

import (
	"context"
	"errors"
	"reflect"
	"slices"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/rules"
)

// FamiliesWith returns one kind of each family that has the role. The kinds of one family are of one type.
func FamiliesWith[Role any](kinds []rules.Kind) []Role {
	var roles []Role
	var seen []reflect.Type
	for _, k := range kinds {
		role, has := k.(Role)
		if family := reflect.TypeOf(k); has && !slices.Contains(seen, family) {
			seen, roles = append(seen, family), append(roles, role)
		}
	}
	return roles
}

// SameFamily reports whether a kind is of the family for which another one acts.
func SameFamily(k rules.Kind, role any) bool { return reflect.TypeOf(k) == reflect.TypeOf(role) }

// Kind is a kind of rule that applies by itself what it planned by itself.
type Kind interface {
	// Apply applies the kind's part of a plan.
	Apply(ctx context.Context, r *Run, pl *plan.Changes)
}

// ErrNotLive says that a group shows nothing yet, as its rule is still being seeded (promise 10).
var ErrNotLive = errors.New("the rule is not live yet")

// Grouper is a kind of rule under which several sources make one thing together.
type Grouper interface {
	// RollUp brings groups of the family up to date after the moves that touched them, as pl asks. For each group
	// it returns nil, ErrNotLive or the error.
	RollUp(ctx context.Context, r *Run, groups []plan.GroupRef, pl *plan.Changes) []error
}

// Maker is a kind of rule that makes items. Targets that several sources claim are its groups.
type Maker interface {
	Grouper
	Actor
	// Claim has a move's transaction claim a target for its source, or give it up: an action before which the kind reads.
	Claim(ctx context.Context, h *Host, mv *plan.Move, a plan.Action) ([]Part, error)
	// Restore has moves write again the items in force that are not as the ledger has them.
	Restore(ctx context.Context, h *Host, moves []*plan.Move) error
}

// Actor is a kind of rule that has actions of its own in a move's transaction.
type Actor interface {
	// Write is such an action, as a part of a transaction; v is the version of what it writes.
	Write(h *Host, a plan.Action, v stamp.Version) ddb.TransactWriteItem
}

// MakerOf returns the Maker of a rule; nil if the rule makes no items.
func MakerOf(r *rules.Rule) Maker {
	m, _ := r.Kind.(Maker)
	return m
}

// Parker is a kind of rule that parks items not only because it cannot read them.
type Parker interface {
	// Parks reports whether the kind parks items under a code for a reason that an item alone does not show.
	Parks(code string) bool
}

// Postponer is a kind of rule that leaves the rest of large work as tasks in the state table.
type Postponer interface {
	// WorkPiece works off the next piece of a task, and tells of it once it is done. It returns
	// ErrTaskMoved if another process has worked on the task since it was read.
	WorkPiece(ctx context.Context, h *Host, t state.Task, tell func(state.Task)) error
}

// Keeper is a kind whose rules keep rows in the state table.
type Keeper interface {
	// Rows are the words with which the partition keys of these rows begin. The rule's id follows.
	Rows() []string
}

// Sweeper is a Keeper with rows that can become stale.
type Sweeper interface {
	Keeper
	// Swept is the word with which those rows' partition keys begin.
	Swept() string
	// Sweep deletes the stale ones among rows of rules in force.
	Sweep(ctx context.Context, h *Host, rows []table.Row) error
}

// Ledger holds the effects in force of every item.
type Ledger interface {
	// Read reads an item's entry, then the item, and returns the move from one to the other.
	Read(ctx context.Context, key change.Key) (*plan.Move, error)
	// Apply brings entries, and all that hangs on them, to what the moves say. It adds sums under a write
	// suffix, and tells which moves failed. Every other one is durable.
	Apply(ctx context.Context, moves []*plan.Move, suffix int, failed func(*plan.Move, error))
}
