package projections

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/guard"
	"github.com/dynamill/dynamill/projections/internal/audit"
	"github.com/dynamill/dynamill/projections/internal/plan"
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

func (e *Engine) readClaims(ctx context.Context, b *plan.Binding, target change.Key) (claimSet, error) {
	key := claimsKey(b, target)
	rows, err := e.readState(ctx, "reading the claims of "+target.String(), []stateKey{key})
	if err != nil {
		return claimSet{}, err
	}
	if audit.TornSet(attributes.ItemFromTable(rows[key])) {
		return claimSet{}, tornError(rows[key], "no number of changes")
	}
	sources := slices.Sorted(slices.Values(textsOf(rows[key]["sources"])))
	return claimSet{sources, numberOf(rows[key]["changes"])}, nil
}

// applyClaimed sends the transaction of one move that has mirrors with claims.
// It reports true if the move has to be tried again.
func (e *Engine) applyClaimed(ctx context.Context, mv *plan.Move, suffix int) (bool, error) {
	items, parts := e.assemble(e.planner.Pack([]*plan.Move{mv})[0], suffix)
	for _, t := range e.planner.Claims(mv) {
		found, err := e.readClaims(ctx, t.Binding, t.Target)
		if err != nil {
			return false, err
		}
		asks := t.Effect.Kind == plan.Mirrored
		after := found.with(mv.Key.String(), asks)
		items = append(items, e.claimsWrite(t, found, after))
		parts = append(parts, part{moves: []*plan.Move{mv}, id: t.ID})
		switch {
		case asks && after.winner() == mv.Key.String():
			a := e.planner.Upsert(mv, t.Binding, t.Effect)
			items, parts = append(items, e.upsertWrite(a, e.claimsVersion(after))), append(parts, partOf(mv, a))
		case len(after.sources) == 0:
			a := mv.Drop(t.Binding, t.Target)
			items, parts = append(items, e.actionWrite(mv, a)), append(parts, partOf(mv, a))
		}
		if len(after.sources) > 1 {
			e.logger.WarnContext(ctx, "several sources ask for one mirror item; the smallest key wins",
				"rule", t.Rule.Name, "target", t.Target.String(), "sources", len(after.sources))
		}
	}
	if err := e.transact(ctx, "applying a ledger transaction with claims", ownersOf(parts), items); err != nil {
		again, err := e.afterFailure(ctx, err, []*plan.Move{mv}, parts, suffix)
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

// claimsVersion is the version of a mirror item with claims. They change with
// every move of every source, so it rises also where an older source wins again.
func (e *Engine) claimsVersion(cs claimSet) plan.Version { return plan.VersionOf(e.epoch, cs.changes) }

func (e *Engine) claimsWrite(t plan.Claim, found, after claimSet) ddb.TransactWriteItem {
	c := newExpression()
	set := c.sprintf("SET %n = %v", "changes", numberValue(after.changes))
	if len(after.sources) > 0 {
		set += c.sprintf(", %n = %v", "sources", &ddb.AttributeValueMemberSS{Value: after.sources})
	} else {
		set += " REMOVE " + c.name("sources")
	}
	condition := guarded(guard.ClaimsUnmoved, c.claimsAre(found))
	return ddb.TransactWriteItem{Update: &ddb.Update{
		TableName: &e.stateTable, Key: claimsKey(t.Binding, t.Target).attributes(),
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
func (e *Engine) deriveTarget(ctx context.Context, b *plan.Binding, target change.Key) error {
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
		held := guarded(guard.ClaimsUnmoved, c.claimsAre(found))
		writes := []ddb.TransactWriteItem{{ConditionCheck: &ddb.ConditionCheck{
			TableName: &e.stateTable, Key: claimsKey(b, target).attributes(), ConditionExpression: &held,
			ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,
		}}}
		if found.winner() == "" {
			if !plan.Stamped(b, plan.StampContext(e.incarnation, target, ""), standing) {
				return nil // gone, or the application's own
			}
			writes = append(writes, e.deleteWrite(b, target))
		} else {
			more, err := e.winnerWrites(ctx, b, target, found, standing)
			if err != nil || len(more) == 0 {
				return err
			}
			writes = append(writes, more...)
		}
		err = e.transact(ctx, "deriving mirror item "+target.String(), []string{b.ID}, writes)
		if err == nil {
			e.counters.Mirrors.Add(1)
			return nil
		}
		var canceled *ddb.TransactionCanceledException
		if !errors.As(err, &canceled) && classify(err) != classPark {
			return err
		}
		if why := refusal(err, canceled); why != "" {
			return e.park(ctx, b, target, &rules.ItemError{Code: "write.rejected", Reason: "DynamoDB refuses the write: " + why})
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
		if code := codeOf(r); code != "None" && code != "ConditionalCheckFailed" && !asksForRetry(code) {
			return code + ": " + aws.ToString(r.Message)
		}
	}
	return ""
}

// winnerWrites are the check of the winner's entry and the write of what its
// item asks for; none if its own record is on the way, or if the mirror item
// stands as it should.
func (e *Engine) winnerWrites(ctx context.Context, b *plan.Binding, target change.Key, found claimSet, standing change.Image) ([]ddb.TransactWriteItem, error) {
	winner := change.ParseKey(found.winner())
	mv, err := e.readMoveOf(ctx, winner)
	if err != nil {
		return nil, err
	}
	f, ok := mv.New[b.ID]
	if !ok || f.Kind != plan.Mirrored || f.Target != target || mv.Entry == nil {
		return nil, nil
	}
	if plan.Stamped(b, plan.StampContext(e.incarnation, target, ""), standing) && plan.DigestOf(b, standing) == f.Digest {
		return nil, nil
	}
	c := newExpression()
	condition := c.entryIs(mv.Entry)
	return []ddb.TransactWriteItem{
		{ConditionCheck: &ddb.ConditionCheck{
			TableName: &e.stateTable, Key: entryKey(winner).attributes(), ConditionExpression: &condition,
			ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,
		}},
		e.upsertWrite(e.planner.Upsert(mv, b, f), e.claimsVersion(found)),
	}, nil
}
