package plan_test

import (
	"slices"
	"testing"

	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/projections/internal/kinds"
	"github.com/dynamill/dynamill/internal/projections/internal/leftovers"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/rules"
)

const socialRules = `
version: 1
table: { keys: [pk, sk] }
entities:
  User:       { key: { pk: "USER#${userId}",   sk: "PROFILE" } }
  Post:       { key: { pk: "POST#${postId}",   sk: "METADATA" } }
  Comment:    { key: { pk: "POST#${postId}",   sk: "COMMENT#${commentId}" } }
  Group:      { key: { pk: "GROUP#${groupId}", sk: "METADATA" } }
  Membership: { key: { pk: "USER#${userId}",   sk: "GROUP#${groupId}" } }
  Member:     { key: { pk: "GROUP#${groupId}", sk: "USER#${userId}" } }
rules:
  comment-author: { copy: name as userName, from: User, to: Comment, by: userId }
  member-list:    { mirror: Membership, as: Member, attributes: [role, joinedAt] }
  member-name:    { copy: name as userName,  from: User,  to: Member }
  group-name:     { copy: name as groupName, from: Group, to: Membership }
  group-title:    { copy: name as groupTitle, from: Group, to: Member }
  member-count:   { count: Membership, as: Group.memberCount, where: role != "banned", write_shards: 3 }
  admin-count:    { count: Member, as: Group.adminCount, where: role == "admin" }
  comment-count:  { count: Comment, as: Post.commentCount }
`

func s(text string) change.Value { return change.String(text) }

// streamImage is an item as the stream's SDK hands it out, decoded when it is looked at.
func streamImage(it change.Item) change.Image {
	im := attributes.StreamImage{}
	for name, v := range it {
		if v.Kind() == change.KindNumber {
			im[name] = &streams.AttributeValueMemberN{Value: v.Text()}
		} else {
			im[name] = &streams.AttributeValueMemberS{Value: v.Text()}
		}
	}
	return im
}

// irrelevantAllocsMax is what a record that no rule reads may cost (docs/performance.md).
const irrelevantAllocsMax = 2

// irrelevantRecord is a change of a stamped Group that touches nothing which a rule reads, writes or stamps.
func irrelevantRecord(t testing.TB) change.Record {
	position, err := change.NewPosition("2026-01-01T00:00:00.000", "123")
	if err != nil {
		t.Fatal(err)
	}
	old := change.Item{"pk": s("GROUP#g1"), "sk": s("METADATA"), "name": s("Dev"), "memberCount": change.Number("4"),
		"_dm_member-count": s("c v d"), "motd": s("hi")}
	new := change.Item{"pk": s("GROUP#g1"), "sk": s("METADATA"), "name": s("Dev"), "memberCount": change.Number("4"),
		"_dm_member-count": s("c v d"), "motd": s("ho")}
	return change.Record{Key: change.Key{Partition: "GROUP#g1", Sort: "METADATA"}, Position: position, Old: streamImage(old),
		New: streamImage(new)}
}

func socialPlanner(t testing.TB) *plan.Planner {
	t.Helper()
	set, err := rules.Load("dynamill.yaml", []byte(socialRules), kinds.All)
	if err != nil {
		t.Fatal(err)
	}
	ids := map[*rules.Rule]string{}
	for _, r := range set.Rules {
		ids[r] = r.Name
	}
	return &plan.Planner{Bindings: plan.Bind(set, ids), Incarnation: "i", Epoch: 1}
}

func TestARecordThatNoRuleReadsCostsAtMostTwoAllocations(t *testing.T) {
	expectIrrelevant(t, socialPlanner(t))
}

func TestRetiredRulesCostARecordThatIsNoneOfTheirsNothing(t *testing.T) {
	p := socialPlanner(t)
	for _, id := range []string{"member-count", "comment-count"} {
		b := plan.NewFormer(p.ByID(id).Rule, id+"-0")
		b.Retired.Store(true)
		p.AddFormer(b)
	}
	expectIrrelevant(t, p)
}

// expectIrrelevant plans many records that no rule reads: what the plan itself takes does not count beside them.
func expectIrrelevant(t *testing.T, p *plan.Planner) {
	t.Helper()
	const n = 1000
	records, pl := slices.Repeat([]change.Record{irrelevantRecord(t)}, n), &plan.Changes{}
	allocs := testing.AllocsPerRun(10, func() { pl = p.Plan(records, leftovers.PlanRecord) }) / n
	if pl.Relevant != 0 || pl.Seen.Unmatched != 0 {
		t.Fatalf("records count as relevant %d, as unmatched %d times: want matched records that are dropped", pl.Relevant, pl.Seen.Unmatched)
	}
	if allocs > irrelevantAllocsMax+0.1 {
		t.Errorf("%.1f allocations a record, want at most %d", allocs, irrelevantAllocsMax)
	}
}

func BenchmarkRecordThatNoRuleReads(b *testing.B) {
	p, records := socialPlanner(b), slices.Repeat([]change.Record{irrelevantRecord(b)}, b.N)
	b.ReportAllocs()
	b.ResetTimer()
	p.Plan(records, leftovers.PlanRecord)
}
