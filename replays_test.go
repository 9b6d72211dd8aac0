package dynamill

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/handlers"
	"github.com/dynamill/dynamill/internal/infra"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/proof/oracle"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/internal/sim/lambdatest"
	"github.com/dynamill/dynamill/internal/sim/worldsize"
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
}

func newClub(t *testing.T, rules string, memberships int, seed uint64, concurrency int) *club {
	t.Helper()
	definition, err := infra.Definition(infra.Options{Table: "app", ReplayConcurrency: concurrency})
	if err != nil {
		t.Fatal(err)
	}
	p := newPolice(t)
	c := &club{police: p, fleet: newFleet(t, p.sim, rules, seed)}
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

// drift is what differs from a computation from scratch.
func (c *club) drift(text string) []oracle.Difference {
	c.police.Helper()
	set, err := rules.Load("dynamill.yaml", []byte(text), projections.Kinds)
	if err != nil {
		c.police.Fatal(err)
	}
	return oracle.Drift(set, c.table("app"))
}

func (c *club) holds(text string) {
	c.police.Helper()
	const shown = 5
	for i, d := range c.drift(text) {
		if i == shown {
			c.police.Fatal("and others")
		}
		c.police.Errorf("drift: %v", d)
	}
}

func TestAStateMachineReplaysUnderTrouble(t *testing.T) {
	for seed := range worldsize.Of(2, 1) {
		synctest.Test(t, func(t *testing.T) {
			c := newClub(t, clubRules, 2000, uint64(1+seed), 4)
			c.trouble, c.limit = true, 20*time.Second
			if err := c.execute(`{"segments":3}`); err != nil {
				t.Fatal(err)
			}
			c.holds(clubRules)
			// Changed rules are refused, and then carried out by a caller that agrees to it.
			c.fleet.rules, c.idle = otherClubRules, nil
			var failed *lambdatest.ExecutionError
			if err := c.execute(`{"segments":6}`); !errors.As(err, &failed) || !strings.Contains(failed.Cause, "member-list") {
				t.Errorf("changed rules without changeRules: %v", err)
			}
			if err := c.execute(`{"segments":20,"changeRules":true}`); err != nil {
				t.Fatal(err)
			}
			for _, fate := range []string{"throttled", "killed", "short of time", "answer lost"} {
				if c.fates[fate] == 0 {
					t.Errorf("no invocation was %s in %d", fate, c.invocations)
				}
			}
			if most := c.machine.MostAtOnce(); most != 4 {
				t.Errorf("%d pieces were worked off at once, want 4", most)
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

func TestStateMachineMendsTamperedItems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClub(t, clubRules, 600, 1, 8)
		if err := c.execute(`{}`); err != nil {
			t.Fatal(err)
		}
		for i := range 30 { // the application writes, and the records go unread
			c.write("GROUP#"+fmt.Sprint(i), "METADATA", "name", "renamed")
			c.write(fmt.Sprintf("USER#%d", i), fmt.Sprintf("GROUP#%d", (i*20)%30), "role", "banned")
		}
		if len(c.drift(clubRules)) == 0 {
			t.Error("nothing is wrong that could be mended")
		}
		if err := c.execute(`{"segments":8}`); err != nil {
			t.Fatal(err)
		}
		c.holds(clubRules)
	})
}

// A piece that always fails does not keep the others from being done, and when it
// is mended, the next execution works off nothing else of the pass.
func TestAPieceThatFailsIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClub(t, clubRules, 400, 1, 4)
		broken, scanned := true, map[int32]int{}
		c.refuse = func(op string, input any) error {
			scan, ok := input.(*dynamodb.ScanInput)
			if !ok {
				return nil
			}
			c.fleet.mu.Lock()
			defer c.fleet.mu.Unlock()
			if segment := aws.ToInt32(scan.Segment); broken && segment == 2 {
				return &ddb.ResourceNotFoundException{Message: aws.String("broken")}
			} else if broken && scan.ExclusiveStartKey == nil {
				scanned[segment]++
			}
			return nil
		}
		var failed *lambdatest.ExecutionError
		if err := c.execute(`{"segments":5}`); !errors.As(err, &failed) || failed.Name != "ReplayStuckError" ||
			!strings.Contains(failed.Cause,
				"1 pieces of the scan of app, 5 segments are left, and those that were tried failed again and again: segment 3 of 5;") {
			t.Fatalf("the execution ended with %v", err)
		}
		if n := c.machine.Entered("Pieces"); n != 2 || !maps.Equal(scanned, map[int32]int{0: 1, 1: 1, 3: 1, 4: 1}) {
			t.Errorf("pieces were given out %d times, want 2; the segments were scanned %v times, want once", n, scanned)
		}
		broken = false
		before := c.invocations
		if err := c.execute(`{"segments":5}`); err != nil {
			t.Fatal(err)
		}
		c.holds(clubRules)
		// Of the first pass one piece, of the others five each; and each step is asked for.
		if passes := c.machine.Entered("Pieces"); c.invocations-before != 1+1+passes+5*(passes-1) {
			t.Errorf("%d invocations for %d passes", c.invocations-before, passes)
		}
	})
}

