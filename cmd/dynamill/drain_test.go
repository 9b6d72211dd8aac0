package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/follow"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/status"
)

const (
	drainers    = 3   // beside the process that reads
	crowd       = 300 // members, of whom a backlog is made
	drainsTerm  = "5s"
	readingName = "reads"
)

// shards are those of `dynamill status`; none before anything has run.
func (w *world) shards() []status.Shard {
	w.t.Helper()
	code, stdout, stderr := w.call("status", "--json")
	switch code {
	case ending.ExitDone:
	case ending.ExitEnvironment:
		return nil
	default:
		w.t.Fatalf("status: exit code %d, %s", code, stderr)
	}
	var s struct{ Leases status.Leases }
	w.must(json.Unmarshal([]byte(stdout), &s))
	return s.Leases.Shards
}

// TestProcessesDrainBesideOneThatReads has several processes drain a stream that
// another one reads. None of them reads a record: they wait until the rows say
// that nothing is left, and what they then say is so at that moment.
func TestProcessesDrainBesideOneThatReads(t *testing.T) {
	t.Parallel()
	w := newWorld(t, types.StreamViewTypeNewAndOldImages)
	w.put(community()...)
	reading, _, said := w.command("run", "--worker", readingName, "--lease-term", drainsTerm)
	w.must(reading.Start())
	t.Cleanup(func() {
		_ = reading.Process.Signal(syscall.SIGKILL) // wherever the test ended
		_ = reading.Wait()
	})
	eventually(t, "nothing is left to read", func() bool {
		shards := w.shards()
		return len(shards) == 1 && shards[0].Owner == readingName && shards[0].Lag != nil && *shards[0].Lag == 0
	})
	members := make([]change.Item, crowd)
	for i := range members {
		members[i] = item(fmt.Sprintf("USER#%d", i), "GROUP#ops", "role", "member", "joinedAt", "2025-02-01")
	}
	w.put(members...)

	results := make([]*bytes.Buffer, drainers)
	ended := make(chan error, drainers)
	for i := range results {
		var cmd *exec.Cmd
		var stderr *bytes.Buffer
		cmd, results[i], stderr = w.command("run", "--drain", "--drain-timeout", "2m", "--json", "--worker", fmt.Sprint("drains-", i),
			"--lease-term", drainsTerm)
		w.must(cmd.Start())
		go func() {
			err := cmd.Wait()
			if err != nil {
				err = fmt.Errorf("%w:\n%s", err, stderr)
			}
			ended <- err
		}()
	}
	for i := range drainers {
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if i == 0 { // the others may have more to wait for, the tables not
			w.expectTrue()
			w.expect(map[string]string{"GROUP#ops METADATA memberCount": strconv.Itoa(crowd)})
		}
	}
	for _, out := range results {
		var result follow.Drained
		if err := json.Unmarshal(out.Bytes(), &result); err != nil || result.Records != 0 {
			t.Errorf("drained with %q, %v: want no record, for another process reads", out, err)
		}
	}
	if shards := w.shards(); len(shards) != 1 || shards[0].Owner != readingName {
		t.Errorf("in the end the shards are %+v, want one that %s reads, which said\n%s", shards, readingName, said)
	}
}

// TestDrainAloneEndsSoon has one process drain six items that no other one reads. How
// soon after the last record it ends is tested on a simulated clock (streamreader).
// Here the fastest of some runs counts, because a busy machine makes others slow.
func TestDrainAloneEndsSoon(t *testing.T) {
	t.Parallel()
	w := newWorld(t, types.StreamViewTypeNewAndOldImages)
	const soon, runs = 5.0, 4 // seconds; the first run seeds
	fastest := math.Inf(1)
	for i := range runs {
		group := fmt.Sprint("g", i)
		w.put(
			item("USER#"+group, "PROFILE", "name", "John"), item("GROUP#"+group, "METADATA", "name", group),
			item("USER#"+group, "GROUP#"+group, "role", "member"), item("USER#1", "GROUP#"+group, "role", "member"),
			item("USER#2", "GROUP#"+group, "role", "member"), item("POST#"+group, "METADATA", "userId", group),
		)
		result := w.drain()
		t.Logf("run %d: %d records in %.1f s", i+1, result.Records, result.Seconds)
		if result.Records < 6 {
			t.Errorf("run %d: %d records, want 6 and more", i+1, result.Records)
		}
		if i > 0 {
			fastest = min(fastest, result.Seconds)
		}
		w.expectTrue()
	}
	if fastest > soon {
		t.Errorf("the fastest run took %.1f s, want at most %.0f", fastest, soon)
	}
}
