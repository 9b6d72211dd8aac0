package main

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/internal/projections/audits"
	"github.com/dynamill/dynamill/internal/proof/oracle"
	"github.com/dynamill/dynamill/internal/sim/emulator"
)

// explainedKey is what `explain --key` prints, without what is not the same in each run.
func (w *world) explainedKey(key string) string {
	w.t.Helper()
	code, stdout, stderr := w.call("explain", "--key", key)
	if code != ending.ExitDone || stderr != "" {
		w.t.Fatalf("explain --key %s: exit code %d\n%s%s", key, code, stdout, stderr)
	}
	return operations.ReplaceAllString(versions.ReplaceAllString(stdout, "VERSION"), "N operations")
}

var (
	operations = regexp.MustCompile(`[0-9]+ operations?`)
	versions   = regexp.MustCompile(
		`rules epoch 1, (no record|record [0-9]+ of stream [0-9T:.-]+|[0-9]+ operations?)(, (filled or )?rederived since: [0-9]+)?`)
)

func TestExplainTellsWhatIsKeptOfAKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, types.StreamViewTypeNewAndOldImages)
	w.put(community()...)
	w.drain()
	w.set1("GROUP#dev", "USER#123", "joinedAt", "yesterday")
	before, err := w.scan(w.table + "-dynamill")
	w.must(err)
	ids := map[string]string{"COUNT": oracle.RuleID("comment-count"), "LIST": oracle.RuleID("member-list"), "NAME": oracle.RuleID("member-name")}
	for key, want := range map[string]string{
		"POST#1/METADATA": postExplained, "GROUP#dev/USER#123": memberExplained, "POST#none/METADATA": noneExplained,
	} {
		for name, id := range ids {
			want = strings.ReplaceAll(want, "_dm_"+name, "_dm_"+id)
		}
		if diff := cmp.Diff(want, w.explainedKey(key)); diff != "" {
			t.Errorf("%s:\n%s", key, diff)
		}
	}
	after, err := w.scan(w.table + "-dynamill")
	w.must(err)
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("explain has written:\n%s", diff)
	}

	code, stdout, stderr := w.call("explain", "--json", "--key", `{"pk": "POST#1", "sk": {"S": "METADATA"}}`)
	var x audits.KeyExplanation
	if err := json.Unmarshal([]byte(stdout), &x); err != nil || code != ending.ExitDone || x.Key != "POST#1/METADATA" || x.Entity != "Post" ||
		!x.Exists || len(x.Stamps) != 1 || len(x.Rows) == 0 || x.Rows[0].SK != "a" {
		t.Errorf("as JSON: exit code %d, %v, %s%s", code, err, stdout, stderr)
	}
}

func TestExplainRefusesAKeyThatTheTableCannotHold(t *testing.T) {
	t.Parallel()
	w := newEmptyWorld(t, emulator.Simulated(t))
	w.useRules(`version: 1
table: { keys: [pk, n] }
entities:
  Line: { key: { pk: "ORDER#${orderId}", n: "${line}" } }
  Copy: { key: { pk: "COPY#${orderId}", n: "${line}" } }
rules:
  lines: { mirror: Line, as: Copy, attributes: [text] }
`)
	w.createTable(types.StreamViewTypeNewAndOldImages, change.KindString, change.KindNumber)
	w.drain()
	for key, want := range map[string]string{
		"ORDER#1/first": "--key 'ORDER#1/first': the table cannot hold an item under this key", "ORDER#1": "is no key: want PARTITION/SORT",
	} {
		code, stdout, stderr := w.call("explain", "--key", key)
		if code != ending.ExitInvalid || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("explain --key %s: exit code %d, %s%s", key, code, stdout, stderr)
		}
	}
	if got, want := w.explainedKey("ORDER#1/01.0"), "ORDER#1/1: there is no such item\n"; !strings.HasPrefix(got, want) {
		t.Errorf("explain prints %q, want %q first", got, want)
	}
}

const postExplained = `POST#1/METADATA: Post
stamps on it:
  _dm_COUNT  comment-count  VERSION; as dynamill wrote it: commentCount
rows of the state table:
  accumulator  comment-count  2 from 2 sources, after N operations
what the rules would ask for if it were inserted as it is: nothing
`

const memberExplained = `GROUP#dev/USER#123: Member, made by dynamill
stamps on it:
  _dm_LIST  member-list  VERSION; as dynamill wrote it: role; written by another rule or program since: joinedAt
  _dm_NAME  member-name  VERSION; as dynamill wrote it: userName
rows of the state table:
  reference          member-name  takes its copies from USER#123/PROFILE, as of VERSION
  parent's position  member-name  USER#123/PROFILE is written to its children, as of VERSION
what the rules would ask for if it were inserted as it is:
  member-name  refers to USER#123/PROFILE  set userName from it
`

const noneExplained = `POST#none/METADATA: there is no such item
rows of the state table: none that can be found by the key
`
