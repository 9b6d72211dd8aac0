package projections

import (
	"context"
	"errors"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/projections/internal/audit"
	"github.com/dynamill/dynamill/projections/internal/host"
	"github.com/dynamill/dynamill/projections/internal/kinds/mirrors"
	"github.com/dynamill/dynamill/projections/internal/plan"
	"github.com/dynamill/dynamill/projections/internal/state"
	"github.com/dynamill/dynamill/projections/internal/table"
)

// Where a mirror's target does not determine its source, several sources may
// ask for one target. The set of sources in force is kept in a claims item,
// changed by the same transaction as the ledger. The smallest source key wins,
// and writes its content at once; every target that a move touches is derived
// afterwards, like a roll-up, because a source that loses or drops a claim cannot know
// what the winner asks for.

// claimSet is a target's claims item as it was read.
type claimSet struct {
	state.Set
	parked bool // the rule is parked on the target
}

func (e *Engine) readClaims(ctx context.Context, b *plan.Binding, target change.Key) (claimSet, error) {
	key, parked := state.ClaimsKey(b, target), state.ParkedKey(state.ParkedID(b.ID, target))
	keys := []table.Key{key}
	if len(b.Rule.Target.Equals) > 0 { // otherwise no item there is of another entity
		keys = append(keys, parked)
	}
	rows, err := e.tables.ReadState(ctx, "reading the claims of "+target.String(), keys)
	if err != nil {
		return claimSet{}, err
	}
	if audit.TornSet(attributes.ItemFromTable(rows[key])) {
		return claimSet{}, state.TornError(rows[key], "no number of changes")
	}
	return claimSet{state.ReadSet(rows[key], false), table.TextOf(rows[parked]["code"]) == plan.OccupiedCode}, nil
}

// claimed returns the claims of a mirror item as a set.
func (cs claimSet) claimed(b *plan.Binding, target change.Key) host.Contested {
	return host.Contested{
		ContestedTarget: audit.ContestedTarget{ID: b.ID, Target: target}, Set: state.ClaimsKey(b, target),
		Claimants: cs.Sources, Changes: cs.Changes, Listed: cs.Listed,
	}
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
		after := found.With(mv.Key.String(), asks)
		items = append(items, e.claimsWrite(mv.Key.String(), t, found.Set, after))
		parts = append(parts, part{moves: []*plan.Move{mv}, id: t.ID})
		expected := plan.PlaceFree
		if len(found.Sources) > 0 {
			expected = plan.PlaceMade
		}
		version, actions := entryVersion(mv), []plan.Action(nil)
		switch {
		case asks && after.Winner() == mv.Key.String():
			version, actions = e.claimsVersion(after), e.planner.Upsert(mv, t.Binding, t.Effect, expected)
		case len(after.Sources) == 0:
			actions = e.planner.Drop(mv, t.Binding, t.Target)
		}
		for _, a := range actions {
			items, parts = append(items, e.claimedWrite(mv, a, version)), append(parts, partOf(mv, a))
		}
	}
	if err := e.tables.Transact(ctx, "applying a ledger transaction with claims", ownersOf(parts), items); err != nil {
		again, err := e.afterFailure(ctx, err, []*plan.Move{mv}, parts, suffix)
		return len(again) > 0, err
	}
	e.noteApplied(ctx, parts)
	return false, nil
}

// claimedWrite is an action on a mirror item with claims, or on what is parked of it.
func (e *Engine) claimedWrite(mv *plan.Move, a plan.Action, v plan.Version) ddb.TransactWriteItem {
	if a.Kind == plan.Park || a.Kind == plan.Unpark {
		return e.actionWrite(mv, a)
	}
	return e.mirrorWrite(a, v)
}

// claimsVersion is the version of a mirror item with claims. They change with
// every move of every source, so it rises also where an older source wins again.
func (e *Engine) claimsVersion(cs state.Set) plan.Version {
	return plan.VersionOf(e.planner.Epoch, cs.Changes)
}

func (e *Engine) claimsWrite(source string, t plan.Claim, found, after state.Set) ddb.TransactWriteItem {
	c := table.NewExpression()
	set := c.Format("SET %n = %v", "changes", table.Number(after.Changes))
	var remove []string
	if len(after.Sources) > 0 {
		set += c.Format(", %n = %v", "sources", &ddb.AttributeValueMemberSS{Value: after.Sources})
	} else {
		remove = append(remove, "sources")
	}
	if found.Expired != "" && (after.Winner() == source && t.Effect.Kind == plan.Mirrored || len(after.Sources) == 0) {
		remove = append(remove, "expired") // the item is written anew, or no source asks for it
	}
	if len(remove) > 0 {
		set += " REMOVE " + c.List(remove)
	}
	condition := state.SetIs(c, found)
	return e.tables.UpdatePart(state.ClaimsKey(t.Binding, t.Target), set, condition, c)
}

