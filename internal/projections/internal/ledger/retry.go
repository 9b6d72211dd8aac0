package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/awscall"
	"github.com/dynamill/dynamill/internal/projections/internal/effects"
	"github.com/dynamill/dynamill/internal/projections/internal/groups"
	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/rules"
)

// isEntry reports whether a part is the ledger entry of its move.
func isEntry(p host.Part) bool { return p.Action.Key == effects.Key{} }

// afterFailure decides, from why a transaction failed, how each of its moves goes on. If DynamoDB refused a write for good, the round
// counts as Advanced: it brings the engine nearer to the effect that is refused.
func (l *Ledger) afterFailure(ctx context.Context, err error, moves []*plan.Move, parts []host.Part, suffix int) (left []*plan.Move,
	ended table.Round, _ error) {
	var canceled *ddb.TransactionCanceledException
	if !errors.As(err, &canceled) || len(canceled.CancellationReasons) != len(parts) {
		if reason := table.Refusal(err); reason != "" {
			left, err = l.narrow(ctx, moves, reason)
		}
		return left, table.Advanced, err
	}
	moved := map[*plan.Move]bool{} // the entry is another than the move took it to be
	undone := slices.Clone(moves)
	for i, reason := range canceled.CancellationReasons {
		if p := parts[i]; isEntry(p) && awscall.ReasonCode(reason) == "ConditionalCheckFailed" {
			done, err := l.replan(ctx, p.Moves[0], reason.Item)
			if err != nil {
				return nil, table.Lost, err
			}
			moved[p.Moves[0]] = true
			undone = slices.DeleteFunc(undone, func(mv *plan.Move) bool { return done && mv == p.Moves[0] })
		}
	}
	for i, reason := range canceled.CancellationReasons {
		p := parts[i]
		refused := table.RefusedAction(reason)
		switch {
		case slices.ContainsFunc(p.Moves, func(mv *plan.Move) bool { return moved[mv] }): // what else was in its way tells nothing
		case refused != "" && (isEntry(p) || p.SeveralEffects || len(moves) > 1):
			left, err = l.narrow(ctx, undone, refused)
			return left, table.Advanced, err
		case refused != "":
			if gone, err := l.moveElsewhereOrPark(ctx, p, refused, suffix); gone || err != nil {
				return nil, table.Lost, err
			}
			if p.Action.Kind != plan.Park { // a move that is planned anew asks for that again
				ended = table.Advanced
			}
		case awscall.ReasonCode(reason) == "ConditionalCheckFailed" && p.Action.Looks:
			p.Moves[0].See(p.Action.Target, table.Image(attributes.ItemFromTable(reason.Item)))
		}
	}
	return undone, ended, nil
}

// replan goes on from the real entry. true: nothing is left, as the entry is as far already.
func (l *Ledger) replan(ctx context.Context, mv *plan.Move, actual table.Row) (bool, error) {
	ent, err := l.Entry(ctx, actual)
	if err != nil {
		return false, fmt.Errorf("ledger entry of %s: %w", mv.Key, err)
	}
	duplicate := ent != nil && ent.At.Covers(mv.To)
	if duplicate && ent.At.RulesEpoch() != mv.To.RulesEpoch() && !mv.FromItem {
		// A later record was applied under older rules. Under these it may ask for nothing, so only the item tells.
		mv.FromItem, mv.Late.Touched = true, mv.Touched
	}
	if mv.FromItem {
		return l.reread(ctx, mv, ent)
	}
	mv.Expect(ent, l.Planner.Bindings)
	return duplicate, nil
}

// reread plans a move anew from the item: what it asks for has to be read after the entry.
func (l *Ledger) reread(ctx context.Context, mv *plan.Move, ent *plan.Entry) (idle bool, err error) {
	sc := plan.Everything
	if mv.Seeding {
		sc = plan.Sources
	}
	fresh, err := l.move(ctx, mv.Key, ent, sc, mv.Late)
	if err != nil {
		return false, err
	}
	fresh.First, fresh.Position = mv.First, mv.Position
	fresh.Repark, fresh.ReparkRefused, fresh.Seen, fresh.Alone, fresh.StepMax = mv.Repark, mv.ReparkRefused, mv.Seen, mv.Alone, mv.StepMax
	fresh.Repark = fresh.Repark || fresh.ReparkRefused && fresh.AsksForParking() // the item may have turned bad meanwhile
	for k, item := range mv.Restore {
		fresh.RestoreAt(k, item)
	}
	*mv = *fresh
	return mv.Idle(), nil
}

