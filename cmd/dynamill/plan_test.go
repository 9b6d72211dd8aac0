package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/preview"
	"github.com/dynamill/dynamill/internal/following"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/proof/oracle"
	"github.com/dynamill/dynamill/internal/rules"
)

func loaded(t *testing.T, text string) *rules.Set {
	t.Helper()
	set, err := rules.Load("dynamill.yaml", []byte(text), projections.Kinds)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestAPlanOfATable(t *testing.T) {
	t.Parallel()
	w := newWorld(t, types.StreamViewTypeNewAndOldImages)
	w.put(community()...)
	w.drain()
	next := strings.NewReplacer(`role != "banned"`, `role == "admin"`,
		"  member-list:    { mirror: Membership, as: Member, attributes: [role, joinedAt] }\n", "").Replace(communityRules)
	w.must(os.WriteFile(w.rules, []byte(next), 0o600))
	code, stdout, stderr := w.call("plan")
	if code != ending.ExitDone || !strings.Contains(stdout, "changed    member-count") ||
		!strings.Contains(stdout, "2 rules to be carried out") || !strings.Contains(stdout, "removed    member-list") {
		t.Errorf("exit code %d, %s%s", code, stdout, stderr)
	}
	code, stdout, stderr = w.call("plan", "--json")
	var p preview.Plan
	if err := json.Unmarshal([]byte(stdout), &p); code != ending.ExitDone || err != nil || !p.Replay || p.Table != w.table {
		t.Errorf("exit code %d, %v: %s%s", code, err, stdout, stderr)
	}
	engine, err := projections.OpenChanging(t.Context(), projections.Config{Client: w.client, Table: w.table, Rules: loaded(t, next)},
		projections.AnyEpoch)
	w.must(err)
	w.must(engine.Seed(t.Context(), nil))
	if _, stdout, _ = w.call("plan"); !strings.HasSuffix(stdout, "nothing to do\n") {
		t.Errorf("after the change: %s", stdout)
	}
	w.drain()
	for key, item := range w.items() {
		for name := range item {
			if name == "_dm_"+oracle.RuleID("member-list") || name == "_dm_"+oracle.RuleID("member-count") ||
				strings.HasPrefix(key, "GROUP#") && strings.Contains(key, "USER#") {
				t.Errorf("%s still has %s", key, name)
			}
		}
	}
}

func TestAPlanOfAFreshTableSaysWhatSeedingCosts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, types.StreamViewTypeNewAndOldImages)
	w.put(community()...)
	code, stdout, stderr := w.call("plan")
	for _, want := range []string{"nothing has run on this table yet",
		"creates " + w.table + following.StateSuffix + " and " + w.leaseTableName(),
		fmt.Sprintf("it reads %d items", len(community())), "write units", "added"} {
		if code != ending.ExitDone || !strings.Contains(stdout, want) {
			t.Errorf("exit code %d, lacks %q:\n%s%s", code, want, stdout, stderr)
		}
	}
	var p preview.Plan
	_, stdout, _ = w.call("plan", "--json")
	w.must(json.Unmarshal([]byte(stdout), &p))
	if p.Seed == nil || p.Seed.Sampled != int64(len(community())) || p.Seed.WriteUnits == 0 || !p.Replay {
		t.Errorf("as JSON: %s", stdout)
	}
	if w.exists(w.table+following.StateSuffix) || w.exists(w.leaseTableName()) {
		t.Error("plan made a table")
	}
	w.drain()
	if _, stdout, _ = w.call("plan"); !strings.HasSuffix(stdout, "nothing to do\n") {
		t.Errorf("after the rules are seeded: %s", stdout)
	}
}
