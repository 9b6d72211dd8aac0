// Package counting finds what the groups of a hot rule add up to, by one scan of the table and the records of the stream
// (docs/adr/0036-hot-counters-count-by-position.md, "The count"). It seeds a generation, repairs one, or says where one is wrong.
// Workers add records to the same rows meanwhile: the count takes off what they have still to add.
package counting

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/lanes"
	"github.com/dynamill/dynamill/internal/pace"
	"github.com/dynamill/dynamill/internal/stream/leases"
	"github.com/dynamill/dynamill/internal/stream/streamapi"
	"github.com/dynamill/dynamill/internal/tally"
)

// Generation is what the engine does for a count of one rule.
type Generation interface {
	// Rule is the rule's name.
	Rule() string
	Begun(ctx context.Context) (bool, error)
	// OpenShards makes the rows of shards that are missing, in this order, and returns the rows of all of them.
	OpenShards(ctx context.Context, starts []lanes.Start) ([]lanes.Shard, error)
	// MarkBegun notes that the count has looked at every shard of a stream. A generation that has begun on another stream gives way to a
	// new one.
	MarkBegun(ctx context.Context, streamARN string) error
	// Shards returns the rows of the generation's shards, by their ids.
	Shards(ctx context.Context) (map[string]lanes.Shard, error)
	// CountExtents are how far earlier counts have read.
	CountExtents(ctx context.Context) ([]lanes.CountExtent, error)
	// Amounts are what an item adds, by group. A nil image adds nothing. The error says why the rule cannot read the item.
	Amounts(key change.Key, image change.Image) (map[string]tally.Amount, error)
	// Park sets items aside that the rule cannot read.
	Park(ctx context.Context, keys []change.Key) error
	// NoteCount keeps how far the count has read, before it writes to any group.
	NoteCount(ctx context.Context, m lanes.CountExtent) error
	// Recount begins a new generation, and logs the reason. It always returns an error, which ends the count.
	Recount(ctx context.Context, reason string) error
	// Group reads the rows of a group: what it began with first.
	Group(ctx context.Context, group string) (lanes.Group, error)
	// Groups calls f with each group that has a row.
	Groups(ctx context.Context, f func(group string) error) error
	// Mend adds a difference to what a group began with, if its row has as many operations as were read; false if it has not.
	Mend(ctx context.Context, group string, difference tally.Amount, operations int64) (bool, error)
	// TargetOf is the group that an item displays, what it shows, and how many operations its stamp counts; no group if it displays none.
	TargetOf(key change.Key, image change.Image) (group, shown string, operations int64)
	// DisplayOf is what a target shows of an amount.
	DisplayOf(a tally.Amount) string
	// WrongDisplays returns the targets that show something else than the group's rows hold, or that carry a stamp on which no worker can
	// write. PutOff is set where a worker still has to roll the group up.
	WrongDisplays(ctx context.Context, group string) ([]lanes.WrongDisplay, error)
	// TakeOffStamps takes the stamps of targets off on which no worker can write. RollUp then shows the group there.
	TakeOffStamps(ctx context.Context, targets []lanes.WrongDisplay) error
	// RollUp shows groups on their targets.
	RollUp(ctx context.Context, groups []string) error
}

// Purpose is what a count is for.
type Purpose uint8

// The purposes.
const (
	Seed   Purpose = iota // a generation that is not displayed yet
	Repair                // one that is displayed
	Verify                // the same, without a write
)

// Config says what to count.
type Config struct {
	Generation Generation
	Purpose    Purpose

	Streams               streamapi.Streams
	StreamARN             string
	PartitionKey, SortKey string // the table's, for an endpoint that does not describe them
	Leases                leases.Store
	// Items gives f every item of the table as it is in a consistent scan; f may be called side by side.
	Items func(ctx context.Context, f func(key change.Key, image change.Image) error) error

	Logger   *slog.Logger   // default slog.Default()
	Progress func(Progress) // called by one goroutine at a time
	TempDir  string         // for what memory does not hold; "": the system's
	Unique   func() string  // names a count as no other one; default crypto/rand.Text

	Margin time.Duration // see MarginDefault
	Delay  time.Duration // see DelayDefault
}

const (
	// MarginDefault bounds how far this process's clock and the times of records differ: DynamoDB floors the latter to the second, and
	// hosts with a time service differ by less than a second (AWS, "Amazon Time Sync Service").
	MarginDefault = 5 * time.Second
	// DelayDefault is how long a record may usually take until it can be read. A later one begins a new generation.
	DelayDefault = 5 * time.Second
	// looksMax is how often Verify looks at a group that seems wrong, before it says that it cannot decide.
	looksMax = 5
	// startsMax is how often a count begins because the stream dropped records that it needs, or leases were set back. Then a new
	// generation begins, whose rows of shards are made from what the leases say by then.
	startsMax = 8
	// againFirst and againLast bound the pause before that. It doubles: a count takes the shards from their owners whenever it begins, and
	// these need time to claim them anew and to read on.
	againFirst, againLast = time.Second, 30 * time.Second
	// groupsAtOnce are worked off side by side.
	groupsAtOnce = 16
	// readsMax is how often a count reads on for one group, a second or more each time, until it begins anew.
	readsMax = 30
	// sortBytes is the memory of each of the two sorters.
	sortBytes = 32 << 20
)

// Progress is how far a count is.
type Progress struct {
	Items  int64 // scanned
	Groups int64 // done
}

// Result is what a count has found.
type Result struct {
	Items, Groups int64
	Findings      []Finding // by group. A Repair has mended them
	Parked        int64     // targets that show something else and are parked: no process corrects them until that is retried or discarded
	// Undecided says why a Verify could not decide on some or all groups; "" if it could.
	Undecided string
}

