package projections

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/rules"
)

// Where a mirror's target does not determine its source, several sources may
// ask for one target. The set of sources in force is kept in a claims item,
// changed by the same transaction as the ledger. The smallest source key wins,
// and writes its content at once; every target that a move touches is derived
// afterwards, like a roll-up, for whoever loses or drops a claim cannot know
// what the winner asks for.

// claimSet is a target's claims item as it was read.
type claimSet struct {
	sources []string // Key.String() of each, sorted
	changes int64    // raised with every change; 0 if there is no item
}

func (cs claimSet) winner() string {
	if len(cs.sources) == 0 {
		return ""
	}
	return cs.sources[0]
}

func (e *Engine) readClaims(ctx context.Context, b *binding, target change.Key) (claimSet, error) {
	key := claimsKey(b, target)
	rows, err := e.readState(ctx, "reading the claims of "+target.String(), []stateKey{key})
	if err != nil {
		return claimSet{}, err
	}
	sources := slices.Sorted(slices.Values(textsOf(rows[key]["sources"])))
	return claimSet{sources, numberOf(rows[key]["changes"])}, nil
}

// claimed is a target on which a move adds, keeps or drops a claim.
type claimed struct {
	b      *binding
	target change.Key
	effect effect // what the source asks for; no kind: nothing any more
}

// claims reports whether the move has mirrors with claims.
func (e *Engine) claims(mv *move) bool { return len(e.claimedTargets(mv)) > 0 }

func (e *Engine) claimedTargets(mv *move) []claimed {
	var all []claimed
	for _, id := range mv.ids() {
		b := e.byID[id]
		if b == nil || b.rule.Injective {
			continue
		}
		old, new := mv.old[id], mv.new[id]
		if old.kind == mirrored && new.kind == mirrored && old.String() == new.String() && mv.restore[id] != new.target {
			continue
		}
		if old.kind == mirrored && (new.kind != mirrored || new.target != old.target) {
			all = append(all, claimed{b: b, target: old.target})
		}
		if new.kind == mirrored {
			all = append(all, claimed{b, new.target, new})
		}
	}
	return all
}

// applyClaimed sends the transaction of one move that has mirrors with claims.
// It reports true if the move has to be tried again.
func (e *Engine) applyClaimed(ctx context.Context, mv *move, suffix int) (bool, error) {
	targets := e.claimedTargets(mv)
	pk := &pack{exclusive: map[string]bool{}}
	sums, rest := e.difference(mv)
	pk.take(mv, sums, rest)
	items, parts := e.assemble(pk, suffix)
	for _, t := range targets {
		found, err := e.readClaims(ctx, t.b, t.target)
		if err != nil {
			return false, err
		}
		claim := t.effect.kind == mirrored
		after := found.with(mv.key.String(), claim)
		items = append(items, e.claimsWrite(t, found, after))
		parts = append(parts, part{moves: []*move{mv}, action: action{id: t.b.id}})
		switch {
		case claim && after.winner() == mv.key.String():
			a := e.upsertAction(mv, t.b, t.effect)
			items, parts = append(items, a.write), append(parts, part{moves: []*move{mv}, action: a})
		case len(after.sources) == 0:
			a := e.dropAction(mv, t.b, t.target)
			items, parts = append(items, a.write), append(parts, part{moves: []*move{mv}, action: a})
		}
		if len(after.sources) > 1 {
			e.logger.WarnContext(ctx, "several sources ask for one mirror item; the smallest key wins",
				"rule", t.b.rule.Name, "target", t.target.String(), "sources", len(after.sources))
		}
	}
	if err := e.transact(ctx, "applying a ledger transaction with claims", items); err != nil {
		again, err := e.afterFailure(ctx, err, []*move{mv}, parts, suffix)
		return len(again) > 0, err
	}
	e.countMirrors(parts)
	return false, nil
}

func (cs claimSet) with(source string, claim bool) claimSet {
	sources := slices.DeleteFunc(slices.Clone(cs.sources), func(s string) bool { return s == source })
	if claim {
		sources = append(sources, source)
		slices.Sort(sources)
	}
	return claimSet{sources, cs.changes + 1}
}

