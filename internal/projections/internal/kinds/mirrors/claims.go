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

// Where a mirror's target does not determine its source, several sources may
// ask for one target. The set of sources in force is kept in a claims item,
// changed by the same transaction as the ledger. The smallest source key wins,
// and writes its content at once; every target that a move touches is derived
// afterwards, like a roll-up, because a source that loses or drops a claim cannot know
// what the winner asks for.

// Rows implements host.Keeper.
func (kind) Rows() []string { return []string{state.ClaimsRows} }

// claimSet is a target's claims item as it was read.
type claimSet struct {
	state.Set
	parked bool // the rule is parked on the target
}

// parkedKey is the key of what is parked of a rule on a target.
func parkedKey(b *plan.Binding, target change.Key) table.Key {
	return state.ParkedKey(state.ParkedID(b.ID, target))
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
	m, write := maker{h}, a.Own.(targetWrite)
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