// narrow looks for the effect that DynamoDB refuses for good: moves go alone first, so that no neighbour fails with them, then in ever
// smaller steps. A single refused effect is parked.
func (l *Ledger) narrow(ctx context.Context, moves []*plan.Move, reason string) ([]*plan.Move, error) {
	if len(moves) > 1 {
		for _, mv := range moves {
			mv.Alone = true
		}
		return moves, nil
	}
	if len(moves) == 0 {
		return nil, nil
	}
	mv := moves[0]
	if !mv.Exact { // the refused effect may be none that is left to do
		if done, err := l.begin(ctx, mv); done || err != nil {
			return nil, err
		}
		return moves, nil
	}
	moving := slices.DeleteFunc(mv.Changing(), func(k effects.Key) bool { return !mv.Moves(k) })
	switch len(moving) {
	case 0:
		return nil, fmt.Errorf("moving the ledger entry of %s: DynamoDB refuses the write: %s", mv.Key, reason)
	case 1:
		gone, err := l.reject(ctx, mv, moving[0], reason)
		if gone || err != nil {
			return nil, err
		}
		return moves, nil
	}
	mv.StepMax = len(moving) / 2
	return moves, nil
}

// moveElsewhereOrPark returns done if nothing is left to do: a contribution goes to another accumulator; if none takes it, it is parked,
// and so is any other effect.
func (l *Ledger) moveElsewhereOrPark(ctx context.Context, p host.Part, reason string, suffix int) (done bool, err error) {
	mv, k := p.Moves[0], p.Action.Key
	if p.Action.Kind == 0 {
		if again, err := l.tryElsewhere(ctx, mv, k, suffix); again || err != nil {
			return false, err
		}
	}
	return l.reject(ctx, mv, k, reason)
}

// reject parks an effect that DynamoDB refuses for good. If it refuses to undo one, that stays in force until the item's next record or
// a retry. true: nothing is left to do.
func (l *Ledger) reject(ctx context.Context, mv *plan.Move, k effects.Key, reason string) (bool, error) {
	if f, wanted := mv.New[k]; wanted && f.Kind != effects.Parked {
		why := host.WriteRejected(reason)
		if f.Kind == effects.Contribution && f.Member == nil && !table.IsAboutSize(reason) {
			why = effects.Overflow("the sum with the contribution " + f.Amount.String())
		}
		mv.Replace(k, effects.Effect{Kind: effects.Parked, Parked: why})
		mv.Repark = mv.Repark || mv.ReparkRefused
		return mv.FromItem && mv.Idle(), nil
	}
	why := &rules.ItemError{Code: effects.CodeWriteRejected, Reason: "DynamoDB refuses to take back what the item caused before: " + reason}
	if err := l.ParkID(ctx, k.ID, mv.Key, mv.Position, why); err != nil {
		return false, err
	}
	if mv.Irrevocable == nil {
		mv.Irrevocable = map[string]bool{}
	}
	mv.Irrevocable[k.ID] = true
	mv.Replace(k, mv.Old[k])
	return mv.FromItem && mv.Idle(), nil
}

// suffixTriesMax bounds how many accumulators are tried for a contribution: one may hold a sum which another cannot.
const suffixTriesMax = 16

// tryElsewhere has a contribution that an accumulator cannot hold go to the next write suffix, and in the end to one in which all are
// brought together. false: all that is tried, or there is but one.
func (l *Ledger) tryElsewhere(ctx context.Context, mv *plan.Move, k effects.Key, suffix int) (bool, error) {
	b := l.Planner.ByID(k.ID)
	if b == nil || b.Suffixes < 2 {
		return false, nil
	}
	mv.Alone = true
	if mv.Shift++; mv.Shift < min(b.Suffixes, suffixTriesMax) {
		return true, nil
	}
	mv.Shift = 0
	if mv.Consolidated {
		return false, nil
	}
	mv.Consolidated = true
	for _, f := range []effects.Effect{mv.Old[k], mv.New[k]} {
		if f.Kind == effects.Contribution {
			if err := groups.Consolidate(ctx, l.Host, plan.GroupRef{Binding: b, Group: f.Group}, f.Per, suffix); err != nil {
				return false, err
			}
		}
	}
	return true, nil
}
