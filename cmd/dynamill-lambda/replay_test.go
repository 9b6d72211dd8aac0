package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/infra"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/dynamosim"
	"github.com/dynamill/dynamill/internal/lambdatest"
	"github.com/dynamill/dynamill/internal/oracle"
	"github.com/dynamill/dynamill/rules"
)

const clubEntities = `version: 1
table: { keys: [pk, sk] }
entities:
  User:       { key: { pk: "USER#${userId}",   sk: "PROFILE" } }
  Group:      { key: { pk: "GROUP#${groupId}", sk: "METADATA" } }
  Membership: { key: { pk: "USER#${userId}",   sk: "GROUP#${groupId}" } }
  Member:     { key: { pk: "GROUP#${groupId}", sk: "USER#${userId}" } }
rules:
  group-name: { copy: name as groupName, from: Group, to: Membership }
`

const clubRules = clubEntities + `  member-list:  { mirror: Membership, as: Member, attributes: [role] }
  member-name:  { copy: name as userName,  from: User,  to: Member }
  member-count: { count: Membership, as: Group.memberCount, where: role != "banned", write_shards: 4 }
`

// Another name for what is counted, other members counted, no list.
const otherClubRules = clubEntities + `  member-count: { count: Membership, as: Group.members, where: role == "owner" }
`

// club is a table with many items, that dynamill has never seen, and a state machine that replays it.
type club struct {
	*police // for its helpers; it watches nothing
	*fleet
	machine *lambdatest.Machine
	items   int
}

func newClub(t *testing.T, rules string, memberships int, seed uint64, concurrency int) *club {
	t.Helper()
	definition, err := infra.Definition(infra.Options{Table: "app", ReplayConcurrency: concurrency})
	if err != nil {
		t.Fatal(err)
	}
	p := newPolice(t)
	c := &club{police: p, fleet: newFleet(t, p.sim, rules, seed), items: memberships}
	c.machine = &lambdatest.Machine{Definition: definition, Invoke: c.invoke}
	p.createTable("app", "pk", "sk")
	for i := range memberships / 20 {
		c.write("USER#"+fmt.Sprint(i), "PROFILE", "name", fmt.Sprintf("user %d", i))
		c.write("GROUP#"+fmt.Sprint(i), "METADATA", "name", fmt.Sprintf("group %d", i))
	}
	for i := range memberships {
		role := []string{"member", "owner", "banned"}[i%7%3]
		c.write(fmt.Sprintf("USER#%d", i/20), fmt.Sprintf("GROUP#%d", i%(memberships/20)), "role", role)
	}
	return c
}

func (c *club) write(pk, sk, name, value string) {
	c.police.Helper()
	item := keyOf(pk, sk)
	item[name] = &ddb.AttributeValueMemberS{Value: value}
	if _, err := c.police.sim.PutItem(c.police.Context(), &dynamodb.PutItemInput{TableName: aws.String("app"), Item: item}); err != nil {
		c.police.Fatal(err)
	}
}

// table reads all of a table.
func (c *club) table(name string) (items []change.Item) {
	c.police.Helper()
	in := &dynamodb.ScanInput{TableName: &name, ConsistentRead: aws.Bool(true)}
	for {
		out, err := c.police.sim.Scan(c.police.Context(), in)
		if err != nil {
			c.police.Fatal(err)
		}
		for _, item := range out.Items {
			items = append(items, attributes.ItemFromTable(item))
		}
		if in.ExclusiveStartKey = out.LastEvaluatedKey; in.ExclusiveStartKey == nil {
			return items
		}
	}
}

func (c *club) execute(input string) error {
	_, err := c.machine.Execute(c.police.Context(), []byte(input))
	return err
}

// holds compares with a computation from scratch.
func (c *club) holds(text string) {
	c.police.Helper()
	set, err := rules.Load("dynamill.yaml", []byte(text))
	if err != nil {
		c.police.Fatal(err)
	}
	const shown = 5
	for i, d := range oracle.Drift(set, c.table("app")) {
		if i == shown {
			c.police.Fatal("and others")
		}
		c.police.Errorf("drift: %v", d)
	}
}

