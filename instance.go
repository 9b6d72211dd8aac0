package dynamill

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/emf"
	"github.com/dynamill/dynamill/internal/following"
	"github.com/dynamill/dynamill/internal/handlers"
	"github.com/dynamill/dynamill/internal/object"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/rules"
)

// instance is an engine under the rules that it was opened with, and all that hangs on it.
type instance struct {
	*projections.Engine
	owner   *Handler
	set     *rules.Set
	table   string
	handler *handlers.Handler
	meter   *emf.Meter
	stale   atomic.Bool // newer rules are registered: the engine does nothing any more
	agreed  bool        // it was opened for a replay that is to begin, and has changed rules
}

// ready returns the instance, and opens another one if newer rules have been registered since.
func (h *Handler) ready(ctx context.Context) (*instance, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.current != nil && !h.current.stale.Load() {
		return h.current, nil
	}
	return h.open(ctx, false)
}

// reopen opens another instance, under the rules as they are now.
func (h *Handler) reopen(ctx context.Context, changeRules bool) (*instance, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.open(ctx, changeRules)
}

// openAgreed opens an instance for a replay that is to begin, and that may change the rules.
func (h *Handler) openAgreed(ctx context.Context) (*instance, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	i, err := h.open(ctx, true)
	if err == nil {
		i.agreed = true
	}
	return i, err
}

func (h *Handler) open(ctx context.Context, changeRules bool) (*instance, error) {
	file, err := h.cfg.ReadRules(ctx)
	if err != nil {
		return nil, err
	}
	set, err := compile(file)
	if err != nil {
		return nil, err
	}
	if folded := set.FoldedText(); folded != "" && !h.cfg.BesideRun {
		return nil, &projections.SetupError{
			Problem: "rule " + folded + " counts by stream position, which no function can: Lambda does not tell of which shard a record is",
			Remedy:  "set HandlerConfig.BesideRun, and let `dynamill run --beside-function` keep such rules, or write them without that key",
		}
	}
	table := cmp.Or(h.cfg.Table, set.Table.Name)
	if table == "" {
		return nil, &projections.SetupError{
			Problem: "no table is named", Remedy: "set HandlerConfig.Table, or `name:` under `table:` in the rule file",
		}
	}
	if strings.Contains(table, ":") { // records name their table, not its ARN
		return nil, fmt.Errorf("table %s: give the table's name, not its ARN", table)
	}
	cfg := projections.Config{
		Client: h.cfg.Tables, Table: table, StateTable: cmp.Or(h.cfg.StateTable, table+following.StateSuffix), Rules: set,
		Logger: slog.New(handlers.Traced(h.cfg.Logger.Handler())), Worker: h.cfg.Worker, FanOutMax: h.cfg.FanOutMax,
		DueOnly: true,
	}
	agreedEpoch := 0
	if changeRules { // those that are in force now, and none that come into force meanwhile
		found, err := projections.Compare(ctx, h.cfg.Tables, cfg.StateTable, set)
		if err != nil {
			return nil, fmt.Errorf("comparing the rules with those in force in table %s: %w", table, err)
		}
		agreedEpoch = found.Epoch
	}
	engine, err := projections.OpenChanging(ctx, cfg, agreedEpoch)
	if changed := new(projections.RulesChangedError); errors.As(err, &changed) {
		return nil, changed // a state machine knows it by its type
	}
	if err != nil {
		return nil, fmt.Errorf("starting on table %s: %w", table, inProgram(err))
	}
	i := &instance{Engine: engine, owner: h, set: set, table: table, meter: &emf.Meter{Out: h.cfg.Metrics, Table: table}}
	i.openHandler()
	if fresh := engine.Describe().NewRules; len(fresh) > 0 {
		h.cfg.Logger.Warn("rules are not seeded yet: seed them by `dynamill replay`; until then they do not show all that they derive", "rules",
			fresh)
	}
	h.current = i
	return i, nil
}

// noteTime is how long the note of missing targets takes at most: the answer of the invocation waits for it.
const noteTime = 200 * time.Millisecond

// noteMissing writes down which targets are missing, at most once a minute, unless the invocation is about to end.
func (i *instance) noteMissing(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < 2*noteTime {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, noteTime)
	defer cancel()
	return i.RecordMissing(ctx, false)
}

func (i *instance) openHandler() {
	cfg := handlers.Config{
		Processor: i, Rederiver: i, Parker: i, Tasks: i, Replays: replayer{i},
		Table: i.table, PartitionKey: i.set.Table.PartitionKey, SortKey: i.set.Table.SortKey, Logger: i.owner.cfg.Logger, PieceFirst: pieceFirst,
	}
	if client := i.owner.cfg.S3; client != nil {
		cfg.ReadObject = func(ctx context.Context, name string) ([]byte, error) {
			return object.Read(ctx, client, name, lateObjectMax)
		}
	}
	i.handler = handlers.New(cfg)
}

// lateObjectMax leaves room for the 6 MB of a late batch as a string with every quote escaped.
const lateObjectMax = 32 << 20

// Process is the engine's; like the methods below it notices when newer rules have been registered.
func (i *instance) Process(ctx context.Context, records []change.Record) (int, error) {
	done, err := i.Engine.Process(ctx, records)
	return done, i.noted(err)
}

// RederiveRecords is the engine's.
func (i *instance) RederiveRecords(ctx context.Context, records []change.Record) error {
	return i.noted(i.Engine.RederiveRecords(ctx, records))
}

// WorkTasks is the engine's.
func (i *instance) WorkTasks(ctx context.Context) (pieces, waiting int, err error) {
	did, err := i.Engine.WorkTasks(ctx)
	return did.Pieces, did.Waiting, i.noted(err)
}

func (i *instance) noted(err error) error {
	if errors.Is(err, projections.ErrEpochMoved) {
		i.stale.Store(true)
	}
	return err
}
