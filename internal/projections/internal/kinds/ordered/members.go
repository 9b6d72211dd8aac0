package ordered

import (
	"context"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/effects"
	"github.com/dynamill/dynamill/internal/projections/internal/groups"
	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/rules"
)

// Effects implements plan.Feeder: a source, or each element of its list, is a member of a group.
func (k *kind) Effects(b *plan.Binding, m *rules.Match, img change.Image, tell func(string, effects.Effect)) error {
	return b.Rule.ForEach(m, img, func(element string, m *rules.Match) error {
		member, ok, err := Of(b.Rule).Member(m, img)
		if err == nil && ok {
			tell(element, effects.Effect{Kind: effects.Contribution, Group: member.Group, Member: &effects.Member{
				Order: orderOf(member.Order), Digest: effects.MemberDigest(member.Shown), Shown: member.Shown}})
		}
		return err
	})
}

// CanHave implements plan.Feeder.
func (k *kind) CanHave(p *plan.Planner, b *plan.Binding, what string, f effects.Effect) bool {
	return f.Kind == effects.Contribution && f.Member != nil && isOrder(f.Member.Order) && len(f.Member.Digest) == stamp.DigestDigits &&
		(what != "") == b.Rule.Each.Given() && (b.Rule.ByUnique || p.IsTarget(b.Rule, change.ParseKey(f.Group)))
}

// Words implements plan.Feeder.
func (k *kind) Words(b *plan.Binding, f effects.Effect) plan.Words {
	rollUp := groups.RollUpText(b, f.Group)
	return plan.Words{What: "being a member of " + f.Group, Undo: "take away its former member row, and " + rollUp,
		Redo: "write its member row, and " + rollUp}
}

// memberWrite is an action on a member row.
type memberWrite struct {
	key    table.Key
	source change.Key
	shown  map[string]change.Value // of a member; nil: the row is deleted
}

// Differ implements plan.Actor: the row of a member goes with its effect.
func (k *kind) Differ(_ *plan.Planner, mv *plan.Move, b *plan.Binding, key effects.Key) (all []plan.Action) {
	was, is := mv.Old[key], mv.After(key)
	if was.String() == is.String() {
		return nil
	}
	row := func(f effects.Effect) table.Key {
		return state.MemberKey(plan.GroupRef{Binding: b, Group: f.Group}, f.Member, mv.Key, key.For)
	}
	act := func(w memberWrite) {
		a := plan.Action{Kind: plan.FamilyAction, Item: w.key.Partition + "\x00" + w.key.Sort, Key: key, Binding: b, FamilyData: w}
		for name, v := range w.shown {
			a.Bytes += len(name) + v.Size()
		}
		all = append(all, a)
	}
	if was.Member != nil && (is.Member == nil || row(was) != row(is)) {
		act(memberWrite{key: row(was)})
	}
	if is.Member != nil {
		act(memberWrite{row(is), mv.Key, is.Member.Shown})
	}
	return all
}

// Write implements host.Actor. The ledger entry in the same transaction says that the row is as it was: it needs no condition.
func (k *kind) Write(h *host.Host, a plan.Action, _ stamp.Version) ddb.TransactWriteItem {
	w := a.FamilyData.(memberWrite)
	if w.shown == nil {
		return h.Tables.DeletePart(w.key, "", table.NewExpression())
	}
	return h.Tables.PutPart(state.MemberRow(w.key, w.source, w.shown), "", table.NewExpression())
}

// DisplayEvery implements host.Debouncer: displays wait as long as the engine's DisplayEvery says.
func (k *kind) DisplayEvery(*plan.Binding) time.Duration { return 0 }

// Rows implements host.Keeper.
func (k *kind) Rows() []string { return append(k.Family.Rows(), state.MemberRows) }

// bytesMax bounds what a roll-up reads: an item that shows more than DynamoDB takes is refused, however much more it is.
const bytesMax = 1 << 20

// Read implements groups.Reader: it reads the first members. They are no older than the operations, which were read before them.
func (f *Form) Read(ctx context.Context, rd *table.Reader, g plan.GroupRef, t *groups.Total) error {
	var members []map[string]change.Value
	c := table.NewExpression()
	in := rd.StateQuery(c.Format("%n = %v", table.PK, table.Text(state.MembersOf(g))), c)
	in.ScanIndexForward = new(!f.kind.backward)
	for size := 0; len(members) < f.shows() && size < bytesMax; {
		in.Limit = new(int32(f.shows() - len(members)))
		out, err := rd.Query(ctx, "reading members of "+g.Group, in)
		if err != nil {
			return err
		}
		for _, r := range out.Items {
			shown, _ := state.ReadMember(r)
			for _, v := range shown {
				size += v.Size()
			}
			members = append(members, shown)
		}
		if in.ExclusiveStartKey = out.LastEvaluatedKey; len(in.ExclusiveStartKey) == 0 {
			break
		}
	}
	t.More = members
	return nil
}
