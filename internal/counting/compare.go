package counting

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/dynamill/dynamill/internal/lanes"
	"github.com/dynamill/dynamill/internal/pace"
	"github.com/dynamill/dynamill/internal/tally"
)

// displayedAtOnce is how many groups are displayed together after a repair.
const displayedAtOnce = 50

// suspect is a group that seems wrong to a Verify.
type suspect struct {
	*group
	difference, want, have tally.Amount
}

// compareGroups compares what the rows of each group hold with the evidence, and adds what they lack.
func (c *count) compareGroups(ctx context.Context) error {
	if c.Purpose != Seed || !c.reader.readsAll() {
		if err := c.Generation.Groups(ctx, c.evidence.addGroup); err != nil {
			return fmt.Errorf("reading the groups: %w", err)
		}
	}
	if err := c.evidence.seal(); err != nil {
		return err
	}
	found, err := c.compareAll(ctx)
	c.keepMended(found.suspects)
	if err != nil {
		return err
	}
	if err := c.displayAll(ctx, found.shown); err != nil {
		return err
	}
	if c.Purpose != Verify {
		c.reportDisplays(found.displays)
		return nil
	}
	if err := c.lookAgain(ctx, found.suspects); err != nil {
		return err
	}
	return c.lookAtDisplays(ctx, found.displays)
}

// compared is what the comparison of all groups has found.
type compared struct {
	suspects []suspect
	displays []display
	shown    []string // groups that a Repair displays
}

// compareAll compares all groups, several at once. If it fails, it returns what it has found until then.
func (c *count) compareAll(ctx context.Context) (all compared, err error) {
	var mu sync.Mutex
	done := newCounter(func(n int64) { c.Progress(Progress{Items: c.result.Items, Groups: n}) })
	work, working := errgroup.WithContext(ctx)
	work.SetLimit(groupsAtOnce)
	err = c.evidence.each(func(g *group) error {
		work.Go(func() error {
			found, rows, err := c.compareAndMend(working, g)
			if err != nil {
				return fmt.Errorf("counting %s: %w", g.name, err)
			}
			done.add()
			wrong, err := c.compareDisplays(working, g, rows)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			if c.Purpose == Repair {
				all.shown = append(all.shown, g.name)
			}
			for _, d := range wrong {
				if d.Parked {
					c.result.Parked++
				} else if d.PutOff.IsZero() || d.StampLater || c.Purpose == Verify { // a Repair displays all groups
					all.displays = append(all.displays, display{g.name, d})
				}
			}
			switch {
			case found != nil:
				all.suspects = append(all.suspects, *found)
			case rows.Total.Overflow: // its targets are parked
				c.result.Parked++
			}
			return nil
		})
		return working.Err()
	}, func(g *group) error { return c.dropAdded(working, g) })
	if failed := work.Wait(); failed != nil {
		return all, failed
	}
	c.result.Groups = done.n
	return all, err
}

// compareDisplays returns the targets that show something else than the rows of a group, or carry a stamp on which no worker can write. A
// Repair takes such a stamp off: it displays all groups then.
func (c *count) compareDisplays(ctx context.Context, g *group, rows lanes.Group) ([]lanes.WrongDisplay, error) {
	if c.Purpose == Seed || !c.mayShowElse(g, rows) {
		return nil, nil
	}
	wrong, err := c.Generation.WrongDisplays(ctx, g.name)
	if err != nil {
		return nil, fmt.Errorf("comparing the displays of %s: %w", g.name, err)
	}
	if c.Purpose != Repair {
		return wrong, nil
	}
	later := slices.DeleteFunc(slices.Clone(wrong), func(d lanes.WrongDisplay) bool { return !d.StampLater || d.Parked })
	if err := c.Generation.TakeOffStamps(ctx, later); err != nil {
		return nil, fmt.Errorf("preparing the displays of %s: %w", g.name, err)
	}
	return wrong, nil
}

// keepMended keeps what a Seed or a Repair has mended as findings, also if the count begins anew.
func (c *count) keepMended(suspects []suspect) {
	if c.Purpose == Verify {
		return
	}
	for _, s := range suspects {
		c.addFinding(Finding{Group: s.name, Want: s.want, Have: s.have})
	}
}

// displayAll displays groups, also those that were right: an earlier repair may have mended one, and shown nothing.
func (c *count) displayAll(ctx context.Context, shown []string) error {
	slices.Sort(shown)
	for some := range slices.Chunk(shown, displayedAtOnce) {
		if err := c.Generation.RollUp(ctx, some); err != nil {
			return fmt.Errorf("displaying: %w", err)
		}
	}
	return nil
}

// reportDisplays keeps targets that showed something else as findings.
func (c *count) reportDisplays(displays []display) {
	for _, d := range displays {
		c.addFinding(Finding{Group: d.group, Display: &d.WrongDisplay})
	}
}

// addFinding keeps a finding, in the order of the groups.
func (c *count) addFinding(f Finding) {
	i, _ := slices.BinarySearchFunc(c.result.Findings, f, byGroup)
	c.result.Findings = slices.Insert(c.result.Findings, i, f)
}

func byGroup(a, b Finding) int { return strings.Compare(a.Group, b.Group) }

