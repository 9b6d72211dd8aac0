package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/proof/oracle"
	"github.com/dynamill/dynamill/internal/proof/population"
	"github.com/dynamill/dynamill/internal/replay/verify"
	"github.com/dynamill/dynamill/internal/sim/emulator"
	"github.com/dynamill/dynamill/internal/sim/worldsize"
)

const (
	seedDefault  = 20250102
	crewSize     = 4                       // processes that share a stream
	crewTerm     = 3 * time.Second         // of their leases; long beside what a busy machine makes them wait
	roundBlows   = 12                      // of which a kind is as many as any other
	crewTime     = 2 * time.Minute         // that blows fall on a crew for
	crewTimeRace = 20 * time.Second        // the same under the race detector
	olderMax     = 60                      // items that are older than the stream
	aliveMax     = 2500 * time.Millisecond // between two blows
	problemsMax  = 20                      // shown
	drawnEach    = 1                       // populations, beside the social one
)

// fromEnvironment returns a whole number that the environment may set.
func fromEnvironment(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// TestKilledAndFrozenAtAnyMomentItComesOutTrue lets an application write while
// four processes that share its stream are killed, stopped, and frozen for as
// long as it comes, at random moments. The reader of the shard is hit most. In
// the end everything in both tables must be as computed from scratch, and after
// the last kill the survivors must own everything within two terms.
//
// The stream has one open shard: the four compete for one lease and
// the lease of the list, and never hold a shard each. How many shards are
// divided is shown in streamreader and internal/proof/histories.
//
// The crew under the social rules works at a simulator, and is under blows for two minutes (20 s under the race
// detector). The others work at DynamoDB Local, for one round of blows. DYNAMILL_SOAK=n, with any n, has all of them under blows
// for two minutes, and for n rounds. DYNAMILL_SEED draws other rules and other
// moments; processes keep their own time, so that a seed repeats what is done to
// them, not what they do.
func TestKilledAndFrozenAtAnyMomentItComesOutTrue(t *testing.T) {
	t.Parallel()
	seed := fromEnvironment(t, "DYNAMILL_SEED", seedDefault)
	soak := int(fromEnvironment(t, "DYNAMILL_SOAK", 0))
	written := population.Written(projections.Kinds)
	social := slices.IndexFunc(written, func(p *population.Population) bool { return p.Name == "social" })
	populations := []*population.Population{written[social]}
	random := rand.New(rand.NewPCG(seed, 0))
	for range drawnEach {
		populations = append(populations, population.DrawForLocal(random, projections.Kinds))
	}
	for i, p := range populations {
		t.Run(fmt.Sprintf("%d %s", i, p.Name), func(t *testing.T) {
			t.Parallel()
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("DYNAMILL_SEED=%d, population %d has the rules\n%s", seed, i, p.File)
				}
			})
			lasting := time.Duration(worldsize.Of(int(crewTime), int(crewTimeRace)))
			if i > 0 && soak == 0 {
				lasting = 0
			}
			server := emulator.Local
			if i == 0 {
				server = emulator.Simulated
			}
			newCrew(t, server(t), p, seed, uint64(i)).live(max(1, soak), lasting)
		})
	}
}

// hotCrewRules are hot rules beside others. Users have comments under several posts.
const hotCrewRules = `version: 1
table: { keys: [pk, sk] }
entities:
  User:    { key: { pk: "USER#${userId}", sk: "PROFILE" } }
  Post:    { key: { pk: "POST#${postId}", sk: "METADATA" } }
  Comment: { key: { pk: "POST#${postId}", sk: "COMMENT#${commentId}" } }
rules:
  author:   { copy: name as userName, from: User, to: Comment, by: userId }
  comments: { count: Comment, as: Post.comments, hot: true }
  words:    { sum: words, of: Comment, as: User.words, by: userId, hot: true, where: words > 1 }
  counted:  { count: Comment, as: User.comments, by: userId }
`

// TestHotRulesComeOutTrueBehindKilledAndFrozenProcesses does the same under hot rules, once these are counted.
func TestHotRulesComeOutTrueBehindKilledAndFrozenProcesses(t *testing.T) {
	t.Parallel()
	seed := fromEnvironment(t, "DYNAMILL_SEED", seedDefault)
	p, err := population.New("hot", hotCrewRules, projections.Kinds)
	if err != nil {
		t.Fatal(err)
	}
	newCrew(t, emulator.Simulated(t), p, seed, 99).live(max(1, int(fromEnvironment(t, "DYNAMILL_SOAK", 0))), crewTimeRace)
}

// live is the whole story. Blows fall for so many rounds, and for so long.
func (c *crew) live(rounds int, lasting time.Duration) {
	for range c.random.IntN(olderMax) { // before there is a stream
		c.must(c.app.put(c.app.Item(c.app.random)))
	}
	c.enableStream()
	writing, stop := context.WithCancel(c.t.Context())
	if len(c.app.Population.Set.Folded()) > 0 {
		c.drain() // the rules are counted: a count takes longer than a process lives under blows
	}
	wrote := make(chan error, 1)
	go func() { wrote <- c.app.writeUntil(writing) }()
	defer stop()
	for range crewSize {
		c.workers = append(c.workers, c.start(c.newName()))
		c.let()
	}
	began := time.Now()
	for n := 0; n < rounds || time.Since(began) < lasting; n++ {
		for _, fate := range c.random.Perm(roundBlows) {
			c.blow(fate % fates)
			c.let()
		}
	}
	under := time.Since(began)
	c.gather()
	zombie := c.reader()
	zombie.freeze()
	c.takenOver("a process was frozen")
	stop()
	c.must(<-wrote)

	began = time.Now()
	c.drain()
	c.retryParked()
	c.judge("while a process was frozen")
	took := time.Since(began)
	zombie.thaw()
	c.let()
	c.end(c.reader(), syscall.SIGKILL)
	c.takenOver("the last process was killed")
	for _, p := range c.workers {
		if p.lives() {
			c.end(p, syscall.SIGKILL)
		}
	}
	c.drain()
	c.retryParked()
	c.judge("in the end")
	c.t.Logf("%d writes; under blows for %s: %d processes killed, %d stopped, %d frozen for a while and %d until another read; the longest "+
		"takeover took %s, the drain beside the others %s",
		c.app.writes, under.Round(time.Second), c.kills, c.stops, c.naps, c.overslept+1, c.slowest.Round(time.Millisecond),
		took.Round(time.Millisecond))
}

