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
	"github.com/dynamill/dynamill/rules"
)

// movesTriesMax bounds how often a batch's moves are planned anew before the
// batch is given back to its driver.
const movesTriesMax = 40

// errTooContended is returned for moves that kept losing to others; the driver tries them again.
var errTooContended = errors.New("other writers kept changing the same items")

// applyMoves brings ledger entries, and all that hangs on them, to what the
// moves say. Every move that returns without error in failed is durable.
func (e *Engine) applyMoves(ctx context.Context, moves []*move, suffix int, failed func(*move, error)) {
	pending := moves
	for try := 0; len(pending) > 0; try++ {
		if try == movesTriesMax {
			for _, mv := range pending {
				failed(mv, fmt.Errorf("moving the ledger entry of %s: %w", mv.key, errTooContended))
			}
			return
		}
		if try > 2 {
			pause(ctx, try)
		}
		var next []*move
		var simple []*move
		for _, mv := range pending {
			mv.settle()
			if !e.claims(mv) {
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
		for _, pk := range packMoves(simple, e) {
			again, err := e.applyPack(ctx, pk, suffix)
			if err != nil {
				for _, mv := range pk.moves {
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
	moves  []*move // the move whose entry or action it is; all that add to a sum
	entry  bool
	sum    groupRef
	action action
}

// applyPack sends one transaction and returns the moves that have to be tried again, planned anew.
func (e *Engine) applyPack(ctx context.Context, pk *pack, suffix int) ([]*move, error) {
	items, parts := e.assemble(pk, suffix)
	err := e.transact(ctx, "applying a ledger transaction", items)
	if err == nil {
		e.countMirrors(parts)
		return nil, nil
	}
	return e.afterFailure(ctx, err, pk.moves, parts, suffix)
}

func (e *Engine) countMirrors(parts []part) {
	for _, p := range parts {
		if p.action.target != (change.Key{}) && !p.action.spare {
			e.counters.Mirrors.Add(1)
		}
	}
}

// assemble lays out a transaction: entries, sums, then everything else.
func (e *Engine) assemble(pk *pack, suffix int) ([]ddb.TransactWriteItem, []part) {
	var items []ddb.TransactWriteItem
	var parts []part
	contributors := map[groupRef][]*move{}
	var rest []ddb.TransactWriteItem
	var restParts []part
	for _, mv := range pk.moves {
		items, parts = append(items, e.entryWrite(mv)), append(parts, part{moves: []*move{mv}, entry: true})
		sums, actions := e.difference(mv)
		for _, s := range sums {
			contributors[s.group] = append(contributors[s.group], mv)
		}
		for _, a := range actions {
			rest, restParts = append(rest, a.write), append(restParts, part{moves: []*move{mv}, action: a})
		}
	}
	for _, s := range pk.sums {
		items, parts = append(items, e.sumWrite(s, suffix)), append(parts, part{moves: contributors[s.group], sum: s.group})
	}
	return append(items, rest...), append(parts, restParts...)
}

// afterFailure decides, from why a transaction failed, how each of its moves goes on.
func (e *Engine) afterFailure(ctx context.Context, err error, moves []*move, parts []part, suffix int) ([]*move, error) {
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
	done := map[*move]bool{}
	for i, reason := range canceled.CancellationReasons {
		p := parts[i]
		switch code := codeOf(reason); {
		case code == "None" || retryCodes[code]:
		case code == "ConditionalCheckFailed" && p.entry:
			finished, err := e.replan(ctx, p.moves[0], reason.Item)
			if err != nil {
				return nil, err
			}
			done[p.moves[0]] = finished
		case code == "ConditionalCheckFailed" && p.action.delete:
			p.moves[0].keep(p.action.target)
		case code == "ConditionalCheckFailed" && p.action.spare:
			delete(p.moves[0].spare, p.action.target)
		case code == "ConditionalCheckFailed": // a claims item moved on: read it again
		default:
			message := code
			if reason.Message != nil {
				message = *reason.Message
			}
			blamed := map[string]bool{p.action.id: true}
			if p.sum.b != nil {
				blamed = map[string]bool{p.sum.b.id: true}
			}
			left, err := e.rejected(ctx, p.moves, blamed, message)
			if err != nil {
				return nil, err
			}
			if len(left) == 0 {
				done[p.moves[0]] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(moves), func(mv *move) bool { return done[mv] }), nil
}

func (mv *move) keep(target change.Key) {
	if mv.spare == nil {
		mv.spare = map[change.Key]bool{}
	}
	mv.spare[target] = true
}

// replan goes on from the entry that is really there. It reports true if
// nothing is left to do: the entry is as far already.
func (e *Engine) replan(ctx context.Context, mv *move, actual row) (bool, error) {
	decode := readEntry
	if mv.first < 0 {
		decode = e.ownEntry
	}
	ent, err := decode(actual)
	if err != nil {
		return false, fmt.Errorf("ledger entry of %s: %w", mv.key, err)
	}
	if mv.first < 0 { // rederived: what the item asks for has to be read after the entry
		sc := everything
		if mv.seeding {
			sc = sources
		}
		fresh, err := e.readMove(ctx, mv.key, ent, sc)
		if err != nil {
			return false, err
		}
		fresh.restore, fresh.repark, fresh.spare, fresh.alone = mv.restore, mv.repark, mv.spare, mv.alone
		*mv = *fresh
		return mv.idle(), nil
	}
	duplicate := ent != nil && ent.at >= mv.to
	mv.expect(ent, e.bindings)
	return duplicate, nil
}

// idle reports whether a rederived move would change nothing.
func (mv *move) idle() bool {
	return mv.old.equal(mv.new) && len(mv.restore) == 0 && !mv.repark && len(mv.due) == 0
}

// overflowing finds the contributions of a move alone that its accumulators
// cannot hold, for endpoints that refuse the whole request without saying which
// action is at fault. It returns none where the fault is another.
func (e *Engine) overflowing(ctx context.Context, moves []*move, suffix int) (map[string]bool, error) {
	if len(moves) > 1 || !moves[0].alone {
		return nil, nil
	}
	sums, _ := e.difference(moves[0])
	keys := make([]stateKey, len(sums))
	for i, s := range sums {
		keys[i] = accumulatorKey(s.group, suffix%s.group.b.rule.WriteShards)
	}
	rows, err := e.readState(ctx, "reading accumulators", keys)
	if err != nil {
		return nil, err
	}
	blamed := map[string]bool{}
	for i, s := range sums {
		value, err := decimal.Parse(cmp.Or(textOf(rows[keys[i]]["value"]), "0"))
		if err == nil {
			_, err = value.Add(s.delta)
		}
		if err != nil {
			blamed[s.group.b.id] = true
		}
	}
	return blamed, nil
}

// rejected parks what DynamoDB refuses for good: the effects that are blamed,
// or all if nothing is. In company the moves are tried alone first, so that a
// bad member never fails its neighbours.
func (e *Engine) rejected(ctx context.Context, moves []*move, blamed map[string]bool, message string) ([]*move, error) {
	if len(moves) > 1 || !moves[0].alone {
		for _, mv := range moves {
			mv.alone = true
		}
		return moves, nil
	}
	mv := moves[0]
	new := maps.Clone(mv.new)
	changed := false
	for id, f := range mv.new {
		if f.kind == parked || len(blamed) > 0 && !blamed[id] {
			continue
		}
		why := &rules.ItemError{Code: "write.rejected", Reason: "DynamoDB refuses the write: " + message}
		if f.kind == contribution && blamed[id] {
			why = overflow("the sum with the contribution " + f.amount.String()).parked
		}
		new[id], changed = effect{kind: parked, parked: why}, true
	}
	if !changed {
		return nil, e.parkRefusedUndo(ctx, mv, blamed, message)
	}
	mv.new = new
	e.logger.WarnContext(ctx, "parked: a write was refused", "item", mv.key.String(), "reason", message)
	return moves, nil
}

// parkRefusedUndo parks an item whose former effects DynamoDB refuses to take
// back. Its entry stays as it is, and says what is still in force; the item's
// next record, or a retry, tries again.
func (e *Engine) parkRefusedUndo(ctx context.Context, mv *move, blamed map[string]bool, message string) error {
	for _, id := range mv.ids() {
		if len(blamed) > 0 && !blamed[id] {
			continue
		}
		why := &rules.ItemError{Code: "write.rejected", Reason: "DynamoDB refuses to take back what the item caused before: " + message}
		if err := e.parkID(ctx, id, mv.key, mv.position, why); err != nil {
			return err
		}
	}
	mv.due, mv.touched = nil, nil
	return nil
}

// clearDue takes the due mark off an entry, unless the entry has moved since.
func (e *Engine) clearDue(ctx context.Context, mv *move) error {
	c := newExpression()
	remove := "REMOVE " + c.name("due")
	condition := c.entryIs(&entry{at: mv.markAt(), rederived: mv.markRederived()})
	_, err := e.update(ctx, "clearing a due mark", e.stateUpdate(entryKey(mv.key), remove, condition, c))
	return err
}

// markAt and markRederived say which entry holds the move's due mark: the one
// it wrote, or, where it found itself done already, the one it found.
func (mv *move) markAt() version {
	if mv.entry != nil && mv.entry.at >= mv.to && mv.first >= 0 {
		return mv.entry.at
	}
	return mv.to
}

func (mv *move) markRederived() int64 {
	if mv.entry != nil && mv.entry.at >= mv.to && mv.first >= 0 {
		return mv.entry.rederived
	}
	return mv.rederived
}