// mayShowElse reports whether, in the scan, a target differed from the rows, or several targets showed the group.
func (c *count) mayShowElse(g *group, rows lanes.Group) bool {
	return len(g.targets) > 1 || len(g.targets) == 1 &&
		(g.targets[0].shown != c.Generation.DisplayOf(rows.Total) || g.targets[0].operations > rows.Total.Operations)
}

// compareAndMend compares one group with its rows. A Seed or a Repair mends a wrong group here, a Verify does not. It returns the rows, and
// the group as a suspect if it was wrong.
func (c *count) compareAndMend(ctx context.Context, g *group) (*suspect, lanes.Group, error) {
	for {
		found, rows, err := c.compare(ctx, g)
		switch {
		case err != nil:
			return nil, rows, err
		case found.want.Overflow && rows.Total.Overflow: // no number holds what the items add, and the rows say so
			return nil, rows, nil
		case rows.Total.Overflow && c.Purpose != Verify:
			return nil, rows, c.Generation.Recount(ctx, "a row of "+g.name+" holds no number, or DynamoDB refused to add to it")
		case found.difference.IsEmpty() && !rows.Total.Overflow:
			return nil, rows, nil
		case c.Purpose == Verify:
			return &found, rows, nil
		}
		mended, err := c.Generation.Mend(ctx, g.name, found.difference, rows.Base)
		if err != nil || mended {
			return &found, rows, err
		}
	}
}

// isDone reports whether no worker will add what a record changes: the rows hold it, or it is of before the generation.
func (e entry) isDone(opened map[string]lanes.Shard, rows lanes.Group) bool {
	switch row := opened[e.shard]; {
	case e.position <= row.From: // no worker adds it
		return true
	case row.Lane != "" && e.position <= rows.HighWater[row.Lane]: // it is added
		return true
	}
	return false
}

// dropAdded drops the records of a group that workers have added: how far the rows are only rises. So a rule with few groups needs little
// memory, however many records came during the scan.
func (c *count) dropAdded(ctx context.Context, g *group) error {
	rows, err := c.Generation.Group(ctx, g.name)
	if err != nil {
		return fmt.Errorf("counting %s: %w", g.name, err)
	}
	opened := c.reader.opened()
	g.entries = slices.DeleteFunc(g.entries, func(e entry) bool { return e.isDone(opened, rows) })
	return nil
}

// compare works out what the rows of a group lack: what the items add, less what records change that workers have still to add, less
// what the rows hold. If a row holds records that the count has not read, it reads on.
func (c *count) compare(ctx context.Context, g *group) (suspect, lanes.Group, error) {
	rows, err := c.Generation.Group(ctx, g.name)
	if err != nil {
		return suspect{}, rows, err
	}
	known := func() bool { return c.reader.knowsAll(rows.HighWater) }
	for reads := 0; !known(); reads++ {
		if reads == readsMax {
			return suspect{}, rows, errAgain{"a row of " + g.name + " holds records of a shard that has no row, or that the stream does not give"}
		}
		if err := c.reader.readFor(ctx, known); err != nil {
			return suspect{}, rows, err
		}
		if !known() && pace.Sleep(ctx, spacing) != nil {
			return suspect{}, rows, context.Cause(ctx)
		}
	}
	terms := slices.Clone(g.items)
	since := c.evidence.since(g.name)
	for _, e := range since {
		terms = append(terms, e.difference)
	}
	opened := c.reader.opened()
	for _, entries := range [][]entry{g.entries, since} {
		for _, e := range entries {
			if !e.isDone(opened, rows) {
				terms = append(terms, e.difference.Negative())
			}
		}
	}
	want := tally.Sum(terms...)
	want.Operations = 0
	return suspect{group: g, difference: want.Lacks(rows.Total), want: want, have: rows.Total}, rows, nil
}

// lookAgain reads on and compares suspects once more: what comes late is no drift. A difference that stays is.
func (c *count) lookAgain(ctx context.Context, suspects []suspect) error {
	for looks := 2; len(suspects) > 0 && looks <= looksMax; looks++ {
		if pace.Sleep(ctx, c.Margin) != nil {
			return context.Cause(ctx)
		}
		if err := c.reader.readOn(ctx); err != nil {
			return err
		}
		var left []suspect
		for _, before := range suspects {
			now, rows, err := c.compare(ctx, before.group)
			switch {
			case err != nil:
				return err
			case now.difference.IsEmpty() && !rows.Total.Overflow:
			case now.difference.Equals(before.difference):
				c.addFinding(Finding{Group: now.name, Want: now.want, Have: now.have})
			default:
				left = append(left, now)
			}
		}
		suspects = left
	}
	if len(suspects) > 0 {
		c.result.Undecided = fmt.Sprintf("%s changes too fast to be compared", suspects[0].name)
	}
	return nil
}

// counter counts what several goroutines see, and tells of every thousandth: of one after the other.
type counter struct {
	mu   sync.Mutex
	n    int64
	tell func(int64)
}

func newCounter(tell func(int64)) *counter { return &counter{tell: tell} }

func (c *counter) add() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n++; c.n%1000 == 0 {
		c.tell(c.n)
	}
}
