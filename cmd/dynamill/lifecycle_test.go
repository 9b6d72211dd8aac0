package main

import (
	"encoding/json"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/parked"
	"github.com/dynamill/dynamill/internal/following"
	"github.com/dynamill/dynamill/internal/sim/emulator"
)

// parked lists what is parked, as a script would.
func (w *world) parked() []parked.Entry {
	w.t.Helper()
	code, stdout, stderr := w.call("parked", "list", "--json")
	if code != ending.ExitDone {
		w.t.Fatalf("parked list: exit code %d, %s", code, stderr)
	}
	var listed struct{ Parked []parked.Entry }
	w.must(json.Unmarshal([]byte(stdout), &listed))
	return listed.Parked
}

func (w *world) parkedIDs() (ids []string) {
	w.t.Helper()
	for _, entry := range w.parked() {
		ids = append(ids, entry.ID)
	}
	return ids
}

// eventually waits for something that a process beside the test brings about.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}

func TestASignalStopsGracefully(t *testing.T) {
	t.Parallel()
	w := newWorld(t, types.StreamViewTypeNewAndOldImages)
	w.put(community()...)
	cmd, stdout, stderr := w.command("run")
	w.must(cmd.Start())
	eventually(t, "the members are counted", func() bool {
		return w.items()["GROUP#dev METADATA"].Lookup("memberCount").Text() == "2"
	})
	w.must(cmd.Process.Signal(syscall.SIGTERM))
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, stderr)
	}
	if stdout.Len() > 0 {
		t.Errorf("standard output holds %q: it is for results", stdout)
	}
	for _, said := range []string{
		w.table + " in us-east-1 (endpoint " + w.endpoint, "arn:", w.table + "-dynamill (created)", w.leaseTableName(),
		"member-count", "Membership → Group.memberCount", "new: to be seeded", "stopping: finishing what is in flight",
	} {
		if !strings.Contains(stderr.String(), said) {
			t.Errorf("%q was not said:\n%s", said, stderr)
		}
	}
	w.drain()
	w.expectTrue()
	_, _, again := w.call("run", "--drain")
	if !strings.Contains(again, "-dynamill (found)") || strings.Contains(again, "new: to be seeded") {
		t.Errorf("the second start says\n%s", again)
	}
}

func TestADrainThatTakesTooLongSaysWhatIsLeft(t *testing.T) {
	t.Parallel()
	var held atomic.Bool
	held.Store(true)
	w := newWorldAt(t, emulator.Delayed(t, func(_, operation string, input any) time.Duration {
		if in, ok := input.(*dynamodb.ScanInput); ok && held.Load() && !strings.Contains(*in.TableName, following.StateSuffix) {
			return time.Hour // seeding does not get on
		}
		return 0
	}), types.StreamViewTypeNewAndOldImages)
	w.put(community()...)
	code, stdout, stderr := w.call("run", "--drain", "--drain-timeout", "400ms")
	if code != ending.ExitFailed || stdout != "" || !strings.Contains(stderr, "not drained within --drain-timeout") {
		t.Errorf("exit code %d, %q, %s", code, stdout, stderr)
	}
	code, _, stderr = w.call("run", "--drain", "--drain-timeout", "5s")
	if code != ending.ExitFailed || !strings.Contains(stderr, "seeding was not finished") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	held.Store(false)
	w.drain()
	w.expectTrue()
}

func TestChangedRulesAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, types.StreamViewTypeNewAndOldImages)
	w.put(community()...)
	w.drain()
	before := w.items()
	w.must(os.WriteFile(w.rules, []byte(strings.Replace(communityRules, `role != "banned"`, `role == "admin"`, 1)), 0o600))
	code, _, stderr := w.call("run", "--drain")
	if code != ending.ExitInvalid {
		t.Errorf("exit code %d, want %d", code, ending.ExitInvalid)
	}
	expectSentence(t, stderr, "member-count", "differs from the rules in force")
	w.must(os.WriteFile(w.rules, []byte(communityRules), 0o600))
	w.drain()
	w.expectTrue()
	if len(w.items()) != len(before) {
		t.Errorf("%d items, before %d", len(w.items()), len(before))
	}
}

func TestAnotherStreamThanBeforeIsNotFollowedInSilence(t *testing.T) {
	t.Parallel()
	w := newWorld(t, types.StreamViewTypeNewAndOldImages)
	w.put(community()...)
	w.drain()
	_, err := w.client.UpdateTable(t.Context(), &dynamodb.UpdateTableInput{
		TableName: &w.table, StreamSpecification: &types.StreamSpecification{StreamEnabled: ptr(false)},
	})
	w.must(err)
	code, _, stderr := w.call("run", "--drain")
	if code != ending.ExitEnvironment {
		t.Errorf("without a stream: exit code %d", code)
	}
	expectSentence(t, stderr, "has no stream", "StreamViewType=NEW_AND_OLD_IMAGES")
	w.delete("USER#123", "GROUP#dev") // no record tells of it
	w.enableStream()
	code, _, stderr = w.call("run", "--drain")
	if code != ending.ExitFailed || !strings.Contains(stderr, "had another stream before") {
		t.Errorf("after a gap: exit code %d, %s", code, stderr)
	}
	_, err = w.client.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: ptr(w.leaseTableName())}) // the remedy
	w.must(err)
	w.drain()
	w.expect(map[string]string{"GROUP#dev METADATA memberCount": "2"})
	w.replay()
	w.expect(map[string]string{"GROUP#dev METADATA memberCount": "1"})
	w.drain()
	w.expectTrue()
}

func TestARealTableThatIsUnsuitedEndsWithExitCode3(t *testing.T) {
	t.Parallel()
	withoutStream, withKeys := newWorld(t, ""), newWorld(t, types.StreamViewTypeKeysOnly)
	missing := *withoutStream
	missing.table += "-missing"
	for want, w := range map[string]*world{
		"has no stream": withoutStream, "carries KEYS_ONLY": withKeys, "does not exist in us-east-1": &missing,
	} {
		code, _, stderr := w.call("run", "--drain")
		if code != ending.ExitEnvironment {
			t.Errorf("%s: exit code %d", want, code)
		}
		expectSentence(t, stderr, want)
		tables, err := w.client.ListTables(t.Context(), &dynamodb.ListTablesInput{ExclusiveStartTableName: ptr(w.table), Limit: ptr(int32(1))})
		w.must(err)
		if len(tables.TableNames) == 1 && strings.HasPrefix(tables.TableNames[0], w.table+"-dynamill") {
			t.Errorf("%s: table %s was created", want, tables.TableNames[0])
		}
	}
	code, _, stderr := withoutStream.call("parked", "list")
	if code != ending.ExitEnvironment || !strings.Contains(stderr, "state table") {
		t.Errorf("parked list without a state table: exit code %d, %s", code, stderr)
	}
}
