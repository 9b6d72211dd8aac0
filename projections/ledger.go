package projections

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/guard"
	"github.com/dynamill/dynamill/projections/internal/plan"
	"github.com/dynamill/dynamill/rules"
)

// movesTriesMax bounds how often a batch's moves are planned anew before the
// batch is given back to its driver.
const movesTriesMax = 40

// errTooContended is returned for moves that kept losing to others; the driver tries them again.
var errTooContended = errors.New("other writers kept changing the same items")

// applyMoves brings ledger entries, and all that hangs on them, to what the
// moves say. Every move that returns without error in failed is durable.
func (e *Engine) applyMoves(ctx context.Context, moves []*plan.Move, suffix int, failed func(*plan.Move, error)) {
	pending := moves
	for try := 0; len(pending) > 0; try++ {
		if try == movesTriesMax {
			for _, mv := range pending {
				failed(mv, fmt.Errorf("moving the ledger entry of %s: %w", mv.Key, errTooContended))
			}
			return
		}
		if try > 2 {
			pause(ctx, try)
		}
		var next []*plan.Move
		var simple []*plan.Move
		for _, mv := range pending {
			mv.Settle()
			if len(e.planner.Claims(mv)) == 0 {
				simple = append(simple, mv)
				continue
			}
			again, err := e.applyClaimed(ctx, mv, suffix)
			if err != nil {
				failed(mv, err)
			} else if again {
				next = append(next, mv)
			}
		}
		for _, pk := range e.planner.Pack(simple) {
			again, err := e.applyPack(ctx, pk, suffix)
			if err != nil {
				for _, mv := range pk.Moves {
					failed(mv, err)
				}
				continue
			}
			next = append(next, again...)
		}
		pending = next
	}
}

// pause waits a little longer with every try, with jitter, unless the context ends.
func pause(ctx context.Context, try int) {
	limit := min(retryLast, retryFirst<<min(try, 8))
	select {
	case <-ctx.Done():
	case <-time.After(rand.N(limit)):
	}
}

// part says what one action of a transaction belongs to.
type part struct {
	moves  []*plan.Move // the move whose entry or action it is; all that add to a sum
	entry  bool
	id     string          // the rule (or locator) that asks for it
	kind   plan.ActionKind // of an action
	target change.Key      // of an action on a mirror item
}

func partOf(mv *plan.Move, a plan.Action) part {
	return part{moves: []*plan.Move{mv}, id: a.ID, kind: a.Kind, target: a.Target}
}

// applyPack sends one transaction and returns the moves that have to be tried again, planned anew.
func (e *Engine) applyPack(ctx context.Context, pk *plan.Pack, suffix int) ([]*plan.Move, error) {
	items, parts := e.assemble(pk, suffix)
	err := e.transact(ctx, "applying a ledger transaction", ownersOf(parts), items)
	if err == nil {
		e.countMirrors(parts)
		return nil, nil
	}
	return e.afterFailure(ctx, err, pk.Moves, parts, suffix)
}

