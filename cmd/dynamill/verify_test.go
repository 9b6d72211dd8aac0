package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/followed"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/verifying"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/proof/oracle"
	"github.com/dynamill/dynamill/internal/replay/verify"
)

// verifies runs `verify` and returns its differences and summary.
func (w *world) verifies(wantCode int, flags ...string) ([]verifying.Finding, verifying.Summary) {
	w.t.Helper()
	code, stdout, stderr := w.call(append([]string{"verify", "--json", "--settle", "1s", "--wait", "3s", "--temp-dir", w.t.TempDir()},
		flags...)...)
	if code != wantCode {
		w.t.Fatalf("verify %v ended with exit code %d, want %d:\n%s\n%s", flags, code, wantCode, stdout, stderr)
	}
	var found []verifying.Finding
	var summary verifying.Summary
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	for _, line := range lines[:len(lines)-1] {
		var f verifying.Finding
		w.must(json.Unmarshal([]byte(line), &f))
		found = append(found, f)
	}
	w.must(json.Unmarshal([]byte(lines[len(lines)-1]), &summary))
	return found, summary
}

func (w *world) forget(table, pk, sk string) {
	w.t.Helper()
	_, err := w.client.DeleteItem(w.t.Context(), &dynamodb.DeleteItemInput{TableName: &table, Key: keyOf(pk, sk)})
	w.must(err)
}

func TestDriftIsFoundAndMended(t *testing.T) {
	t.Parallel()
	w := newWorld(t, types.StreamViewTypeNewAndOldImages)
	if code, _, stderr := w.call("verify"); code != ending.ExitEnvironment {
		t.Errorf("verify before anything ran: exit code %d, %s", code, stderr)
	}
	w.put(community()...)
	w.drain()
	if _, summary := w.verifies(ending.ExitDone); summary.Unrepaired+summary.All > 0 || summary.Items == 0 || summary.ReadUnits == 0 {
		t.Errorf("nothing is wrong, but: %+v", summary)
	}

	// Not applied yet is no drift.
	w.set1("USER#456", "PROFILE", "name", "Janet")
	w.delete("USER#123", "GROUP#dev")
	found, summary := w.verifies(ending.ExitUndecided)
	if len(found) > 0 || summary.Outcome != verifying.OutcomeUndecided || len(summary.Examples) == 0 ||
		summary.Undecided["the stream holds records of it that are not applied yet"] == 0 {
		t.Errorf("what is only late: %+v, %+v", found, summary)
	}
	w.drain()
	w.verifies(ending.ExitDone)

	// Drift: in the state table, and in the table by records that count as applied.
	w.forget(w.table+"-dynamill", "i/USER#456%2FGROUP#ops", "e") // no such row
	w.forget(w.table+"-dynamill", "i/USER#456/GROUP#ops", "e")
	w.forget(w.table+"-dynamill", "ref/"+oracle.RuleID("comment-author")+"/USER#456/PROFILE", "POST#1/COMMENT#2025-01-02T10:00:00Z#c1")
	w.set1("GROUP#dev", "METADATA", "memberCount", "many")
	w.delete("GROUP#dev", "USER#456")
	w.set1("POST#1", "COMMENT#2025-01-02T11:00:00Z#c2", "userName", "Jim")
	found, _ = w.verifies(ending.ExitDrift, "--lag-max", "1ms")
	places := map[string]bool{}
	for _, f := range found {
		places[string(f.Kind)+" "+f.Item] = true
	}
	for _, want := range []string{
		"ledger entry USER#456/GROUP#ops", "reference POST#1/COMMENT#2025-01-02T10:00:00Z#c1", "displayed value GROUP#dev/METADATA",
		"mirror item GROUP#dev/USER#456", "copy POST#1/COMMENT#2025-01-02T11:00:00Z#c2",
	} {
		if !places[want] {
			t.Errorf("not found: %s", want)
		}
		delete(places, want)
	}
	delete(places, "reference GROUP#dev/USER#456") // goes with the mirror item
	if len(places) > 0 {
		t.Errorf("found, too: %v", places)
	}
	code, stdout, _ := w.call("verify", "--settle", "1s", "--lag-max", "1ms", "--limit", "1")
	if code != ending.ExitDrift || !strings.Contains(stdout, "RULE") || !strings.Contains(stdout, "more: --limit 0") ||
		!strings.Contains(stdout, "verify --repair") {
		t.Errorf("as a table, exit code %d:\n%s", code, stdout)
	}
	if found, _ := w.verifies(ending.ExitDrift, "--lag-max", "1ms", "--rule", "member-list"); len(found) != 2 ||
		found[0].Rule != "member-list" {
		t.Errorf("of one rule: %+v", found) // its mirror item and its ledger entry
	}

	if _, summary := w.verifies(ending.ExitDone, "--lag-max", "1ms", "--repair"); summary.Repaired == 0 || summary.Unrepaired > 0 {
		t.Errorf("repaired: %+v", summary)
	}
	w.verifies(ending.ExitDone, "--lag-max", "1ms")
	w.drain()
	w.verifies(ending.ExitDone)
	w.expectTrue()

	// Without a lease table, as beside a Lambda function, nothing is known to be applied.
	_, err := w.client.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: ptr(w.leaseTableName())})
	w.must(err)
	w.set1("POST#1", "COMMENT#2025-01-02T11:00:00Z#c2", "userName", "Jim")
	code, stdout, stderr := w.call("verify", "--settle", "1s")
	if code != ending.ExitUndecided || strings.Contains(stdout+stderr, "no drift") || !strings.Contains(stdout, "undecided: ") ||
		!strings.Contains(stdout, "1 not decided") || !strings.Contains(stdout, "--lag-max") {
		t.Errorf("without a lease table: exit code %d\n%s%s", code, stdout, stderr)
	}
}