func TestAStateMachineReplaysUnderTrouble(t *testing.T) {
	for _, seed := range []uint64{1, 2, 3} {
		synctest.Test(t, func(t *testing.T) {
			c := newClub(t, clubRules, 2000, seed, 4)
			c.trouble, c.limit = 0.12, 20*time.Second
			if err := c.execute(`{"segments":6}`); err != nil {
				t.Fatal(err)
			}
			c.holds(clubRules)
			for _, fate := range []string{"throttled", "killed", "short of time", "answer lost"} {
				if c.fates[fate] == 0 {
					t.Errorf("no invocation was %s in %d", fate, c.invocations)
				}
			}
			if most := c.machine.MostAtOnce(); most != 4 {
				t.Errorf("%d pieces were worked off at once, want 4", most)
			}

			// Changed rules are refused, and then carried out by who agrees to it.
			c.settings.rules, c.idle = otherClubRules, nil
			var failed *lambdatest.ExecutionError
			if err := c.execute(`{"segments":6}`); !errors.As(err, &failed) || !strings.Contains(failed.Cause, "member-list") {
				t.Errorf("changed rules without change_rules: %v", err)
			}
			if err := c.execute(`{"segments":6,"change_rules":true}`); err != nil {
				t.Fatal(err)
			}
			c.holds(otherClubRules)
			for _, item := range c.table("app") {
				if item.Lookup("memberCount").Kind() != change.KindAbsent || item.Lookup("userName").Kind() != change.KindAbsent {
					t.Fatalf("%v still has what a former rule derived", item)
				}
			}
		})
	}
}

func TestAStateMachineMendsWhatWasTamperedWith(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClub(t, clubRules, 600, 1, 8)
		if err := c.execute(`{}`); err != nil {
			t.Fatal(err)
		}
		writes := c.police.sim.Usage().WriteUnits
		for i := range 30 { // the application overwrites groups and memberships, and nobody sees the records
			c.write("GROUP#"+fmt.Sprint(i), "METADATA", "name", "renamed")
			c.write(fmt.Sprintf("USER#%d", i), fmt.Sprintf("GROUP#%d", (i*20)%30), "role", "banned")
		}
		if err := c.execute(`{"segments":8}`); err != nil {
			t.Fatal(err)
		}
		c.holds(clubRules)
		_ = writes
	})
}

// A piece that always fails does not keep the others from being done, and when it
// is mended, the next execution works off nothing but it.
func TestAPieceThatFailsIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClub(t, clubRules, 400, 1, 4)
		broken := true
		c.refuse = func(op string, input any) error {
			if scan, ok := input.(*dynamodb.ScanInput); ok && broken && aws.ToInt32(scan.Segment) == 2 && aws.ToInt32(scan.TotalSegments) == 5 {
				return &ddb.ResourceNotFoundException{Message: aws.String("broken")}
			}
			return nil
		}
		var failed *lambdatest.ExecutionError
		if err := c.execute(`{"segments":5}`); !errors.As(err, &failed) || failed.Name != "ReplayStuckError" || !strings.Contains(failed.Cause, "segment 3 of 5") {
			t.Fatalf("the execution ended with %v", err)
		}
		if strings.Contains(c.tableText(), `"groupName"`) && c.machine.Entered("Pieces") != 2 {
			t.Errorf("pieces were given out %d times, want 2", c.machine.Entered("Pieces"))
		}
		broken = false
		if err := c.execute(`{"segments":5}`); err != nil {
			t.Fatal(err)
		}
		c.holds(clubRules)
	})
}

func (c *club) tableText() string { return fmt.Sprint(c.table("app")) }

// More pieces than a state can name are given out in turns.
func TestThousandsOfPiecesFitIntoAState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClub(t, groupRules, 40, 1, 200)
		if err := c.execute(`{"segments":7000}`); err != nil {
			t.Fatal(err)
		}
		c.holds(groupRules)
		if n := c.machine.Entered("Pieces"); n != 4 {
			t.Errorf("pieces of two passes were given out %d times, want 4", n)
		}
	})
}

func TestWhatCannotBeReplayedIsRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClub(t, groupRules, 40, 1, 4)
		for input, want := range map[string]string{
			`{"rules":["none"]}`:                             `there is no rule "none"`,
			`{"rules":["member-count"]}`:                     "not in force yet",
			`{"sauce":"scan"}`:                               `unknown field "sauce"`,
			`{"source":"here"}`:                              "neither scan nor",
			`{"source":"s3://b/p","segments":3}`:             "segments have no meaning",
			`{"source":"s3://b/p","change_rules":true}`:      "rules are changed by a scan",
			`{"rules":["member-count"],"change_rules":true}`: "rules are changed by a scan",
			`{"segments":-1}`:                                "-1 segments",
		} {
			before := c.invocations
			var failed *lambdatest.ExecutionError
			if err := c.execute(input); !errors.As(err, &failed) || failed.Name != "PayloadError" || !strings.Contains(failed.Cause, want) {
				t.Errorf("%s: %v, want a PayloadError about %s", input, err, want)
			}
			if n := c.invocations - before; n != 1 {
				t.Errorf("%s: %d invocations, want one", input, n)
			}
		}
	})
}

var _ = dynamosim.Options{}