func (e *Engine) countMirrors(parts []part) {
	for _, p := range parts {
		if p.kind == plan.UpsertMirror || p.kind == plan.DeleteMirror {
			e.counters.Mirrors.Add(1)
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
		items, parts = append(items, e.sumWrite(s, suffix)), append(parts, part{moves: contributors[s.Group], id: s.Group.ID})
	}
	return append(items, rest...), append(parts, restParts...)
}

// afterFailure decides, from why a transaction failed, how each of its moves goes on.
func (e *Engine) afterFailure(ctx context.Context, err error, moves []*plan.Move, parts []part, suffix int) ([]*plan.Move, error) {
	var canceled *ddb.TransactionCanceledException
	if !errors.As(err, &canceled) || len(canceled.CancellationReasons) != len(parts) {
		if classify(err) != classPark {
			return nil, err
		}
		blamed, readErr := e.overflowing(ctx, moves, suffix)
		if readErr != nil {
			return nil, readErr
		}
		return e.rejected(ctx, moves, blamed, err.Error())
	}
	done := map[*plan.Move]bool{}
	for i, reason := range canceled.CancellationReasons {
		p := parts[i]
		switch code := codeOf(reason); {
		case code == "None" || asksForRetry(code):
		case code == "ConditionalCheckFailed" && p.entry:
			finished, err := e.replan(ctx, p.moves[0], reason.Item)
			if err != nil {
				return nil, err
			}
			done[p.moves[0]] = finished
		case code == "ConditionalCheckFailed" && p.kind == plan.DeleteMirror:
			p.moves[0].Keep(p.target)
		case code == "ConditionalCheckFailed" && p.kind == plan.SpareMirror:
			delete(p.moves[0].Spare, p.target)
		case code == "ConditionalCheckFailed": // a claims item moved on: read it again
		default:
			message := code
			if reason.Message != nil {
				message = *reason.Message
			}
			left, err := e.rejected(ctx, p.moves, map[string]bool{p.id: true}, message)
			if err != nil {
				return nil, err
			}
			if len(left) == 0 {
				done[p.moves[0]] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(moves), func(mv *plan.Move) bool { return done[mv] }), nil
}

// replan goes on from the entry that is really there. It reports true if
// nothing is left to do: the entry is as far already.
func (e *Engine) replan(ctx context.Context, mv *plan.Move, actual row) (bool, error) {
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
		fresh.Restore, fresh.Repark, fresh.Spare, fresh.Alone = mv.Restore, mv.Repark, mv.Spare, mv.Alone
		*mv = *fresh
		return mv.Idle(), nil
	}
	duplicate := ent != nil && ent.At.Has(mv.To)
	mv.Expect(ent, e.planner.Bindings)
	return duplicate, nil
}

// overflowing finds the contributions of a move alone that its accumulators
// cannot hold, for endpoints that refuse the whole request without saying which
// action is at fault. It returns none where the fault is another.
func (e *Engine) overflowing(ctx context.Context, moves []*plan.Move, suffix int) (map[string]bool, error) {
	if len(moves) > 1 || !moves[0].Alone {
		return nil, nil
	}
	sums, _ := e.planner.Difference(moves[0])
	keys := make([]stateKey, len(sums))
	for i, s := range sums {
		keys[i] = accumulatorKey(s.Group, suffix%s.Group.Rule.WriteShards)
	}
	rows, err := e.readState(ctx, "reading accumulators", keys)
	if err != nil {
		return nil, err
	}
	blamed := map[string]bool{}
	for i, s := range sums {
		value, err := decimal.Parse(cmp.Or(textOf(rows[keys[i]]["value"]), "0"))
		if err == nil {
			_, err = value.Add(s.Delta)
		}
		if err != nil {
			blamed[s.Group.ID] = true
		}
	}
	return blamed, nil
}

// rejected parks what DynamoDB refuses for good: the effects that are blamed,
// or all if nothing is. In company the moves are tried alone first, so that a
// bad member never fails its neighbours.
func (e *Engine) rejected(ctx context.Context, moves []*plan.Move, blamed map[string]bool, message string) ([]*plan.Move, error) {
	if len(moves) > 1 || !moves[0].Alone {
		for _, mv := range moves {
			mv.Alone = true
		}
		return moves, nil
	}
	mv := moves[0]
	new := maps.Clone(mv.New)
	changed := false
	for id, f := range mv.New {
		if f.Kind == plan.Parked || len(blamed) > 0 && !blamed[id] {
			continue
		}
		why := &rules.ItemError{Code: "write.rejected", Reason: "DynamoDB refuses the write: " + message}
		if f.Kind == plan.Contribution && blamed[id] {
			why = plan.Overflow("the sum with the contribution " + f.Amount.String()).Parked
		}
		new[id], changed = plan.Effect{Kind: plan.Parked, Parked: why}, true
	}
	if !changed {
		return nil, e.parkRefusedUndo(ctx, mv, blamed, message)
	}
	mv.New = new
	e.logger.WarnContext(ctx, "parked: a write was refused", "item", mv.Key.String(), "reason", message)
	return moves, nil
}

// parkRefusedUndo parks an item whose former effects DynamoDB refuses to take
// back. Its entry stays as it is, and says what is still in force; the item's
// next record, or a retry, tries again.
func (e *Engine) parkRefusedUndo(ctx context.Context, mv *plan.Move, blamed map[string]bool, message string) error {
	for _, id := range mv.IDs() {
		if len(blamed) > 0 && !blamed[id] {
			continue
		}
		why := &rules.ItemError{Code: "write.rejected", Reason: "DynamoDB refuses to take back what the item caused before: " + message}
		if err := e.parkID(ctx, id, mv.Key, mv.Position, why); err != nil {
			return err
		}
	}
	mv.Due, mv.Touched = nil, nil
	return nil
}

// clearDue takes the due mark off an entry, unless the entry has moved since.
func (e *Engine) clearDue(ctx context.Context, mv *plan.Move) error {
	c := newExpression()
	remove := "REMOVE " + c.name("due")
	condition := guarded(guard.DueMarkStays, c.entryIs(mv.MarkedEntry()))
	_, err := e.update(ctx, "", "clearing a due mark", e.stateUpdate(entryKey(mv.Key), remove, condition, c))
	return err
}