func (e *Engine) claimsWrite(t claimed, found, after claimSet) ddb.TransactWriteItem {
	c := newExpression()
	set := c.sprintf("SET %n = %v", "changes", numberValue(after.changes))
	if len(after.sources) > 0 {
		set += c.sprintf(", %n = %v", "sources", &ddb.AttributeValueMemberSS{Value: after.sources})
	} else {
		set += " REMOVE " + c.name("sources")
	}
	condition := c.claimsAre(found)
	return ddb.TransactWriteItem{Update: &ddb.Update{
		TableName: &e.stateTable, Key: claimsKey(t.b, t.target).attributes(),
		UpdateExpression: &set, ConditionExpression: &condition,
		ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,
	}}
}

func (c *expression) claimsAre(found claimSet) string {
	if found.changes == 0 {
		return c.sprintf("attribute_not_exists(%n)", "changes")
	}
	return c.sprintf("%n = %v", "changes", numberValue(found.changes))
}

// deriveTarget brings a mirror item with claims to what its winner asks for,
// provided that neither the claims nor the winner's ledger entry move meanwhile.
func (e *Engine) deriveTarget(ctx context.Context, b *binding, target change.Key) error {
	for try := range movesTriesMax {
		if try > 2 {
			pause(ctx, try)
		}
		found, err := e.readClaims(ctx, b, target)
		if err != nil {
			return err
		}
		items, err := e.readItems(ctx, "reading mirror item "+target.String(), []change.Key{target})
		if err != nil {
			return err
		}
		standing := image(items[target])
		c := newExpression()
		held := c.claimsAre(found)
		writes := []ddb.TransactWriteItem{{ConditionCheck: &ddb.ConditionCheck{
			TableName: &e.stateTable, Key: claimsKey(b, target).attributes(), ConditionExpression: &held,
			ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,
		}}}
		if winner := found.winner(); winner == "" {
			if !stamped(b, stampContext(e.incarnation, target, ""), standing) {
				return nil // gone, or the application's own
			}
			writes = append(writes, e.deleteAction(b, target).write)
		} else {
			more, err := e.winnerWrites(ctx, b, target, change.ParseKey(winner), standing)
			if err != nil || len(more) == 0 {
				return err
			}
			writes = append(writes, more...)
		}
		err = e.transact(ctx, "deriving mirror item "+target.String(), writes)
		if err == nil {
			e.counters.Mirrors.Add(1)
			return nil
		}
		var canceled *ddb.TransactionCanceledException
		if !errors.As(err, &canceled) && classify(err) != classPark {
			return err
		}
		if why := refusal(err, canceled); why != "" {
			return e.park(ctx, b, target, change.Position{}, &rules.ItemError{Code: "write.rejected", Reason: "DynamoDB refuses the write: " + why})
		}
	}
	return fmt.Errorf("deriving mirror item %s: %w", target, errTooContended)
}

// refusal is why DynamoDB refuses a transaction for good; "" if it was only in the way of others.
func refusal(err error, canceled *ddb.TransactionCanceledException) string {
	if canceled == nil {
		return err.Error()
	}
	for _, r := range canceled.CancellationReasons {
		if code := codeOf(r); code != "None" && code != "ConditionalCheckFailed" && !retryCodes[code] {
			return code + ": " + aws.ToString(r.Message)
		}
	}
	return ""
}

// winnerWrites are the check of the winner's entry and the write of what its
// item asks for; none if its own record is on the way, or if the mirror item
// stands as it should.
func (e *Engine) winnerWrites(ctx context.Context, b *binding, target, winner change.Key, standing change.Image) ([]ddb.TransactWriteItem, error) {
	mv, err := e.readMoveOf(ctx, winner)
	if err != nil {
		return nil, err
	}
	f, ok := mv.new[b.id]
	if !ok || f.kind != mirrored || f.target != target || mv.entry == nil {
		return nil, nil
	}
	if stamped(b, stampContext(e.incarnation, target, ""), standing) && digestOf(b, standing) == f.digest {
		return nil, nil
	}
	c := newExpression()
	condition := c.entryIs(mv.entry)
	mv.to = mv.entry.at
	return []ddb.TransactWriteItem{
		{ConditionCheck: &ddb.ConditionCheck{
			TableName: &e.stateTable, Key: entryKey(winner).attributes(), ConditionExpression: &condition,
			ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,
		}},
		e.upsertAction(mv, b, f).write,
	}, nil
}