// TestVerifyOfAnUnappliedStreamIsUndecided writes what changes derived data, and
// no process applies it: verify neither claims drift nor denies it.
func TestVerifyOfAnUnappliedStreamIsUndecided(t *testing.T) {
	t.Parallel()
	w := newWorld(t, types.StreamViewTypeNewAndOldImages)
	w.put(community()...)
	w.drain()
	begun := time.Now()
	if code, stdout, stderr := w.call("verify"); code != ending.ExitDone || !strings.Contains(stdout, "no drift\n") ||
		time.Since(begun) > verifying.SettleDefault {
		t.Errorf("everything is right: exit code %d after %s, want no wait\n%s%s", code, time.Since(begun), stdout, stderr)
	}
	if code, stdout, _ := w.call("verify", "--sample", "50%", "--rule", "member-list"); code != ending.ExitDone ||
		!strings.Contains(stdout, "no drift in the sample of 50% of member-list\n") {
		t.Errorf("a sample of one rule: exit code %d\n%s", code, stdout)
	}

	w.set1("USER#456", "PROFILE", "name", "Janet")
	w.delete("USER#123", "GROUP#dev")
	const wait = 5 * time.Second
	begun = time.Now()
	code, stdout, stderr := w.call("verify", "--settle", "1s", "--wait", wait.String())
	took := time.Since(begun)
	if code != ending.ExitUndecided || took < wait/2 || took > 2*wait {
		t.Errorf("exit code %d after %s, want %d within --wait %s", code, took, ending.ExitUndecided, wait)
	}
	for _, want := range []string{"waits up to 5s (--wait)", followed.NoFollower, "dynamill: undecided: ", verify.WhyRecords} {
		if !strings.Contains(stderr, want) {
			t.Errorf("standard error lacks %q:\n%s", want, stderr)
		}
	}
	if strings.Contains(stdout+stderr, "no drift") || strings.Contains(stdout, "difference") || !strings.Contains(stdout, "undecided: ") ||
		!strings.Contains(stdout, "member-name") {
		t.Errorf("drift is claimed or denied, or no example is named:\n%s%s", stdout, stderr)
	}
	if _, summary := w.verifies(ending.ExitUndecided, "--wait", "0s"); summary.All != 0 || len(summary.Open) != 2 ||
		!strings.Contains(summary.Open[0], "--settle") || summary.Open[1] != followed.NoFollower {
		t.Errorf("without a wait: %+v", summary)
	}
}

func TestVerifyRefusesWhatMakesNoSense(t *testing.T) {
	withoutAWS(t)
	for _, flags := range [][]string{
		{"--sample", "0%"}, {"--sample", "many"}, {"--sample", "101%"}, {"--memory", "12"}, {"--memory", "1MB"},
		{"--temp-dir", "/no/such/folder"},
		{"--segments", "0"}, {"--read-rate", "-1"}, {"--read-rate", "nan"}, {"--budget", "-1", "--repair"}, {"--budget", "5"}, {"--settle", "0s"},
		{"--wait", "-1s"}, {"--limit", "-1"},
	} {
		code, _, stderr := called(t, append([]string{"verify", "--rules", ruleFile(t), "--table", "app"}, flags...)...)
		if code != ending.ExitInvalid || !strings.Contains(stderr, flags[0]) {
			t.Errorf("%v: exit code %d, %s", flags, code, stderr)
		}
	}
	code, _, stderr := called(t, "verify", "--rules", ruleFile(t), "--table", "app", "--rule", "nobodys")
	if code != ending.ExitInvalid || !strings.Contains(stderr, `there is no rule "nobodys": the rules are `) {
		t.Errorf("a rule that there is not: exit code %d, %s", code, stderr)
	}
}

func TestVerifyLeavesNoTemporaryFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t, types.StreamViewTypeNewAndOldImages)
	w.put(community()...)
	w.drain()
	folder := t.TempDir()
	if code, _, stderr := w.call("verify", "--temp-dir", folder); code != ending.ExitDone {
		t.Fatalf("exit code %d, %s", code, stderr)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("left: %v (%v)", left, err)
	}
}

func TestARuleThatIsBeingChangedIsNamedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.put(community()...)
	w.replay()
	w.useRules(strings.Replace(communityRules, `where: role != "banned", `, "", 1))
	_, err := projections.OpenChanging(t.Context(), projections.Config{Client: w.client, Table: w.table, Rules: w.set}, 1)
	w.must(err)
	if _, summary := w.verifies(ending.ExitUndecided); summary.Outcome != verifying.OutcomeUndecided || len(summary.NotJudged) != 1 ||
		summary.NotJudged[0] != "member-count" {
		t.Errorf("not judged are %v", summary.NotJudged)
	}
}