// What can befall a process, of six blows in a row.
const (
	fates     = 6
	fateKill  = 2 // and below
	fateStop  = 3
	fateNap   = 4 // frozen until it is hit again
	fateSleep = 5 // frozen until another reads
)

// blow hits one process: more often than not the one that reads.
func (c *crew) blow(fate int) {
	c.t.Helper()
	if fate == fateSleep {
		c.oversleep()
		return
	}
	n := c.random.IntN(crewSize)
	if c.random.IntN(3) > 0 {
		n = max(0, slices.IndexFunc(c.workers, func(p *process) bool { return p.name == c.owner() }))
	}
	victim := c.workers[n]
	sameName := c.random.IntN(2) == 0
	switch {
	case fate == fateNap && victim.frozen:
		victim.thaw()
		return
	case fate == fateNap:
		victim.freeze()
		c.naps++
		return
	case fate == fateStop:
		victim.thaw()
		c.end(victim, syscall.SIGTERM)
	case fate <= fateKill:
		c.end(victim, syscall.SIGKILL)
	}
	name := c.newName()
	if sameName { // and takes its leases at once
		name = victim.name
	}
	c.workers[n] = c.start(name)
}

// oversleep freezes the process that reads until another does.
func (c *crew) oversleep() {
	c.t.Helper()
	c.gather()
	zombie := c.reader()
	zombie.freeze()
	c.takenOver("a process fell asleep")
	c.let()
	zombie.thaw()
	c.overslept++
}

// retryParked does what docs/state-table.md leaves to the operator.
func (c *crew) retryParked() {
	c.t.Helper()
	retry := []string{"parked", "retry"}
	for _, entry := range c.parked() {
		if slices.Contains([]string{"heal.contested", "write.rejected", "number.overflow"}, entry.Code) {
			retry = append(retry, entry.ID)
		}
	}
	if len(retry) == 2 {
		return
	}
	if code, _, stderr := c.call(retry...); code != ending.ExitDone && !strings.Contains(stderr, "still parked") {
		c.t.Errorf("parked retry: exit code %d, %s", code, stderr)
	}
	c.drain()
}

// verify has the command compare both tables. It may find references that processes have put late that woke up: see promise 3 in
// docs/guarantees.md.
func (c *crew) verify(when string) {
	c.t.Helper()
	code, stdout, stderr := c.call("verify", "--json")
	drifted, late := 0, 0
	for line := range strings.Lines(stdout) {
		var found verify.Result
		c.must(json.Unmarshal([]byte(line), &found))
		if found.Status == verify.Drifted {
			drifted++
		}
		if found.Kind == drift.Reference && found.What == drift.Orphaned {
			late++
		}
	}
	parked := len(c.parked()) > 0 && code == ending.ExitUndecided
	if code != ending.ExitDone && !parked && (drifted == 0 || drifted > late) {
		c.t.Errorf("%s: verify ends with %d:\n%s%s", when, code, stdout, stderr)
	}
}

// row shows the item that differs, stamps and all.
func (c *crew) row(d oracle.Difference, items, state []change.Item) string {
	keyOf := c.app.Key
	if d.State {
		items = state
		keyOf = func(it change.Item) change.Key { return change.Key{Partition: it["pk"].Text(), Sort: it["sk"].Text()} }
	}
	at := slices.IndexFunc(items, func(it change.Item) bool { return keyOf(it) == d.Key })
	if at < 0 {
		return "(not there)"
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(items[at])) {
		v := items[at][name]
		lines = append(lines, fmt.Sprintf("  %s %s %s%v%v", name, v.Kind(), v.Text(), v.Map(), v.List()))
	}
	return strings.Join(lines, "\n")
}

// judge compares both tables with what a computation from scratch says.
func (c *crew) judge(when string) {
	c.t.Helper()
	items, err := c.scan(c.table)
	c.must(err)
	state, err := c.scan(c.table + "-dynamill")
	c.must(err)
	set := c.app.Population.Set
	base := slices.Collect(maps.Values(c.app.base))
	shown := 0
	type finding struct {
		what  string
		found []oracle.Difference
	}
	findings := []finding{
		{"drift", oracle.Drift(set, items)}, {"not the engine's", oracle.Foreign(set, base, items)},
		{"state table", oracle.Audit(set, items, state, time.Now(), oracle.DanglingReferences, oracle.ExpiringPositions, oracle.SeededDueMarks)},
	}
	if len(set.Folded()) > 0 {
		c.verify(when)
	}
	for _, finding := range findings {
		for _, d := range finding.found {
			if shown++; shown <= problemsMax {
				c.t.Errorf("%s: %s: %s\n%s", when, finding.what, d, c.row(d, items, state))
			}
		}
	}
	if shown > 0 {
		c.t.Fatalf("%s: %d differences among %d items and %d of the state table", when, shown, len(items), len(state))
	}
}
