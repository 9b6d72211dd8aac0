package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/oracle"
	"github.com/dynamill/dynamill/internal/population"
)

const (
	seedDefault = 20250102
	roundsEach  = 2                       // of every fate that a process can have
	olderMax    = 60                      // items that are older than the stream
	aliveMax    = 2500 * time.Millisecond // between two blows
	problemsMax = 20                      // shown
	drawnEach   = 2                       // populations, beside the social one
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
// processes that follow its stream are killed, and frozen until others have
// taken over, at random moments. In the end everything in both tables must be
// as computed from scratch. DYNAMILL_SEED draws other rules and other moments;
// processes keep their own time, so that a seed repeats what is done to them,
// not what they do. DYNAMILL_SOAK multiplies the kills.
func TestKilledAndFrozenAtAnyMomentItComesOutTrue(t *testing.T) {
	t.Parallel()
	seed := fromEnvironment(t, "DYNAMILL_SEED", seedDefault)
	rounds := roundsEach * int(fromEnvironment(t, "DYNAMILL_SOAK", 1))
	written := population.Written()
	social := slices.IndexFunc(written, func(p *population.Population) bool { return p.Name == "social" })
	populations := []*population.Population{written[social]}
	random := rand.New(rand.NewPCG(seed, 0))
	for range drawnEach {
		populations = append(populations, population.Draw(random))
	}
	for i, p := range populations {
		t.Run(fmt.Sprintf("%d %s", i, p.Name), func(t *testing.T) {
			t.Parallel()
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("DYNAMILL_SEED=%d, population %d has the rules\n%s", seed, i, p.File)
				}
			})
			newCrew(t, p, seed, uint64(i)).live(rounds)
		})
	}
}

// crew are the processes that follow one table, what is done to them, and the
// application beside them.
type crew struct {
	*world
	app    *application
	random *rand.Rand

	kills, takeovers, wakes, overtaken int
}

func newCrew(t *testing.T, p *population.Population, seed, n uint64) *crew {
	w := connect(t)
	w.useRules(p.File)
	w.createTable("", p.PartitionKind, p.SortKind)
	c := &crew{world: w, random: rand.New(rand.NewPCG(seed, 2*n+1))}
	c.app = &application{
		world: w, Population: p, random: rand.New(rand.NewPCG(seed, 2*n+2)), base: map[change.Key]change.Item{},
	}
	return c
}

// live is the whole story.
func (c *crew) live(rounds int) {
	for range c.random.IntN(olderMax) { // before there is a stream
		c.must(c.app.put(c.app.Item(c.app.random)))
	}
	c.enableStream()
	writing, stop := context.WithCancel(c.t.Context())
	wrote := make(chan error, 1)
	go func() { wrote <- c.app.writeUntil(writing) }()
	defer stop()
	for range rounds {
		for _, fate := range c.random.Perm(fates) {
			c.round(fate)
		}
	}
	zombie := c.start()
	c.let()
	zombie.signal(syscall.SIGSTOP)
	stop()
	c.must(<-wrote)

	began := time.Now()
	left := c.drain()
	c.retryParked()
	c.judge("while a process was frozen")
	zombie.signal(syscall.SIGCONT)
	c.let()
	c.end(zombie)
	c.drain()
	c.retryParked()
	c.judge("in the end")
	c.t.Logf("%d writes; %d processes killed, %d takeovers, %d woke up after one, %d were told that they had lost the stream; %d records were left to the end, which took %s",
		c.app.writes, c.kills, c.takeovers, c.wakes, c.overtaken, left.Records, time.Since(began).Round(time.Millisecond))
}

const fates = 3

// round is the life and death of one process or two.
func (c *crew) round(fate int) {
	one := c.start()
	c.let()
	switch fate {
	case 0:
		c.end(one)
	case 1: // two at once
		two := c.start()
		c.let()
		c.endInAnyOrder(one, two)
	case 2: // one sleeps through the takeover
		one.signal(syscall.SIGSTOP)
		two := c.takeOver()
		c.let()
		one.signal(syscall.SIGCONT)
		c.wakes++
		c.let()
		c.endInAnyOrder(one, two)
	}
}

// let lets the processes work for a while: often hardly long enough to start.
func (c *crew) let() {
	share := c.random.Float64()
	time.Sleep(time.Duration(share * share * float64(aliveMax)))
}

// process is a `dynamill run`.
type process struct {
	*exec.Cmd
	stderr *bytes.Buffer
	ended  chan struct{}
}

func (c *crew) start() *process {
	cmd, _, stderr := c.command("run")
	p := &process{cmd, stderr, make(chan struct{})}
	c.must(cmd.Start())
	go func() {
		defer close(p.ended)
		_ = cmd.Wait() // end looks at the outcome
	}()
	c.t.Cleanup(func() { // wherever the test ended
		p.signal(syscall.SIGKILL)
		<-p.ended
	})
	return p
}

func (p *process) signal(s syscall.Signal) {
	_ = p.Process.Signal(s) // it may have ended by itself
}

// takeOver starts a process and waits until it, and not one that is frozen, reads the stream.
func (c *crew) takeOver() *process {
	before := c.owner()
	p := c.start()
	eventually(c.t, "the stream is taken over", func() bool {
		select {
		case <-p.ended:
			return true
		default:
			owner := c.owner()
			return owner != "" && owner != before
		}
	})
	c.takeovers++
	return p
}

// owner is who reads the stream now.
func (c *crew) owner() string {
	rows, err := c.scan(c.table + leasesSuffix)
	var missing *types.ResourceNotFoundException
	if errors.As(err, &missing) {
		return ""
	}
	c.must(err)
	var owners []string
	for _, row := range rows {
		owners = append(owners, row["leaseOwner"].Text())
	}
	slices.Sort(owners)
	return strings.Join(owners, " ")
}

// end kills a process. One that has ended by itself must have been told that another reads the stream.
func (c *crew) end(p *process) {
	c.t.Helper()
	p.signal(syscall.SIGKILL)
	<-p.ended
	status, _ := p.ProcessState.Sys().(syscall.WaitStatus)
	switch {
	case strings.Contains(p.stderr.String(), "DATA RACE"):
		c.t.Errorf("a process says\n%s", p.stderr)
	case status.Signaled():
		c.kills++
	case p.ProcessState.ExitCode() == exitFailed && strings.Contains(p.stderr.String(), "run one at a time"):
		c.overtaken++
	default:
		c.t.Errorf("a process ended by itself, %s:\n%s", p.ProcessState, p.stderr)
	}
}

func (c *crew) endInAnyOrder(one, two *process) {
	c.t.Helper()
	if c.random.IntN(2) == 0 {
		one, two = two, one
	}
	c.end(one)
	c.let()
	c.end(two)
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
	if code, _, stderr := c.call(retry...); code != exitDone && !strings.Contains(stderr, "still parked") {
		c.t.Errorf("parked retry: exit code %d, %s", code, stderr)
	}
	c.drain()
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
	for _, finding := range []struct {
		what  string
		found []oracle.Difference
	}{
		{"drift", oracle.Drift(set, items)},
		{"state table", oracle.Audit(set, items, state, time.Now(), oracle.DanglingReferences, oracle.ExpiringPositions, oracle.SeededDueMarks)},
		{"not the engine's", oracle.Foreign(set, base, items)},
	} {
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
