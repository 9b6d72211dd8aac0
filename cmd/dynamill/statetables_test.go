package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/internal/following"
)

const wordCountRules = `version: 1
table: { keys: [pk, sk] }
entities:
  Post:    { key: { pk: "POST#${postId}", sk: "METADATA" } }
  Comment: { key: { pk: "POST#${postId}", sk: "COMMENT#${commentId}" } }
rules:
  long-comments: { count: Comment, as: Post.longComments, where: size(text) > 3 }
`

// TestTwoStateTablesEachDrainEveryRecord has two teams follow one table's
// stream, each with a state table and rules of its own. What the one has
// applied says nothing of what the other has.
func TestTwoStateTablesEachDrainEveryRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t, types.StreamViewTypeNewAndOldImages)
	w.useRules(smallRules)
	other := *w
	other.rules = filepath.Join(t.TempDir(), "other.yaml")
	other.useRules(wordCountRules)
	otherState := w.table + "-team2"
	w.deleteAfterwards(otherState, otherState+following.LeaseSuffix)

	w.put(item("POST#1", "METADATA"))
	w.drain()
	other.drain("--state-table", otherState)
	const comments = 5
	var items []change.Item
	for i := range comments {
		items = append(items, item("POST#1", fmt.Sprintf("COMMENT#%d", i), "text", strings.Repeat("x", i+1)))
	}
	w.put(items...)
	if got := w.drain(); got.Records < comments {
		t.Errorf("the first state table drained %d records, want the %d comments at least", got.Records, comments)
	}
	if got := other.drain("--state-table", otherState); got.Records < comments {
		t.Errorf("the second state table drained %d records, want the %d comments at least", got.Records, comments)
	}
	w.expect(map[string]string{"POST#1 METADATA commentCount": "5", "POST#1 METADATA longComments": "2"})

	code, stdout, stderr := other.call("status", "--state-table", otherState)
	if code != ending.ExitDone || !strings.Contains(stdout, "shards in lease table "+otherState+following.LeaseSuffix) {
		t.Errorf("status: exit code %d, want it to name the lease table of its state table\n%s%s", code, stdout, stderr)
	}
	code, stdout, stderr = other.call("verify", "--state-table", otherState)
	if code != ending.ExitDone {
		t.Errorf("verify: exit code %d\n%s%s", code, stdout, stderr)
	}
}

func TestStateTableNameThatLeavesNoLeaseTableIsRefused(t *testing.T) {
	withoutAWS(t)
	for _, c := range []struct{ table, stateTable, want string }{
		{"app", "app-dynamill-leases", "is the table of checkpoints"},
		{"app", "app", "cannot be the table itself"},
		{"app-leases", "app", "makes app-leases itself the table of checkpoints"},
		{"app", strings.Repeat("s", 249), "at most 248"},
		{strings.Repeat("a", 240), "", "give --state-table"},
	} {
		args := []string{"status", "--rules", ruleFile(t), "--table", c.table}
		if c.stateTable != "" {
			args = append(args, "--state-table", c.stateTable)
		}
		code, _, stderr := called(t, args...)
		if code != ending.ExitInvalid {
			t.Errorf("table %s, state table %s: exit code %d, want %d", c.table, c.stateTable, code, ending.ExitInvalid)
		}
		expectSentence(t, stderr, c.want)
	}
}
