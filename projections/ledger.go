package projections

import (
	"context"
	"errors"
	"fmt"
	"slices"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/awscall"
	"github.com/dynamill/dynamill/projections/internal/host"
	"github.com/dynamill/dynamill/projections/internal/plan"
	"github.com/dynamill/dynamill/projections/internal/state"
	"github.com/dynamill/dynamill/projections/internal/table"
	"github.com/dynamill/dynamill/rules"
)

// applyMoves brings ledger entries, and all that hangs on them, to what the
// moves say. Every move that returns without error in failed is durable.
func (e *Engine) applyMoves(ctx context.Context, moves []*plan.Move, suffix int, failed func(*plan.Move, error)) {
	pending := moves
	err := table.Contend(ctx, "moving ledger entries", func() (ended table.Round, _ error) {
		pending, ended = e.applyOnce(ctx, pending, suffix, failed)
		return ended, nil
	})
	for _, mv := range pending {
		failed(mv, fmt.Errorf("ledger entry of %s: %w", mv.Key, err))
	}
}

// applyOnce sends one transaction for each move or pack of moves. It returns the
// moves that are not done. A large move goes in many steps, each of which advances it.
func (e *Engine) applyOnce(ctx context.Context, pending []*plan.Move, suffix int, failed func(*plan.Move, error)) (left []*plan.Move, ended table.Round) {
	var simple []*plan.Move
	for _, mv := range pending {
		if mv.First < 0 && mv.Idle() {
			continue // what it was to change is so by now
		}
		done, err := e.divide(ctx, mv)
		if err != nil {
			failed(mv, err)
		}
		if done || err != nil {
			continue
		}
		if len(e.planner.Claims(mv)) == 0 {
			simple = append(simple, mv)
			continue
		}
		again, err := e.applyClaimed(ctx, mv, suffix)
		switch {
		case err != nil:
			failed(mv, err)
		case again:
			left = append(left, mv)
		case mv.Advance(e.planner.Epoch):
			left, ended = append(left, mv), table.Advanced
		}
	}
	for _, pk := range e.planner.Pack(simple) {
		again, err := e.applyPack(ctx, pk, suffix)
		for _, mv := range pk.Moves {
			switch {
			case err != nil:
				failed(mv, err)
			case slices.Contains(again, mv):
				left = append(left, mv)
			case mv.Advance(e.planner.Epoch):
				left, ended = append(left, mv), table.Advanced
			}
		}
	}
	if len(left) == 0 {
		return nil, table.Settled
	}
	return left, ended
}

// divide has a move that is larger than a transaction go in steps, from the entry that
// is really there. It reports true if nothing is left to do.
func (e *Engine) divide(ctx context.Context, mv *plan.Move) (done bool, err error) {
	if e.planner.Fits(mv) {
		return false, nil
	}
	if !mv.Exact {
		if done, err := e.begin(ctx, mv); done || err != nil || e.planner.Fits(mv) {
			return done, err
		}
	}
	e.planner.Divide(mv)
	return false, nil
}

// begin has a move of a record start from the entry that is really there. It reports
// true if nothing is left to do: the entry is as far already.
func (e *Engine) begin(ctx context.Context, mv *plan.Move) (done bool, err error) {
	key := state.EntryKey(mv.Key)
	rows, err := e.tables.ReadState(ctx, "reading the ledger entry of "+mv.Key.String(), []table.Key{key})
	if err != nil {
		return false, err
	}
	return e.replan(ctx, mv, rows[key])
}

// part says what one action of a transaction belongs to.
type part struct {
	moves  []*plan.Move // the move whose entry or action it is; all that add to a sum
	entry  bool
	id     string          // the rule (or locator) that asks for it
	kind   plan.ActionKind // of an action
	target change.Key      // of an action on a mirror item
	action plan.Action
}

func partOf(mv *plan.Move, a plan.Action) part {
	return part{moves: []*plan.Move{mv}, id: a.ID, kind: a.Kind, target: a.Target, action: a}
}

// onMirror reports whether the action looks at the place of a mirror item.
func (p part) onMirror() bool {
	switch p.kind {
	case plan.UpsertMirror, plan.DeleteMirror, plan.ReleaseMirror, plan.SpareMirror:
		return true
	}
	return false
}

// applyPack sends one transaction and returns the moves that have to be tried again, planned anew.
func (e *Engine) applyPack(ctx context.Context, pk *plan.Pack, suffix int) ([]*plan.Move, error) {
	items, parts := e.assemble(pk, suffix)
	err := e.tables.Transact(ctx, "applying a ledger transaction", ownersOf(parts), items)
	if err == nil {
		e.noteApplied(ctx, parts)
		return nil, nil
	}
	return e.afterFailure(ctx, err, pk.Moves, parts, suffix)
}

