package adversary

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"time"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/replay"
	"github.com/dynamill/dynamill/internal/replay/sources"
	"github.com/dynamill/dynamill/internal/rules"
)

// Replay is what a process is started for that replays. If it comes to no end,
// another takes the replay up again.
type Replay struct {
	Segments int
	Changes  bool         // the rules in force may be changed
	OneOf    int          // if not 0: the items of one rule only, chosen by this
	Keys     []change.Key // an export, kept from whenever; nil: a scan
	Name     string       // of the export
	Restart  bool         // what a replay like it has done is forgotten
	InSteps  bool         // the pieces are given out one by one, as a state machine does
}

// whole reports whether the replay goes over the table as it is.
func (r Replay) whole() bool { return r.Keys == nil && r.OneOf == 0 }

// replaying is a replay that is not done.
type replaying struct {
	Replay
	worker *Worker // nil if no worker works on it
}

// StartReplay starts so many processes that replay the same, and share the work.
func (c *Crew) StartReplay(r Replay, processes int) {
	for range processes {
		rp := &replaying{Replay: r}
		c.replays = append(c.replays, rp)
		c.resume(rp)
	}
}

// FinishReplay has a replay done to its end, after all faults, beside the workers that
// share the stream where the end is in company. It is how rules are changed at last.
func (c *Crew) FinishReplay(r Replay) error {
	for range c.Company {
		c.Start()
	}
	for {
		w := c.resume(&replaying{Replay: r})
		err := c.until(w.over)
		if err == nil && errors.Is(w.err, projections.ErrEpochMoved) {
			continue // rules are counted anew: the operator starts it again
		}
		c.KillAll()
		return errors.Join(err, w.err)
	}
}

// idleReplays are those that no worker works on.
func (c *Crew) idleReplays() []*replaying {
	return slices.DeleteFunc(slices.Clone(c.replays), func(r *replaying) bool { return r.worker != nil })
}

// resume has a new worker replay, with the rule file of now.
func (c *Crew) resume(r *replaying) *Worker {
	c.Counts[Replayed]++
	world := c.World
	r.worker = c.hire(func(ctx context.Context, w *Worker) error { return w.replays(ctx, world, r.Replay) })
	r.worker.replay = r
	return r.worker
}

// reapReplay takes note that a worker has ended: the replay is done, or another worker is to take it up.
func (c *Crew) reapReplay(w *Worker) {
	if w.replay == nil {
		return
	}
	w.replay.worker = nil
	if !w.dead && w.err == nil {
		c.replays = slices.DeleteFunc(c.replays, func(r *replaying) bool { return r == w.replay })
	}
}

// open opens an engine as `dynamill replay` does.
func (r Replay) open(ctx context.Context, config projections.Config) (*projections.Engine, error) {
	switch {
	case !r.whole():
		return projections.OpenAttached(ctx, config)
	case r.Changes:
		return projections.OpenChanging(ctx, config, projections.AnyEpoch)
	}
	return projections.Open(ctx, config)
}

// replays replays as `dynamill replay` does.
func (w *Worker) replays(ctx context.Context, world World, r Replay) error {
	set, err := w.sets.load(world.RuleFile)
	if err != nil {
		return err
	}
	engine, err := r.open(ctx, w.config(world, set))
	if refused := new(projections.SetupError); !r.whole() && errors.As(err, &refused) {
		return nil // of a table whose rules are not in force there is nothing to mend
	}
	if err != nil {
		return err
	}
	err = w.replaysWith(ctx, world, r, set, engine)
	if refused := new(projections.SetupError); engine.Folds() && errors.As(err, &refused) {
		return nil // a process that reads the stream is to count the table, and brings into force what is left
	}
	return err
}

