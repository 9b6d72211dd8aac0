package mirrors

import (
	"context"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// Where a mirror's target does not determine its source, several sources may ask for one target. A claims item keeps the
// sources in force, changed by the same transaction as the ledger. The smallest source key wins, and writes its content at once.
// A source that loses or drops a claim cannot know what the winner asks for: targets are derived after a move, like roll-ups.

// Rows implements host.Keeper.
func (kind) Rows() []string { return []string{state.ClaimsRows} }

// claimSet is a target's claims item as it was read.
type claimSet struct {
	state.Set
	parked bool // the rule is parked on the target
}

// parkedKey is the key of what is parked of a rule on a target.
func parkedKey(b *plan.Binding, target change.Key) table.Key {
	return state.ParkedItemKey(b.ID, target)
}

// isParked reports whether rows that were read say that a rule is parked on an occupied target.
func isParked(rows map[table.Key]table.Row, b *plan.Binding, target change.Key) bool {
	return table.TextOf(rows[parkedKey(b, target)]["code"]) == occupiedCode
}

func (m maker) readClaims(ctx context.Context, b *plan.Binding, target change.Key) (claimSet, error) {
	key := state.ClaimsKey(b, target)
	keys := []table.Key{key}
	if len(b.Rule.Target.Equals) > 0 { // otherwise no item there is of another entity
		keys = append(keys, parkedKey(b, target))
	}
	rows, err := m.Tables.ReadState(ctx, "reading the claims of "+target.String(), keys)
	if err != nil {
		return claimSet{}, err
	}
	if audit.TornSet(attributes.ItemFromTable(rows[key])) {
		return claimSet{}, state.TornError(rows[key], "no number of changes")
	}
	return claimSet{state.ReadSet(rows[key], false), isParked(rows, b, target)}, nil
}

// Claim implements host.Maker. The winner's content is written with the claim.
func (kind) Claim(ctx context.Context, h *host.Host, mv *plan.Move, a plan.Action) ([]host.Part, error) {
	m, write := maker{h}, a.FamilyData.(targetWrite)
	found, err := m.readClaims(ctx, a.Binding, a.Target)
	if err != nil {
		return nil, err
	}
	asks, d := write.do == claims, difference{m.Planner, mv, a.Binding, a.Key}
	after := found.With(mv.Key.String(), asks)
	written := asks && after.Winner() == mv.Key.String()
	parts := []host.Part{{Write: m.claimsWrite(a, found.Set, after, written), Action: a, Moves: []*plan.Move{mv}}}
	expected := placeFree
	if len(found.Sources) > 0 {
		expected = placeMade
	}
	version, actions := mv.Version(), []plan.Action(nil)
	switch {
	case written:
		version, actions = m.claimsVersion(after), d.upsert(write.item, expected)
	case len(after.Sources) == 0:
		actions = d.drop(a.Target)
	}
	for _, one := range actions {
		parts = append(parts, m.PartOf(mv, one, version))
	}
	return parts, nil
}

// claimsVersion is the version of a mirror item with claims. They change with
// every move of every source, so it rises also where an older source wins again.
func (m maker) claimsVersion(cs state.Set) stamp.Version {
	return stamp.VersionOf(m.Planner.Epoch, cs.Changes)
}

// claimsWrite changes the claims of a target; written says that the item is written with them.
func (m maker) claimsWrite(a plan.Action, found, after state.Set, written bool) ddb.TransactWriteItem {
	c := table.NewExpression()
	set := c.Format("SET %n = %v", "changes", table.Number(after.Changes))
	var remove []string
	if len(after.Sources) > 0 {
		set += c.Format(", %n = %v", "sources", &ddb.AttributeValueMemberSS{Value: after.Sources})
	} else {
		remove = append(remove, "sources")
	}
	if found.Expired != "" && (written || len(after.Sources) == 0) {
		remove = append(remove, "expired") // the item is written anew, or no source asks for it
	}
	if len(remove) > 0 {
		set += " REMOVE " + c.List(remove)
	}
	return m.Tables.UpdatePart(state.ClaimsKey(a.Binding, a.Target), set, state.SetIs(c, found), c)
}

// RollUp implements host.Grouper: the targets that sources claim become what the winners ask for.
func (kind) RollUp(ctx context.Context, r *host.Run, targets []plan.GroupRef, _ *plan.Changes) []error {
	return r.Tables.Every(ctx, len(targets), func(ctx context.Context, i int) error {
		return maker{r.Host}.deriveTarget(ctx, targets[i].Binding, change.ParseKey(targets[i].Group), nil)
	})
}

// deriveTarget brings a mirror item with claims to what its winner asks for,
// provided that neither the claims nor the winner's ledger entry move meanwhile, and
// lists the target if several sources claim it. why
// is what a record or a scan tells of the item; nil: the claims moved.
func (m maker) deriveTarget(ctx context.Context, b *plan.Binding, target change.Key, why *Heal) error {
	doing := "deriving mirror item " + target.String()
	return table.Contend(ctx, doing, func() (table.Round, error) {
		found, err := m.readClaims(ctx, b, target)
		if err != nil {
			return table.Lost, err
		}
		if err := m.UpdateContentionList(ctx, audit.ContestedTarget{ID: b.ID, Target: target}, found.Set); err != nil {
			return table.Lost, err
		}
		items, err := m.Tables.ReadItems(ctx, "reading mirror item "+target.String(), []change.Key{target})
		if err != nil {
			return table.Lost, err
		}
		parts, err := m.targetParts(ctx, b, target, found, table.Image(items[target]), why)
		if err != nil || len(parts) == 0 {
			return table.Finished, err
		}
		err = m.Transact(ctx, doing, []string{b.ID}, parts)
		if table.LostRace(err) {
			return table.Lost, nil
		}
		return table.Finished, m.ParkRefused(ctx, b, target, err)
	})
}

// targetParts are the writes that bring a mirror item with claims from what stands
// at its key to what its winner asks for; none if it is so.
func (m maker) targetParts(ctx context.Context, b *plan.Binding, target change.Key, found claimSet, current change.Image,
	why *Heal) ([]host.Part, error) {
	mv := &plan.Move{}
	mv.See(target, current)
	d := difference{m.Planner, mv, b, keyAt(b, target)}
	var parts []host.Part
	var actions []plan.Action
	at := placeOf(b, target, current)
	stamped := plan.Stamped(b, stamp.Context(m.Planner.Incarnation, target, ""), current)
	if found.Winner() == "" {
		// While the rule is seeded, a source may still come to claim what was made under a lost state table.
		if at == placeMade && b.Live.Load() || stamped || found.parked {
			actions = d.drop(target)
		}
	} else {
		winner, f, err := m.winnerOf(ctx, b, target, found.Set)
		switch {
		case err != nil || winner == nil:
			return nil, err
		case why != nil && why.Expired && current == nil && found.Expired != f.digest:
			return []host.Part{{Write: m.expiredWrite(b, target, found.Set, f)}}, nil
		case at == placeFree && found.Expired == f.digest && (why == nil || !why.Deleted):
			return nil, nil
		case at == placeOccupied && found.parked && !stamped && (why == nil || !why.Repark):
			return nil, nil
		case at != placeOccupied && stamped && contentDigest(b.Rule, current) == f.digest && !found.parked:
			return nil, nil
		}
		actions = d.upsert(f, at)
		c := table.NewExpression()
		parts = append(parts, host.Part{Write: m.Tables.CheckPart(state.EntryKey(winner.Key), state.EntryIs(c, winner.Entry), c)})
	}
	if len(actions) == 0 {
		return nil, nil
	}
	for _, a := range actions {
		parts = append(parts, m.PartOf(mv, a, m.claimsVersion(found.Set)))
	}
	c := table.NewExpression()
	return append(parts, host.Part{Write: m.Tables.CheckPart(state.ClaimsKey(b, target), state.SetIs(c, found.Set), c)}), nil
}

// expiredWrite notes in the claims that DynamoDB's time to live deleted the winner's content.
func (m maker) expiredWrite(b *plan.Binding, target change.Key, found state.Set, f mirrorItem) ddb.TransactWriteItem {
	c := table.NewExpression()
	set := c.Format("SET %n = %v", "expired", table.Text(f.digest))
	return m.Tables.UpdatePart(state.ClaimsKey(b, target), set, state.SetIs(c, found), c)
}

// winnerOf reads the winner's ledger entry, and then what its item asks for; nil if its
// own record is on the way.
func (m maker) winnerOf(ctx context.Context, b *plan.Binding, target change.Key, found state.Set) (*plan.Move, mirrorItem, error) {
	mv, err := m.Ledger.Read(ctx, change.ParseKey(found.Winner()))
	if err != nil {
		return nil, mirrorItem{}, err
	}
	_, it, wanted := itemIn(mv.New, b, target)
	if !wanted || mv.Entry == nil {
		return nil, mirrorItem{}, nil
	}
	return mv, it, nil
}