// noteApplied counts and logs the actions of a transaction that took effect.
func (e *Engine) noteApplied(ctx context.Context, parts []part) {
	for _, p := range parts {
		switch p.kind {
		case plan.UpsertMirror, plan.DeleteMirror, plan.ReleaseMirror:
			e.host.Counters.Mirrors.Add(1)
		case plan.Park:
			if !p.action.Again {
				e.host.NoteParked(ctx, p.id, p.target, p.action.Effect.Parked)
			}
		}
	}
}

// assemble lays out a transaction: entries, sums, then everything else.
func (e *Engine) assemble(pk *plan.Pack, suffix int) ([]ddb.TransactWriteItem, []part) {
	var items []ddb.TransactWriteItem
	var parts []part
	contributors := map[plan.GroupRef][]*plan.Move{}
	var rest []ddb.TransactWriteItem
	var restParts []part
	for _, mv := range pk.Moves {
		items, parts = append(items, e.entryWrite(mv)), append(parts, part{moves: []*plan.Move{mv}, entry: true})
		sums, actions := e.planner.Difference(mv)
		for _, s := range sums {
			contributors[s.Group] = append(contributors[s.Group], mv)
		}
		for _, a := range actions {
			rest, restParts = append(rest, e.actionWrite(mv, a)), append(restParts, partOf(mv, a))
		}
	}
	for _, s := range pk.Sums {
		items, parts = append(items, e.sumWrite(s, suffix, pk.Moves[0].Shift)), append(parts, part{moves: contributors[s.Group], id: s.Group.ID})
	}
	return append(items, rest...), append(parts, restParts...)
}

// entryWrite is the ledger half of the move's transaction: the entry, compared and swapped.
func (e *Engine) entryWrite(mv *plan.Move) ddb.TransactWriteItem {
	c := table.NewExpression()
	put := e.tables.PutPart(state.EntryRow(mv, e.planner.Epoch, e.host.Now().Add(host.TombstoneTTL)), state.EntryUnmoved(c, mv), c)
	put.Put.ReturnValuesOnConditionCheckFailure = table.AllOld
	return put
}

// afterFailure decides, from why a transaction failed, how each of its moves goes on.
func (e *Engine) afterFailure(ctx context.Context, err error, moves []*plan.Move, parts []part, suffix int) ([]*plan.Move, error) {
	var canceled *ddb.TransactionCanceledException
	if !errors.As(err, &canceled) || len(canceled.CancellationReasons) != len(parts) {
		if reason := table.Refusal(err); reason != "" {
			return e.narrow(ctx, moves, reason, suffix)
		}
		return nil, err
	}
	left, err := e.replanned(ctx, canceled.CancellationReasons, parts, moves)
	if err != nil {
		return nil, err
	}
	undone := slices.DeleteFunc(slices.Clone(moves), func(mv *plan.Move) bool { return left[mv].done })
	moved := func(p part) bool {
		return slices.ContainsFunc(p.moves, func(mv *plan.Move) bool { return !left[mv].same })
	}
	for i, reason := range canceled.CancellationReasons {
		p := parts[i]
		refused := table.RefusedAction(reason)
		switch {
		case moved(p): // what else was in the way of a move whose entry is another tells nothing
		case refused != "" && (p.entry || len(moves) > 1):
			return e.narrow(ctx, undone, refused, suffix)
		case refused != "":
			if gone, err := e.reject(ctx, p.moves[0], p.id, refused, suffix); gone || err != nil {
				return nil, err
			}
		case awscall.ReasonCode(reason) == "ConditionalCheckFailed" && p.onMirror():
			p.moves[0].See(p.target, table.Image(attributes.ItemFromTable(reason.Item)))
		}
	}
	return undone, nil
}

// entryState says how a move stands to its ledger entry after a transaction failed.
type entryState struct {
	same bool // the entry is as the move took it to be
	done bool // nothing is left to do
}

// replanned has the moves whose entries were not as expected go on from the entries that are there.
func (e *Engine) replanned(ctx context.Context, reasons []ddb.CancellationReason, parts []part, moves []*plan.Move) (map[*plan.Move]entryState, error) {
	states := make(map[*plan.Move]entryState, len(moves))
	for _, mv := range moves {
		states[mv] = entryState{same: true}
	}
	for i, reason := range reasons {
		if p := parts[i]; p.entry && awscall.ReasonCode(reason) == "ConditionalCheckFailed" {
			done, err := e.replan(ctx, p.moves[0], reason.Item)
			if err != nil {
				return nil, err
			}
			states[p.moves[0]] = entryState{done: done}
		}
	}
	return states, nil
}