// Pieces that fail leave nothing that their number could make too large for a state.
func TestHundredsOfPiecesMayFail(t *testing.T) {
	segments := worldsize.Of(600, 100)
	synctest.Test(t, func(t *testing.T) {
		c := newClub(t, clubRules, 40, 1, 200)
		c.refuse = func(op string, _ any) error {
			if op == "Scan" {
				return &ddb.ResourceNotFoundException{Message: aws.String("broken")}
			}
			return nil
		}
		var failed *lambdatest.ExecutionError
		if err := c.execute(fmt.Sprintf(`{"segments":%d}`, segments)); !errors.As(err, &failed) || failed.Name != "ReplayStuckError" ||
			!strings.HasPrefix(failed.Cause, fmt.Sprint(segments, " pieces")) {
			t.Errorf("the execution ended with %v", err)
		}
	})
}

// An operator who agrees to a change of the rules agrees to what becomes of those that are in
// force then, and not of others that come into force meanwhile: also not with a retry.
func TestRulesAreChangedOnlyFromThoseThatWereInForce(t *testing.T) {
	third := strings.ReplaceAll(clubRules, "memberCount", "size")
	synctest.Test(t, func(t *testing.T) {
		c := newClub(t, clubRules, 40, 1, 4)
		if err := c.execute(`{}`); err != nil {
			t.Fatal(err)
		}
		c.fleet.rules, c.idle = otherClubRules, nil
		overtaken := false
		c.refuse = func(op string, _ any) error {
			if op == "TransactWriteItems" && !overtaken { // the one that would register the rules
				overtaken = true
				c.change(third)
			}
			return nil
		}
		before := c.invocations
		var failed *lambdatest.ExecutionError
		if err := c.execute(`{"changeRules":true}`); !errors.As(err, &failed) || failed.Name != "RulesChangedError" ||
			!strings.Contains(failed.Cause, "member-count") {
			t.Errorf("the execution ended with %v", err)
		}
		if n := c.invocations - before; n != 1 || !overtaken {
			t.Errorf("%d invocations (overtaken: %v), want one", n, overtaken)
		}
		c.attach(third) // are still in force
	})
}

// An environment that is started for a replay agrees once, not again when the replay begins.
func TestAgreementToChangedRulesCountsOnce(t *testing.T) {
	third := strings.ReplaceAll(clubRules, "memberCount", "size")
	for calls := 1; ; calls++ { // after its rules were registered
		overtaken := false
		synctest.Test(t, func(t *testing.T) {
			c := newClub(t, clubRules, 40, 1, 4)
			if err := c.execute(`{}`); err != nil {
				t.Fatal(err)
			}
			c.fleet.rules, c.idle = otherClubRules, nil
			registered, after := false, 0
			var mu sync.Mutex
			c.refuse = func(op string, _ any) error {
				mu.Lock() // an engine that opens makes calls side by side
				now := false
				if registered && !overtaken {
					after++
					now = after == calls
				}
				overtaken = overtaken || now
				registered = registered || op == "TransactWriteItems"
				mu.Unlock()
				if now {
					c.change(third)
				}
				return nil
			}
			_, err := c.invoke(t.Context(), []byte(`{"dynamill":"replay","begin":{"changeRules":true}}`))
			if overtaken {
				c.attach(third) // are still in force
			} else if err != nil {
				t.Error(err)
			}
		})
		if !overtaken || t.Failed() {
			if calls < 5 {
				t.Errorf("after %d calls everything was done", calls)
			}
			return
		}
	}
}

