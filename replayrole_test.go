package dynamill

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/handlers"
	"github.com/dynamill/dynamill/internal/infra"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/rules"
)

// The function that replays does all of a replay with what its role allows: it brings
// rules into force, carries out what changed of them, mends and sweeps.
func TestTheRoleOfAReplaySuffices(t *testing.T) {
	used := map[string]bool{}
	withRoles := strings.NewReplacer("\nrules:\n",
		"\n  Role: { key: { pk: \"ROLE#${role}\", sk: INFO }, derived: true }\nrules:\n  roles: { count: Membership, as: Role.members, by: role }\n")
	for i, text := range []string{withRoles.Replace(clubRules), withRoles.Replace(otherClubRules)} {
		set, err := rules.Load("dynamill.yaml", []byte(text), projections.Kinds)
		if err != nil {
			t.Fatal(err)
		}
		template, err := infra.Generate(infra.CloudFormation, set, infra.Options{Table: "app", Replay: true})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Test(t, func(t *testing.T) {
			c := newClub(t, []string{clubRules, otherClubRules}[1-i], 40, 1, 4)
			c.createTable("app-dynamill", "pk", "sk")
			_, err = c.police.sim.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{TableName: aws.String("app-dynamill"),
				TimeToLiveSpecification: &ddb.TimeToLiveSpecification{AttributeName: aws.String("ttl"), Enabled: aws.Bool(true)}})
			if err != nil {
				t.Fatal(err)
			}
			if err := c.execute(`{}`); err != nil { // as the worker with the other rules
				t.Fatal(err)
			}
			c.fleet.rules, c.idle = text, nil
			c.allowReplay(string(template))
			for _, input := range []string{`{"changeRules":true}`, `{}`, `{"rules":["member-count"]}`} {
				c.watch(true)
				err := c.execute(input)
				c.watch(false)
				if err != nil {
					t.Fatalf("%s: %v (last denied: %q)", input, err, c.denied)
				}
				c.holds(text)
				for user := range 2 {
					if _, err := c.police.sim.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String("app"),
						Key: keyOf("USER#"+strconv.Itoa(user), "GROUP#0")}); err != nil {
						t.Fatal(err)
					}
				}
				c.write("GROUP#1", "METADATA", "name", "renamed")
			}
			maps.Copy(used, c.used)
		})
	}
	for _, action := range []string{"app Scan", "app PutItem", "app-dynamill Scan"} {
		if !used[action] {
			t.Errorf("nothing here needs %s", action)
		}
	}
}

// What former rules wrote is taken back by the stream's function, too, with what the
// template allows that was told of them: here a mirror item that is written again
// while a replay cleans up after the rule that made it.
func TestRoleAllowsRemovalOfFormerRulesAttributes(t *testing.T) {
	former, err := rules.Load("former.yaml", []byte(clubRules), projections.Kinds)
	if err != nil {
		t.Fatal(err)
	}
	set, err := rules.Load("dynamill.yaml", []byte(otherClubRules), projections.Kinds)
	if err != nil {
		t.Fatal(err)
	}
	for _, told := range []*rules.Set{nil, former} {
		synctest.Test(t, func(t *testing.T) {
			c := newClub(t, clubRules, 40, 1, 4)
			if err := c.execute(`{}`); err != nil {
				t.Fatal(err)
			}
			c.fleet.rules, c.idle = otherClubRules, nil
			c.replayUntil("clean/")
			template, err := infra.Generate(infra.CloudFormation, set, infra.Options{Table: "app", Former: told})
			if err != nil {
				t.Fatal(err)
			}
			c.allow(string(template))
			engine, err := projections.Open(t.Context(), projections.Config{Client: c.police.sim, Table: "app", Rules: set})
			if err != nil {
				t.Fatal(err)
			}
			at, err := change.NewPosition("2026-01-01T00:00:00.000", "1")
			if err != nil {
				t.Fatal(err)
			}
			members := c.table("app")
			member := members[slices.IndexFunc(members, func(i change.Item) bool { return strings.HasPrefix(i["sk"].Text(), "USER#") })]
			key := change.Key{Partition: member["pk"].Text(), Sort: member["sk"].Text()}
			c.watch(true)
			_, err = engine.Process(t.Context(), []change.Record{{Key: key, Position: at, Old: member, New: member}})
			c.watch(false)
			if (err == nil) != (told != nil) || told == nil && c.denied != "app DeleteItem" {
				t.Errorf("told of the former rules %v: %v (last denied: %q)", told != nil, err, c.denied)
			}
		})
	}
}

// replayUntil replays with changed rules, until the next pass is one whose name begins so.
func (c *club) replayUntil(pass string) {
	c.police.Helper()
	payload := `{"dynamill":"replay","begin":{"changeRules":true}}`
	for {
		var step handlers.ReplayStep
		c.answer(payload, &step)
		if strings.Contains(string(step.Step), `"pass":"`+pass) {
			return
		}
		if step.Finished {
			c.police.Fatalf("there was no pass %s", pass)
		}
		for _, piece := range step.Pieces {
			var worked handlers.ReplayPiece
			if c.answer(fmt.Sprintf(`{"dynamill":"replay","work":%s,"piece":%q}`, step.Step, piece), &worked); !worked.Done {
				c.police.Fatalf("%s is not done", piece)
			}
		}
		payload = fmt.Sprintf(`{"dynamill":"replay","next":%s}`, step.Step)
	}
}

func (c *club) answer(payload string, into any) {
	c.police.Helper()
	answer, err := c.invoke(c.police.Context(), []byte(payload))
	if err == nil {
		err = json.Unmarshal(answer, into)
	}
	if err != nil {
		c.police.Fatal(err)
	}
}