// deriveTarget brings a mirror item with claims to what its winner asks for,
// provided that neither the claims nor the winner's ledger entry move meanwhile, and
// lists the target if several sources claim it. why
// is what a record or a scan tells of the item; nil: the claims moved.
func (e *Engine) deriveTarget(ctx context.Context, b *plan.Binding, target change.Key, why *mirrors.Heal) error {
	doing := "deriving mirror item " + target.String()
	return table.Contend(ctx, doing, func() (table.Round, error) {
		found, err := e.readClaims(ctx, b, target)
		if err != nil {
			return table.Lost, err
		}
		if err := e.host.SettleContention(ctx, found.claimed(b, target)); err != nil {
			return table.Lost, err
		}
		items, err := e.tables.ReadItems(ctx, "reading mirror item "+target.String(), []change.Key{target})
		if err != nil {
			return table.Lost, err
		}
		writes, parts, err := e.targetWrites(ctx, b, target, found, table.Image(items[target]), why)
		if err != nil || len(writes) == 0 {
			return table.Settled, err
		}
		err = e.tables.Transact(ctx, doing, []string{b.ID}, writes)
		if err == nil {
			e.noteApplied(ctx, parts)
			return table.Settled, nil
		}
		if canceled := new(ddb.TransactionCanceledException); errors.As(err, &canceled) && table.Refusal(err) == "" {
			return table.Lost, nil
		}
		return table.Settled, e.host.ParkRefused(ctx, b, target, err)
	})
}

// targetWrites are the writes that bring a mirror item with claims from what stands
// at its key to what its winner asks for; none if it is so.
func (e *Engine) targetWrites(ctx context.Context, b *plan.Binding, target change.Key, found claimSet, standing change.Image, why *mirrors.Heal) ([]ddb.TransactWriteItem, []part, error) {
	mv := &plan.Move{}
	mv.See(target, standing)
	var writes []ddb.TransactWriteItem
	var actions []plan.Action
	place := plan.PlaceOf(b, target, standing)
	stamped := plan.Stamped(b, plan.StampContext(e.planner.Incarnation, target, ""), standing)
	if found.Winner() == "" {
		// While the rule is seeded, a source may still come to claim what was made under a lost state table.
		if place == plan.PlaceMade && b.Live.Load() || stamped || found.parked {
			actions = e.planner.Drop(mv, b, target)
		}
	} else {
		winner, f, err := e.winnerOf(ctx, b, target, found.Set)
		switch {
		case err != nil || winner == nil:
			return nil, nil, err
		case why != nil && why.Expired && standing == nil && found.Expired != f.Digest:
			return []ddb.TransactWriteItem{e.expiredWrite(b, target, found.Set, f)}, nil, nil
		case place == plan.PlaceFree && found.Expired == f.Digest && (why == nil || !why.Deleted):
			return nil, nil, nil
		case place == plan.PlaceOccupied && found.parked && !stamped && (why == nil || !why.Repark):
			return nil, nil, nil
		case place != plan.PlaceOccupied && stamped && plan.DigestOf(b, standing) == f.Digest && !found.parked:
			return nil, nil, nil
		}
		actions = e.planner.Upsert(mv, b, f, place)
		c := table.NewExpression()
		condition := state.EntryIs(c, winner.Entry)
		writes = append(writes, e.tables.CheckPart(state.EntryKey(winner.Key), condition, c))
	}
	if len(actions) == 0 {
		return nil, nil, nil
	}
	var parts []part
	for _, a := range actions {
		writes, parts = append(writes, e.claimedWrite(mv, a, e.claimsVersion(found.Set))), append(parts, partOf(mv, a))
	}
	return append(writes, e.claimsCheck(b, target, found.Set)), parts, nil
}

// claimsCheck checks that the claims of a target are as they were read.
func (e *Engine) claimsCheck(b *plan.Binding, target change.Key, found state.Set) ddb.TransactWriteItem {
	c := table.NewExpression()
	held := state.SetIs(c, found)
	return e.tables.CheckPart(state.ClaimsKey(b, target), held, c)
}

// expiredWrite notes in the claims that DynamoDB's time to live deleted the winner's content.
func (e *Engine) expiredWrite(b *plan.Binding, target change.Key, found state.Set, f plan.Effect) ddb.TransactWriteItem {
	c := table.NewExpression()
	set := c.Format("SET %n = %v", "expired", table.Text(f.Digest))
	held := state.SetIs(c, found)
	return e.tables.UpdatePart(state.ClaimsKey(b, target), set, held, c)
}

// winnerOf reads the winner's ledger entry, and then what its item asks for; nil if its
// own record is on the way.
func (e *Engine) winnerOf(ctx context.Context, b *plan.Binding, target change.Key, found state.Set) (*plan.Move, plan.Effect, error) {
	mv, err := e.readMoveOf(ctx, change.ParseKey(found.Winner()))
	if err != nil {
		return nil, plan.Effect{}, err
	}
	f, ok := mv.New[b.ID]
	if !ok || f.Kind != plan.Mirrored || f.Target != target || mv.Entry == nil {
		return nil, plan.Effect{}, nil
	}
	return mv, f, nil
}