// What was replayed before records were lost has to be replayed again.
func TestAnUnfinishedReplayIsGoneOnWithOrBegunAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClub(t, clubRules, 40, 1, 4)
		if err := c.execute(`{}`); err != nil {
			t.Fatal(err)
		}
		ask := func(payload string, answer any) {
			t.Helper()
			text, err := c.invoke(t.Context(), []byte(payload))
			if err == nil {
				err = json.Unmarshal(text, answer)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		var first, joined, anew handlers.ReplayStep
		ask(`{"dynamill":"replay","begin":{"segments":3}}`, &first)
		ask(fmt.Sprintf(`{"dynamill":"replay","work":%s,"piece":%q}`, first.Step, first.Pieces[0]), &handlers.ReplayPiece{})
		ask(`{"dynamill":"replay","begin":{"segments":3}}`, &joined)
		ask(`{"dynamill":"replay","begin":{"segments":3,"restart":true}}`, &anew)
		if len(first.Pieces) != 3 || !slices.Equal(joined.Pieces, first.Pieces[1:]) || !slices.Equal(anew.Pieces, first.Pieces) {
			t.Errorf("pieces %q, then %q, anew %q", first.Pieces, joined.Pieces, anew.Pieces)
		}
		if err := c.execute(`{"segments":3,"restart":true}`); err != nil {
			t.Error(err)
		}
		c.holds(clubRules)
	})
}

// change brings rules into force beside the fleet.
func (c *club) change(text string) {
	c.police.Helper()
	if _, err := projections.OpenChanging(c.police.Context(), c.engineConfig(text), projections.AnyEpoch); err != nil {
		c.police.Error(err)
	}
}

// attach opens an engine beside the fleet under rules that are in force.
func (c *club) attach(text string) {
	c.police.Helper()
	if _, err := projections.OpenAttached(c.police.Context(), c.engineConfig(text)); err != nil {
		c.police.Error(err)
	}
}

func (c *club) engineConfig(text string) projections.Config {
	c.police.Helper()
	set, err := rules.Load("dynamill.yaml", []byte(text), projections.Kinds)
	if err != nil {
		c.police.Fatal(err)
	}
	return projections.Config{Client: c.police.sim, Table: "app", Rules: set}
}

// More pieces than a state can name are given out in turns.
func TestThousandsOfPiecesFitIntoAState(t *testing.T) {
	const segments, stateMax = 100_000, 256 << 10
	synctest.Test(t, func(t *testing.T) {
		c := newClub(t, groupRules, 40, 1, 1)
		answer, err := c.invoke(t.Context(), fmt.Appendf(nil, `{"dynamill":"replay","begin":{"segments":%d}}`, segments))
		if err != nil {
			t.Fatal(err)
		}
		var step handlers.ReplayStep
		if err := json.Unmarshal(answer, &step); err != nil {
			t.Fatal(err)
		}
		if n := len(step.Pieces); len(answer) > stateMax*3/4 || n < 1000 || n >= segments || len(step.Step) > 1000 {
			t.Errorf("a step of %d bytes names %d of %d pieces, in an answer of %d bytes", len(step.Step), n, segments, len(answer))
		}
	})
}

func TestUselessReplayIsRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClub(t, groupRules, 40, 1, 4)
		for input, want := range map[string]string{
			`{"rules":["none"]}`:                            `there is no rule "none"`,
			`{"rules":["member-count"]}`:                    "not in force yet",
			`{"sauce":"scan"}`:                              `unknown field "sauce"`,
			`{"source":"here"}`:                             "neither scan nor",
			`{"source":"s3://b/p","segments":3}`:            "segments have no meaning",
			`{"source":"s3://b/p","changeRules":true}`:      "rules are changed by a scan",
			`{"rules":["member-count"],"changeRules":true}`: "rules are changed by a scan",
			`{"segments":-1}`:                               "-1 segments",
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