// replan goes on from the entry that is really there. It reports true if
// nothing is left to do: the entry is as far already.
func (e *Engine) replan(ctx context.Context, mv *plan.Move, actual table.Row) (bool, error) {
	ent, err := e.ownEntry(ctx, actual)
	if err != nil {
		return false, fmt.Errorf("ledger entry of %s: %w", mv.Key, err)
	}
	if mv.First < 0 { // rederived: what the item asks for has to be read after the entry
		sc := plan.Everything
		if mv.Seeding {
			sc = plan.Sources
		}
		fresh, err := e.readMove(ctx, mv.Key, ent, sc, mv.Late)
		if err != nil {
			return false, err
		}
		fresh.Repark, fresh.Reparks, fresh.Seen, fresh.Alone, fresh.StepMax = mv.Repark, mv.Reparks, mv.Seen, mv.Alone, mv.StepMax
		for id, target := range mv.Restore {
			fresh.RestoreAt(id, target)
		}
		*mv = *fresh
		return mv.Idle(), nil
	}
	duplicate := ent != nil && ent.At.Has(mv.To)
	mv.Expect(ent, e.planner.Bindings)
	return duplicate, nil
}

// narrow looks for the effect that DynamoDB refuses for good, where it does not say
// which: moves go alone first, so that no neighbour fails with them, then in ever
// smaller steps. A single effect that is refused is parked.
func (e *Engine) narrow(ctx context.Context, moves []*plan.Move, reason string, suffix int) ([]*plan.Move, error) {
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
		if done, err := e.begin(ctx, mv); done || err != nil {
			return nil, err
		}
		return moves, nil
	}
	moving := mv.Moving()
	switch len(moving) {
	case 0:
		return nil, fmt.Errorf("moving the ledger entry of %s: DynamoDB refuses the write: %s", mv.Key, reason)
	case 1:
		gone, err := e.reject(ctx, mv, moving[0], reason, suffix)
		if gone || err != nil {
			return nil, err
		}
		return moves, nil
	}
	mv.StepMax = len(moving) / 2
	return moves, nil
}

// reject parks one effect of a move that DynamoDB refuses for good. If it refuses to
// take the former effect back, that stays in force, as the entry says, and the
// item's next record or a retry tries again. It reports true if nothing is left to do.
func (e *Engine) reject(ctx context.Context, mv *plan.Move, id, reason string, suffix int) (bool, error) {
	if again, err := e.tryElsewhere(ctx, mv, id, suffix); again || err != nil {
		return false, err
	}
	if f, asked := mv.New[id]; asked && f.Kind != plan.Parked {
		why := host.WriteRejected(reason)
		if f.Kind == plan.Contribution {
			why = plan.Overflow("the sum with the contribution " + f.Amount.String()).Parked
		}
		mv.Replace(id, plan.Effect{Kind: plan.Parked, Parked: why})
		mv.Repark = mv.Repark || mv.Reparks
		return mv.First < 0 && mv.Idle(), nil
	}
	why := &rules.ItemError{Code: "write.rejected", Reason: "DynamoDB refuses to take back what the item caused before: " + reason}
	if err := e.host.ParkID(ctx, id, mv.Key, mv.Position, why); err != nil {
		return false, err
	}
	mv.Replace(id, mv.Old[id])
	return mv.First < 0 && mv.Idle(), nil
}

// suffixTriesMax bounds how many accumulators of one aggregate are tried for a
// contribution. Each holds 38 digits for itself, so that one may hold a sum which another cannot.
const suffixTriesMax = 16

// tryElsewhere has a contribution that an accumulator cannot hold go to that of the next
// write suffix, and in the end to one in which all are brought together. It reports
// false once all that is tried, or if there is but one accumulator.
func (e *Engine) tryElsewhere(ctx context.Context, mv *plan.Move, id string, suffix int) (bool, error) {
	b := e.planner.ByID(id)
	if b == nil || b.Suffixes < 2 {
		return false, nil
	}
	if mv.Shift++; mv.Shift < min(b.Suffixes, suffixTriesMax) {
		return true, nil
	}
	mv.Shift = 0
	if mv.Consolidated {
		return false, nil
	}
	mv.Consolidated = true
	for _, f := range []plan.Effect{mv.Old[id], mv.New[id]} {
		if f.Kind == plan.Contribution {
			if err := gathererOf(b.Rule).MakeRoom(ctx, e.host, plan.GroupRef{Binding: b, Group: f.Group}, suffix); err != nil {
				return false, err
			}
		}
	}
	return true, nil
}

// clearDue takes the due mark off an entry, unless the entry has moved since.
func (e *Engine) clearDue(ctx context.Context, mv *plan.Move) error {
	c := table.NewExpression()
	remove := "REMOVE " + c.Name("due")
	condition := state.EntryIs(c, mv.MarkedEntry())
	_, err := e.tables.UpdateState(ctx, "", "clearing a due mark", state.EntryKey(mv.Key), remove, condition, c)
	return err
}
