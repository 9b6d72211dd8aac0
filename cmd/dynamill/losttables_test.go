package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/settings"
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

	w.dropTable(w.table + settings.StateSuffix)
	lost = "the state table " + w.table + settings.StateSuffix + " was deleted"
	if code, stdout, stderr := w.call("plan"); code != ending.ExitDone || !strings.Contains(stdout, lost) ||
		strings.Contains(stdout, "carried out by") {
		t.Errorf("plan without the state table: exit code %d\n%s%s", code, stdout, stderr)
	}
	for _, args := range [][]string{{"run", "--drain"}, {"replay", "--yes"}, {"verify"}, {"parked", "list"}} {
		code, _, stderr := w.call(args...)
		if code != ending.ExitEnvironment || !strings.Contains(stderr, lost) || !strings.Contains(stderr, w.leaseTableName()) {
			t.Errorf("%v without the state table: exit code %d\n%s", args, code, stderr)
		}
		if w.exists(w.table + settings.StateSuffix) {
			t.Fatalf("%v made the deleted state table anew", args)
		}
	}
	w.dropTable(w.leaseTableName()) // the remedy
	w.drain()
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
