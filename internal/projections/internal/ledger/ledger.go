package ledger

import (
	"context"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// Ledger is the ledger under the rules of one host. It is safe for concurrent use.
type Ledger struct {
	*host.Host
	raiseEpochAbove func(context.Context, stamp.Version) error
}

var _ host.Ledger = (*Ledger)(nil)

// New returns the ledger of a host. It returns raiseEpochAbove's error for an entry that newer rules have written.
func New(h *host.Host, raiseEpochAbove func(context.Context, stamp.Version) error) *Ledger {
	return &Ledger{Host: h, raiseEpochAbove: raiseEpochAbove}
}

// Read implements host.Ledger.
func (l *Ledger) Read(ctx context.Context, key change.Key) (*plan.Move, error) {
	rows, err := l.Tables.ReadState(ctx, "reading the ledger entry of "+key.String(), []table.Key{state.EntryKey(key)})
	if err != nil {
		return nil, err
	}
	ent, err := l.Entry(ctx, rows[state.EntryKey(key)])
	if err != nil {
		return nil, err
	}
	return l.move(ctx, key, ent, plan.Everything, plan.Late{})
}

// Entry decodes an entry that a move is to start from. One of newer rules is refused: a swap would lose what only they ask for.
func (l *Ledger) Entry(ctx context.Context, r table.Row) (*plan.Entry, error) {
	ent, err := state.ReadEntry(l.Planner, r)
	if err == nil && ent != nil && ent.At >= stamp.VersionAt(l.Planner.Epoch+1, change.Position{}) {
		return nil, l.raiseEpochAbove(ctx, ent.At)
	}
	return ent, err
}

func (l *Ledger) move(ctx context.Context, key change.Key, ent *plan.Entry, sc plan.Scope, late plan.Late) (*plan.Move, error) {
	items, err := l.Tables.ReadItems(ctx, "reading "+key.String(), []change.Key{key})
	if err != nil {
		return nil, err
	}
	return l.Planner.MoveFrom(key, ent, table.Image(items[key]), sc, late), nil
}

// ClearDue takes the due mark off an entry, unless the entry has moved since.
func (l *Ledger) ClearDue(ctx context.Context, mv *plan.Move) error {
	c := table.NewExpression()
	remove := "REMOVE " + c.Name("due")
	condition := state.EntryIs(c, mv.MarkedEntry())
	_, err := l.Tables.UpdateState(ctx, "", "clearing a due mark", state.EntryKey(mv.Key), remove, condition, c)
	return err
}
