package ledger

import (
	"context"
	"fmt"
	"slices"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/projections/internal/groups"
	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/pack"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// Apply implements host.Ledger.
func (l *Ledger) Apply(ctx context.Context, moves []*plan.Move, suffix int, failed func(*plan.Move, error)) {
	pending := moves
	err := table.Contend(ctx, "moving ledger entries", func() (ended table.Round, _ error) {
		pending, ended = l.applyOnce(ctx, pending, suffix, failed)
		return ended, nil
	})
	for _, mv := range pending {
		failed(mv, fmt.Errorf("ledger entry of %s: %w", mv.Key, err))
	}
}

// applyOnce sends one transaction for each pack, side by side, and returns the moves that are not done. Large ones it advances.
func (l *Ledger) applyOnce(ctx context.Context, pending []*plan.Move, suffix int, failed func(*plan.Move, error)) (left []*plan.Move,
	ended table.Round) {
	var ready []*plan.Move
	for _, mv := range pending {
		if mv.FromItem && mv.Idle() {
			continue // what it was to change is so by now
		}
		done, err := l.divide(ctx, mv)
		if err != nil {
			failed(mv, err)
		}
		if !done && err == nil {
			ready = append(ready, mv)
		}
	}
	for _, packs := range pack.Waves(pack.Of(l.Planner, ready)) {
		again, round := make([][]*plan.Move, len(packs)), make([]table.Round, len(packs))
		errs := l.Tables.Every(ctx, len(packs), func(ctx context.Context, i int) (err error) {
			again[i], round[i], err = l.applyPack(ctx, packs[i], suffix)
			return err
		})
		for i, pk := range packs {
			ended = max(ended, round[i])
			for _, mv := range pk.Moves {
				switch {
				case errs[i] != nil:
					failed(mv, errs[i])
				case slices.Contains(again[i], mv):
					left = append(left, mv)
				case mv.Advance(l.Planner.Epoch):
					left, ended = append(left, mv), table.Advanced
				}
			}
		}
	}
	if len(left) == 0 {
		return nil, table.Finished
	}
	return left, ended
}

// divide has a move that is larger than a transaction go in steps from the real entry. true: nothing is left.
func (l *Ledger) divide(ctx context.Context, mv *plan.Move) (done bool, err error) {
	if pack.Fits(l.Planner, mv) {
		return false, nil
	}
	if !mv.Exact {
		if done, err := l.begin(ctx, mv); done || err != nil || pack.Fits(l.Planner, mv) {
			return done, err
		}
	}
	pack.Divide(l.Planner, mv)
	return false, nil
}

// begin has a move of a record start from the real entry. true: nothing is left, as the entry is as far already.
func (l *Ledger) begin(ctx context.Context, mv *plan.Move) (done bool, err error) {
	key := state.EntryKey(mv.Key)
	rows, err := l.Tables.ReadState(ctx, "reading the ledger entry of "+mv.Key.String(), []table.Key{key})
	if err != nil {
		return false, err
	}
	return l.replan(ctx, mv, rows[key])
}

// applyPack sends one transaction and returns the moves that have to be tried again, planned anew.
func (l *Ledger) applyPack(ctx context.Context, pk *pack.Pack, suffix int) (again []*plan.Move, ended table.Round, _ error) {
	parts, err := l.Transaction(ctx, pk, suffix)
	if err != nil {
		return nil, table.Lost, err
	}
	owners := make([]string, len(parts))
	for i, p := range parts {
		owners[i] = p.Action.Key.ID
	}
	if err := l.Transact(ctx, "applying a ledger transaction", owners, parts); err != nil {
		return l.afterFailure(ctx, err, pk.Moves, parts, suffix)
	}
	return nil, table.Lost, nil
}

// Transaction lays out a transaction: entries, sums, then everything else.
func (l *Ledger) Transaction(ctx context.Context, pk *pack.Pack, suffix int) ([]host.Part, error) {
	var parts, rest []host.Part
	contributors := map[plan.GroupRef][]*plan.Move{}
	for _, mv := range pk.Moves {
		parts = append(parts, host.Part{Write: l.entryWrite(mv), Moves: []*plan.Move{mv}})
		sums, actions := pack.Difference(l.Planner, mv)
		for _, s := range sums {
			contributors[s.Group] = append(contributors[s.Group], mv)
		}
		for _, a := range actions {
			if !a.Reads {
				rest = append(rest, l.PartOf(mv, a, mv.Version()))
				continue
			}
			claim, err := host.MakerOf(a.Rule).Claim(ctx, l.Host, mv, a)
			if err != nil {
				return nil, err
			}
			rest = append(rest, claim...)
		}
	}
	for _, s := range pk.Sums {
		write := groups.Contribute(l.Host, s, suffix+pk.Number, pk.Moves[0].Shift)
		parts = append(parts, host.Part{
			Write: write, Action: plan.Action{Key: s.Key}, Moves: contributors[s.Group], SeveralEffects: s.SeveralEffects,
		})
	}
	return append(parts, rest...), nil
}

// entryWrite is the ledger half of the move's transaction: the entry, compared and swapped.
func (l *Ledger) entryWrite(mv *plan.Move) ddb.TransactWriteItem {
	c := table.NewExpression()
	put := l.Tables.PutPart(state.EntryRow(mv, l.Planner.Epoch, l.Now().Add(state.TombstoneTTL)), state.EntryUnmoved(c, mv), c)
	put.Put.ReturnValuesOnConditionCheckFailure = table.AllOld
	return put
}
