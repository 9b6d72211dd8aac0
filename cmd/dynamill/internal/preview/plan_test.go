package preview

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/following"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/sim/dynamosim"
)

const plannedRules = `
version: 1
table: { keys: [pk, sk] }
entities:
  User:       { key: { pk: "USER#${userId}",   sk: "PROFILE" } }
  Group:      { key: { pk: "GROUP#${groupId}", sk: "METADATA" } }
  Membership: { key: { pk: "USER#${userId}",   sk: "GROUP#${groupId}" } }
  Member:     { key: { pk: "GROUP#${groupId}", sk: "USER#${userId}" } }
rules:
  member-list:  { mirror: Membership, as: Member, attributes: [role, joinedAt] }
  member-name:  { copy: [name as userName, avatar], from: User, to: Member }
  member-count: { count: Membership, as: Group.memberCount, where: role != "banned" }
  admin-count:  { count: Member, as: Group.adminCount, where: role == "admin" }
`

// plannedTable is a table on which plannedRules are seeded.
func plannedTable(t *testing.T) *dynamosim.Sim {
	t.Helper()
	sim := dynamosim.New(dynamosim.Options{})
	in := &dynamodb.CreateTableInput{TableName: new("app"), BillingMode: types.BillingModePayPerRequest}
	for name, role := range map[string]types.KeyType{"pk": types.KeyTypeHash, "sk": types.KeyTypeRange} {
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: new(name),
			AttributeType: types.ScalarAttributeTypeS})
		in.KeySchema = append(in.KeySchema, types.KeySchemaElement{AttributeName: new(name), KeyType: role})
	}
	if in.KeySchema[0].KeyType != types.KeyTypeHash {
		in.KeySchema[0], in.KeySchema[1] = in.KeySchema[1], in.KeySchema[0]
	}
	if _, err := sim.CreateTable(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	return sim
}

func planned(t *testing.T, sim *dynamosim.Sim, text string) *Plan {
	t.Helper()
	found, err := projections.Compare(t.Context(), sim, "app-dynamill", loaded(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return NewPlan(found, loaded(t, text), 12345, 3<<20+1<<19)
}

func TestAPlanSaysWhatARuleFileWouldChange(t *testing.T) {
	sim := plannedTable(t)
	if p := planned(t, sim, plannedRules); p.Epoch != 0 || !p.Replay || p.Rules[0].What != "added" {
		t.Errorf("before anything ran: %+v", p)
	}
	engine, err := projections.Open(t.Context(), projections.Config{Client: sim, Table: "app", Rules: loaded(t, plannedRules)})
	if err != nil {
		t.Fatal(err)
	}
	if p := planned(t, sim, plannedRules); !strings.Contains(p.Text(), "unchanged  member-list\n             is still being seeded") ||
		!p.Replay {
		t.Errorf("while the rules are seeded:\n%s", p.Text())
	}
	if err := engine.Seed(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if p := planned(t, sim, plannedRules); p.Summary != "nothing to do" || p.Replay {
		t.Errorf("the same rules:\n%s", p.Text())
	}
	next := strings.NewReplacer(
		"attributes: [role, joinedAt]", "attributes: [role]",
		"admin-count:", "admins:",
		`role != "banned"`, `role == "member"`,
		"  member-name:  { copy: [name as userName, avatar], from: User, to: Member }\n",
		"  group-name: { copy: name as groupName, from: Group, to: Membership }\n",
	).Replace(plannedRules)
	want := `changed    member-list
             attributes: ` + "`joinedAt, role` becomes `role`" + `
             rewrites the Member items in place, and deletes those that it does not ask for any more, with all that is on them; their number is known only once they are read
             takes joinedAt off them
             needs replay: writes Member items for Membership, when the pass reaches them
added      group-name
             needs replay: writes groupName on every Membership, when the pass reaches it
changed    member-count
             where: ` + "`role != \"banned\"` becomes `role == \"member\"`" + `
             overwrites memberCount on every Group
             needs replay: reads every Membership, then shows memberCount on every Group; the present values stay until then
renamed    admins, which was admin-count
             means what it meant: nothing moves
removed    member-name
             takes userName, avatar off every Member that still has it from the former rule; their number is known only once they are read
4 rules to be carried out by ` + "`dynamill replay`" + `, which reads all items of the table (about 12,345 items, 3.5 MB)
`
	if diff := cmp.Diff(want, planned(t, sim, next).Text()); diff != "" {
		t.Error(diff)
	}
	changing, err := projections.OpenChanging(t.Context(), projections.Config{Client: sim, Table: "app", Rules: loaded(t, next)},
		projections.AnyEpoch)
	if err != nil {
		t.Fatal(err)
	}
	if p := planned(t, sim, next); !strings.Contains(p.Text(), "retiring   member-name\n             was changed or removed before") {
		t.Errorf("while the former rules retire:\n%s", p.Text())
	}
	if err := changing.Seed(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if p := planned(t, sim, next); p.Summary != "nothing to do" {
		t.Errorf("after the change:\n%s", p.Text())
	}
	spread := strings.Replace(next, `role == "member" }`, `role == "member", write_shards: 4 }`, 1)
	if p := planned(t, sim, spread); p.Replay || !strings.Contains(p.Text(), "write_shards: 4 instead of 1: nothing moves") {
		t.Errorf("more write shards:\n%s", p.Text())
	}
}

// A rule file with placeholders that an earlier version registered can be replaced.
func TestFormerRulesWithPlaceholdersCanBeReplaced(t *testing.T) {
	const right = `version: 1
table: { keys: [pk, sk] }
entities:
  User: { key: { pk: "USER#${userId}", sk: "PROFILE" } }
  Post: { key: { pk: "USER#${userId}", sk: "POST#${postId}" } }
rules:
  posts: { count: Post, as: User.posts }
`
	sim := plannedTable(t)
	registered := strings.Replace(right, `"POST#${postId}"`, `'POST#\<postId>'`, 1)
	if _, err := projections.Open(t.Context(), projections.Config{Client: sim, Table: "app", Rules: loaded(t, registered)}); err != nil {
		t.Fatal(err)
	}
	former := strings.ReplaceAll(registered, `\`, "")
	if n := replaceText(t, sim, registered, former); n != 1 {
		t.Fatalf("%d rows of the state table have the rule file", n)
	}
	p := planned(t, sim, right)
	if len(p.Rules) != 1 || p.Rules[0].What != string(projections.RuleChanged) || len(p.Rules[0].Differences) != 1 {
		t.Fatalf("the plan is %+v", p.Rules)
	}
	_, err := projections.OpenChanging(t.Context(), projections.Config{Client: sim, Table: "app", Rules: loaded(t, right)},
		projections.AnyEpoch)
	if err != nil {
		t.Errorf("replacing the rules: %v", err)
	}
}

// replaceText replaces a text attribute in the state table, and says how often.
func replaceText(t *testing.T, sim *dynamosim.Sim, before, after string) (n int) {
	t.Helper()
	table := "app" + following.StateSuffix
	page, err := sim.Scan(t.Context(), &dynamodb.ScanInput{TableName: &table})
	if err != nil {
		t.Fatal(err)
	}
	for _, raw := range page.Items {
		row := attributes.ItemFromTable(raw)
		if row.Lookup("text").Text() != before {
			continue
		}
		n++
		raw["text"] = &types.AttributeValueMemberS{Value: after}
		if _, err := sim.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(table), Item: raw}); err != nil {
			t.Fatal(fmt.Errorf("writing the row: %w", err))
		}
	}
	return n
}