// Finding is a group whose rows do not add up to what the items say, or a target that shows something else than the rows do.
type Finding struct {
	Group      string
	Want, Have tally.Amount        // of the rows
	Display    *lanes.WrongDisplay // nil: the rows are wrong
}

// errAgain says why a count must begin anew.
type errAgain struct{ why string }

func (e errAgain) Error() string { return e.why }

// Run counts.
func Run(ctx context.Context, cfg Config) (Result, error) {
	cfg.Margin, cfg.Delay = cmp.Or(cfg.Margin, MarginDefault), cmp.Or(cfg.Delay, DelayDefault)
	cfg.Logger = cmp.Or(cfg.Logger, slog.Default())
	if cfg.Unique == nil {
		cfg.Unique = rand.Text
	}
	if cfg.Progress == nil {
		cfg.Progress = func(Progress) {}
	}
	var mended []Finding // before the count began anew
	for starts := 1; ; starts++ {
		result, err := attempt(ctx, cfg)
		result.Findings = slices.Concat(mended, result.Findings)
		slices.SortStableFunc(result.Findings, byGroup)
		again, ok := errors.AsType[errAgain](err)
		switch {
		case !ok:
			return result, err
		case starts == startsMax && cfg.Purpose == Verify:
			return Result{Undecided: again.why}, nil
		case starts == startsMax:
			return Result{}, cfg.Generation.Recount(ctx, again.why)
		}
		if cfg.Purpose == Repair {
			mended = result.Findings
		}
		cfg.Logger.InfoContext(ctx, "a count begins anew", "rule", cfg.Generation.Rule(), "reason", again.why)
		if pace.Sleep(ctx, min(againFirst<<min(starts-1, 10), againLast)) != nil {
			return Result{}, context.Cause(ctx)
		}
	}
}

// count is one attempt.
type count struct {
	Config
	reader   *reader
	evidence *evidence
	result   Result
}

// attempt counts once. An errAgain says that another one may succeed.
func attempt(ctx context.Context, cfg Config) (Result, error) {
	c := &count{Config: cfg}
	var err error
	if c.evidence, err = newEvidence(cfg.TempDir); err != nil {
		return Result{}, err
	}
	defer c.evidence.close()
	if err := c.begin(ctx); err != nil {
		return Result{}, err
	}
	if err := c.scan(ctx); err != nil {
		return Result{}, err
	}
	end := time.Now()
	// What was written before the end of the scan can be read then, and the times of later records are later.
	if pace.Sleep(ctx, 2*c.Margin+c.Delay) != nil {
		return Result{}, context.Cause(ctx)
	}
	if err := c.reader.readOn(ctx); err != nil {
		return Result{}, err
	}
	extent := lanes.CountExtent{ID: c.Unique(), Until: end.Add(c.Margin), Read: c.reader.positions()}
	c.reader.setExtent(extent)
	if c.Purpose == Verify {
		if c.result.Undecided, err = c.lateRecordReason(ctx); err != nil || c.result.Undecided != "" {
			return c.result, err
		}
	} else if err := c.Generation.NoteCount(ctx, extent); err != nil {
		return Result{}, err
	}
	if err := c.compareGroups(ctx); err != nil || c.Purpose == Verify {
		return c.result, err
	}
	// A record that could not be read until now may be of a group without any other: the count begins anew. A worker that reads one later
	// knows the extent. Verify may leave that to the workers.
	return c.result, c.reader.readOn(ctx)
}

// parkedAtOnce is how many items that the rule cannot read are set aside together.
const parkedAtOnce = 50

// scan keeps what the items of the table add. If the rule is new, no record tells of items that it cannot read: they are set aside here.
func (c *count) scan(ctx context.Context) error {
	var mu sync.Mutex
	var unread []change.Key
	park := func(atLeast int, keys ...change.Key) error {
		mu.Lock()
		unread = append(unread, keys...)
		var now []change.Key
		if len(unread) >= atLeast {
			now, unread = unread, nil
		}
		mu.Unlock()
		if len(now) == 0 {
			return nil
		}
		return c.Generation.Park(ctx, now)
	}
	items := newCounter(func(n int64) { c.Progress(Progress{Items: n}) })
	err := c.Items(ctx, func(key change.Key, image change.Image) error {
		items.add()
		if c.Purpose != Seed {
			if group, shown, operations := c.Generation.TargetOf(key, image); group != "" {
				if err := c.evidence.addTarget(group, key, target{shown, operations}); err != nil {
					return err
				}
			}
		}
		amounts, unreadable := c.Generation.Amounts(key, image)
		if unreadable != nil && c.Purpose == Seed {
			if err := park(parkedAtOnce, key); err != nil {
				return err
			}
		}
		return c.evidence.addItem(key, amounts, 0)
	})
	if err == nil {
		err = park(0)
	}
	c.result.Items = items.n
	return err
}

// lateRecordReason says whether a record came so late that a count before this one has not known it: its reader is about to find that out,
// too.
func (c *count) lateRecordReason(ctx context.Context) (string, error) {
	extents, err := c.Generation.CountExtents(ctx)
	if err != nil {
		return "", err
	}
	for _, m := range extents {
		if m.Until.After(c.reader.lateUntil) {
			return "the rule was counted anew meanwhile", nil
		}
		if shard := c.reader.lateFor(m); shard != "" {
			return "a record of shard " + shard + " came after a count had read on: the rule will be counted anew", nil
		}
	}
	return "", nil
}