// replaysWith replays with an engine that is open.
func (w *Worker) replaysWith(ctx context.Context, world World, r Replay, set *rules.Set, engine *projections.Engine) error {
	cfg := replay.Config{
		Engine: inLanes{engine}, State: w.client, StateTable: world.StateTable, Version: versionOf(set),
		Parallel: piecesMax, Worker: w.String(), Term: world.LeaseTerm, Unique: w.unique(), Restart: r.Restart,
		Scan: sources.ScanConfig{
			Client: w.client, Segments: r.Segments, Keys: sources.KeyNames{Partition: set.Table.PartitionKey, Sort: set.Table.SortKey},
		},
	}
	if r.Keys != nil {
		cfg.Source = export{r.Name, r.Keys}
	}
	if r.OneOf != 0 {
		if _, left, err := engine.NextPass(ctx); err != nil || left > 0 {
			return err // rules are brought into force together
		}
		cfg.Rules = []string{set.Rules[r.OneOf%len(set.Rules)].Name}
	}
	if r.InSteps {
		return inSteps(ctx, cfg)
	}
	_, err := replay.Run(ctx, cfg)
	return err
}

// invocationTerms is how long an invocation may take that works on a piece: it must
// see that no other one does.
const invocationTerms = 2

// inSteps replays in invocations of a function, for the step that was asked for last.
func inSteps(ctx context.Context, cfg replay.Config) error {
	for step := (replay.Step{}); ; {
		next, err := replay.Next(ctx, cfg, step)
		if err != nil || next.Done() {
			return err
		}
		for _, piece := range next.Pieces {
			for done := false; !done; {
				if done, err = replay.WorkPiece(ctx, cfg, next, piece, time.Now().Add(invocationTerms*cfg.Term)); err != nil {
					return err
				}
			}
		}
		step = next
	}
}

// unique names what is unique within a history, the same in every run of it.
func (w *Worker) unique() func() string {
	n := 0
	return func() string {
		n++
		return fmt.Sprintf("%s-%d", w, n)
	}
}

func versionOf(set *rules.Set) string {
	h := fnv.New64a()
	for _, r := range set.Rules {
		fmt.Fprintf(h, "%q %q\n", r.Name, r.Fingerprint)
	}
	return strconv.FormatUint(h.Sum64(), 36)
}

// inLanes is an engine that works off every page in a lane of its own: pages are
// worked off at once, and may make the same calls.
type inLanes struct{ *projections.Engine }

// Work works off a page.
func (e inLanes) Work(ctx context.Context, pass string, keys []change.Key) error {
	h := fnv.New32a()
	fmt.Fprint(h, pass, keys)
	return e.Engine.Work(context.WithValue(ctx, laneKey{}, int(h.Sum32())), pass, keys)
}

// piecesMax is how many pieces a source has at most. All are worked on at once:
// which comes first goes by a name that is drawn at random.
const piecesMax = 3

// export is a source that lists keys as they once were.
type export struct {
	name string
	keys []change.Key
}

const exportPage = 2

// Describe names the export.
func (e export) Describe() string { return fmt.Sprintf("export %s of %d items", e.name, len(e.keys)) }

// Pieces are its files.
func (e export) Pieces(context.Context) ([]sources.Piece, error) {
	pieces := make([]sources.Piece, piecesMax)
	for i := range pieces {
		pieces[i] = sources.Piece{Name: strconv.Itoa(i)}
	}
	return pieces, nil
}

// Read reads some keys of a file.
func (e export) Read(_ context.Context, piece sources.Piece, cursor string) (sources.Page, error) {
	file, err := strconv.Atoi(piece.Name)
	at, failed := strconv.Atoi("0" + cursor)
	if err = errors.Join(err, failed); err != nil {
		return sources.Page{}, err
	}
	keys := e.keys[len(e.keys)*file/piecesMax : len(e.keys)*(file+1)/piecesMax]
	page := keys[min(at, len(keys)):min(at+exportPage, len(keys))]
	return sources.Page{Keys: page, Items: int64(len(page)), Next: strconv.Itoa(at + exportPage), Last: at+exportPage >= len(keys)}, nil
}
