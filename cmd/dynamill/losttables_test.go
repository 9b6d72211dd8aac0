package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/internal/following"
)

func (w *world) exists(name string) bool {
	w.t.Helper()
	_, err := w.client.DescribeTable(w.t.Context(), &dynamodb.DescribeTableInput{TableName: &name})
	var missing *types.ResourceNotFoundException
	if err != nil && !errors.As(err, &missing) {
		w.t.Fatal(err)
	}
	return err == nil
}

func TestDeletedTablesAreNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, types.StreamViewTypeNewAndOldImages)
	w.put(community()...)
	w.drain()

	w.dropTable(w.leaseTableName())
	lost := "the lease table " + w.leaseTableName() + " was deleted"
	if code, stdout, stderr := w.call("plan"); code != ending.ExitDone || !strings.Contains(stdout, lost) ||
		!strings.Contains(stdout, "nothing to do") {
		t.Errorf("plan without the lease table: exit code %d\n%s%s", code, stdout, stderr)
	}
	code, _, stderr := w.call("run", "--drain", "--drain-timeout", "4m")
	if code != ending.ExitDone || !strings.Contains(stderr, lost) || !strings.Contains(stderr, "replay --restart") {
		t.Errorf("run without the lease table: exit code %d\n%s", code, stderr)
	}
	w.expectTrue()
	if _, stdout, _ := w.call("plan"); stdout == "" || strings.Contains(stdout, "deleted") {
		t.Errorf("plan after that: %s", stdout)
	}

	w.dropTable(w.table + following.StateSuffix)
	lost = "the state table " + w.table + following.StateSuffix + " was deleted"
	if code, stdout, stderr := w.call("plan"); code != ending.ExitDone || !strings.Contains(stdout, lost) ||
		strings.Contains(stdout, "carried out by") {
		t.Errorf("plan without the state table: exit code %d\n%s%s", code, stdout, stderr)
	}
	for _, args := range [][]string{{"run", "--drain"}, {"replay", "--yes"}, {"verify"}, {"parked", "list"},
		{"explain", "--key", "POST#1/METADATA"}} {
		code, _, stderr := w.call(args...)
		if code != ending.ExitEnvironment || !strings.Contains(stderr, lost) || !strings.Contains(stderr, w.leaseTableName()) {
			t.Errorf("%v without the state table: exit code %d\n%s", args, code, stderr)
		}
		if w.exists(w.table + following.StateSuffix) {
			t.Fatalf("%v made the deleted state table anew", args)
		}
	}
	w.dropTable(w.leaseTableName()) // the remedy
	w.drain()
	w.expectTrue()
}

// TestStateTableOfAnotherFormatIsRefused starts over, as the error says, while counts are watched.
func TestStateTableOfAnotherFormatIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, types.StreamViewTypeNewAndOldImages)
	const groups, users = 3, 40
	for g := range groups {
		w.put(item(fmt.Sprintf("GROUP#g%d", g), "METADATA", "name", fmt.Sprintf("Group %d", g)))
	}
	for u := range users {
		id := fmt.Sprintf("USER#u%02d", u)
		w.put(item(id, "PROFILE", "name", fmt.Sprintf("User %d", u)))
		for g := range groups {
			w.put(item(id, fmt.Sprintf("GROUP#g%d", g), "role", "member"))
		}
	}
	w.drain()
	w.expectTrue()

	state := w.table + following.StateSuffix
	_, err := w.client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: &state, Key: keyOf("registry", "table"),
		UpdateExpression: ptr("SET #f = :f"), ExpressionAttributeNames: map[string]string{"#f": "format"},
		ExpressionAttributeValues: map[string]types.AttributeValue{":f": &types.AttributeValueMemberN{Value: "4711"}}})
	w.must(err)
	before, err := w.scan(state)
	w.must(err)
	for _, args := range [][]string{{"run", "--drain"}, {"replay", "--yes"}, {"verify"}, {"plan"}, {"status"}, {"parked", "retry", "--all"},
		{"explain", "--key", "POST#1/METADATA"}} {
		code, _, stderr := w.call(args...)
		if code != ending.ExitEnvironment || !strings.Contains(stderr, "format of state table "+state+" (of table ") ||
			!strings.Contains(stderr, w.table+"\") is 4711") ||
			!strings.Contains(stderr, "start over (docs/state-table.md)") {
			t.Errorf("%v on a state table of another format: exit code %d\n%s", args, code, stderr)
		}
	}
	after, err := w.scan(state)
	w.must(err)
	if len(after) != len(before) {
		t.Errorf("the refused state table had %d rows and has %d", len(before), len(after))
	}
	w.expectTrue()

	w.dropTable(state) // the remedy
	w.dropTable(w.leaseTableName())
	watching, stop := context.WithCancel(t.Context())
	watched := make(chan int)
	go func() { watched <- w.watchCounts(watching, groups, users) }()
	w.drain()
	stop()
	if looks := <-watched; looks == 0 {
		t.Error("the counts were not read while they were made anew")
	}
	w.expectTrue()
}

// TestStateWithoutLeasesIsNoLossBesideAFunction has replays alone, as where a function follows the stream.
func TestStateWithoutLeasesIsNoLossBesideAFunction(t *testing.T) {
	t.Parallel()
	w := newWorld(t, types.StreamViewTypeNewAndOldImages)
	w.put(community()...)
	w.replay()
	if code, stdout, stderr := w.call("plan"); code != ending.ExitDone || strings.Contains(stdout+stderr, "deleted") {
		t.Errorf("plan: exit code %d\n%s%s", code, stdout, stderr)
	}
	if code, _, stderr := w.call("run", "--drain", "--drain-timeout", "4m"); code != ending.ExitDone || strings.Contains(stderr, "deleted") {
		t.Errorf("run: exit code %d\n%s", code, stderr)
	}
}
