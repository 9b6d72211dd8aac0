package main

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/internal/proof/population"
	"github.com/dynamill/dynamill/internal/sim/emulator"
	"github.com/dynamill/dynamill/internal/stream/leases"
)

// crew are the processes that share one table's stream, what is done to them,
// and the application beside them.
type crew struct {
	*world
	app     *application
	random  *rand.Rand
	workers []*process
	names   int // given so far

	timeline timeline

	kills, stops, naps, overslept int
	slowest                       time.Duration // takeover
}

func newCrew(t *testing.T, server emulator.Endpoint, p *population.Population, seed, n uint64) *crew {
	w := newEmptyWorld(t, server)
	w.useRules(p.File)
	w.createTable("", p.PartitionKind, p.SortKind)
	c := &crew{world: w, random: rand.New(rand.NewPCG(seed, 2*n+1))}
	c.app = &application{
		world: w, Population: p, random: rand.New(rand.NewPCG(seed, 2*n+2)), base: map[change.Key]change.Item{},
	}
	watching, stop := context.WithCancel(t.Context())
	var watcher sync.WaitGroup
	watcher.Go(func() { c.timeline.watch(watching, c.client, c.leaseTableName()) })
	t.Cleanup(func() {
		stop()
		watcher.Wait()
		if t.Failed() && !c.timeline.shown {
			c.timeline.show(t, time.Now().Add(-lastShown))
		}
	})
	return c
}

// gather wakes all up and waits until all are at work, and one of them reads.
func (c *crew) gather() {
	c.t.Helper()
	for _, p := range c.workers {
		p.thaw()
		eventually(c.t, p.name+" has started", func() bool {
			return strings.Contains(strings.Join(p.stderr.lines(), ""), c.leaseTableName())
		})
	}
	eventually(c.t, "one of the crew reads", func() bool { return c.strangers() == "" })
	time.Sleep(crewTerm / 2) // all have looked at the leases
}

// let lets the processes work for a while: often hardly long enough to start.
func (c *crew) let() {
	share := c.random.Float64()
	time.Sleep(time.Duration(share * share * float64(aliveMax)))
}

// leases are the rows of the lease table; none while there is no table.
func (c *crew) leases() []leases.Lease {
	c.t.Helper()
	rows, _, err := leases.NewTable(c.client, c.leaseTableName()).Read(c.t.Context())
	c.must(err)
	return rows
}

// owner is the name of the process that reads the newest shard, or died reading it.
func (c *crew) owner() (name string) {
	c.t.Helper()
	for _, row := range c.leases() {
		if !row.OfStream() && !row.Finished() {
			name = row.Owner
		}
	}
	return name
}

// reader is the process that reads.
func (c *crew) reader() (found *process) {
	c.t.Helper()
	eventually(c.t, "one of the crew reads", func() bool {
		owner := c.owner()
		for _, p := range c.workers {
			if p.name == owner && p.lives() && !p.frozen {
				found = p
			}
		}
		return found != nil
	})
	return found
}

// strangers names the owners of unfinished rows that are dead or frozen; "-" stands for no owner, and for no row.
func (c *crew) strangers() string {
	c.t.Helper()
	var found []string
	rows := c.leases()
	for _, row := range rows {
		isOwner := func(p *process) bool { return p.name == row.Owner && p.lives() && !p.frozen }
		if !row.Finished() && !slices.ContainsFunc(c.workers, isOwner) {
			found = append(found, row.Shard+" of "+cmp.Or(row.Owner, "-"))
		}
	}
	if len(rows) == 0 {
		return "-"
	}
	return strings.Join(found, ", ")
}

// takenOver waits until the live processes own everything, which must take no longer
// than two terms. While the endpoint does not answer, no process can take anything
// over, nor while the machine runs neither this test nor the crew: that time is
// not counted.
func (c *crew) takenOver(since string) {
	c.t.Helper()
	c.timeline.note("%s: the others must take over", since)
	began := time.Now()
	left, stalled := "-", time.Duration(0)
	for left != "" && time.Since(began)-stalled < 4*crewTerm {
		asked := time.Now()
		left = c.strangers()
		time.Sleep(lookEvery)
		stalled += max(0, time.Since(asked)-lookEvery-answerMax)
	}
	took := time.Since(began) - stalled
	c.slowest = max(c.slowest, took)
	if took <= 2*crewTerm {
		return
	}
	c.timeline.note("it took %s", took)
	c.t.Errorf("%s after %s: %s; for %s more the endpoint did not answer", took, since, cmp.Or(left, "now all is taken over"), stalled)
	c.timeline.show(c.t, began.Add(-beforeThat))
}

const (
	lookEvery = 20 * time.Millisecond
	answerMax = crewTerm / 4 // an endpoint at work answers sooner
	lastShown = time.Minute  // of the timeline, when something else fails
)

// drain drains beside the others, as one of them.
func (c *crew) drain() {
	c.t.Helper()
	c.world.drain("--lease-term", crewTerm.String())
}

// process is a `dynamill run`.
type process struct {
	*exec.Cmd
	name   string
	stderr *pipe
	ended  chan struct{}
	frozen bool

	timeline *timeline
}

func (c *crew) newName() string {
	c.names++
	return fmt.Sprintf("worker-%d", c.names)
}

func (c *crew) start(name string) *process {
	cmd, _, _ := c.command("run", "--worker", name, "--lease-term", crewTerm.String())
	p := &process{Cmd: cmd, name: name, stderr: new(pipe), ended: make(chan struct{}), timeline: &c.timeline}
	c.timeline.note("%s starts", name)
	cmd.Stderr = &voice{pipe: p.stderr, name: name, to: &c.timeline}
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
	p.timeline.note("%s, process %d, is sent %s", p.name, p.Process.Pid, s)
	_ = p.Process.Signal(s) // it may have ended by itself
}

func (p *process) freeze() {
	p.signal(syscall.SIGSTOP)
	p.frozen = true
}

func (p *process) thaw() {
	p.signal(syscall.SIGCONT)
	p.frozen = false
}

func (p *process) lives() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// end ends a process, which must not have ended by itself: whatever others take from it.
func (c *crew) end(p *process, by syscall.Signal) {
	c.t.Helper()
	if !p.lives() {
		c.t.Errorf("%s ended by itself", p.name)
	}
	p.signal(by)
	<-p.ended
	said := strings.Join(p.stderr.lines(), "")
	status, _ := p.ProcessState.Sys().(syscall.WaitStatus)
	switch {
	case strings.Contains(said, "DATA RACE"):
		c.t.Errorf("%s says\n%s", p.name, said)
	case status.Signaled() && status.Signal() == by && by == syscall.SIGKILL:
		c.kills++
	case by == syscall.SIGTERM && (status.Signaled() || p.ProcessState.ExitCode() == ending.ExitDone): // it may not have begun to listen
		c.stops++
	default:
		c.t.Errorf("%s ended, %s:\n%s", p.name, p.ProcessState, said)
	}
}
