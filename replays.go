package dynamill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/handlers"
	"github.com/dynamill/dynamill/internal/replay"
	"github.com/dynamill/dynamill/internal/replay/sources"
	"github.com/dynamill/dynamill/internal/replayerror"
	"github.com/dynamill/dynamill/internal/rules"
)

// piecesBytesMax bounds the names that one step gives out: a state takes 256 KiB, which hold the step itself too (Step
// Functions developer guide, "Service quotas").
const piecesBytesMax = 128 << 10

// replayState is the step that a state machine passes on; the pieces are given out beside it.
type replayState struct {
	handlers.ReplayRequest
	Version string      `json:"version"` // of the rules under which it was begun
	At      replay.Step `json:"at"`
	Open    int         `json:"open"` // pieces that were not done when the step was made
}

// named gives an error of a replay the name that a state machine knows it by.
func named(err error) error {
	if sources.IsDamage(err) {
		return &replayerror.DamagedFileError{Err: err}
	}
	return err
}

// replayer works off replays with an instance's engine.
type replayer struct{ *instance }

// BeginReplay reads the rules anew: this environment may have been started under others.
// If it was started for this very replay, the caller has agreed already.
func (r replayer) BeginReplay(ctx context.Context, request handlers.ReplayRequest) (handlers.ReplayStep, error) {
	opened, err := r.owner.reopen(ctx, request.ChangeRules && !r.agreed)
	if err != nil {
		return handlers.ReplayStep{}, err
	}
	now := replayer{opened}
	if err := now.check(ctx, request); err != nil {
		return handlers.ReplayStep{}, err
	}
	return now.next(ctx, replayState{ReplayRequest: request, Version: replay.VersionOf(now.set)})
}

// check refuses what `dynamill replay` refuses.
func (r replayer) check(ctx context.Context, request handlers.ReplayRequest) error {
	for _, name := range request.Rules {
		if !slices.ContainsFunc(r.set.Rules, func(rule *rules.Rule) bool { return rule.Name == name }) {
			return &handlers.PayloadError{Reason: fmt.Sprintf("there is no rule %q", name)}
		}
	}
	pass, left, err := r.NextPass(ctx)
	if err != nil {
		return r.noted(err)
	}
	if left > 0 && len(request.Rules) > 0 {
		return &handlers.PayloadError{Reason: fmt.Sprintf("rule %s is not in force yet, and rules are brought into force together: replay "+
			"without rules first", strings.Join(r.RulesOf(pass), ", "))}
	}
	return nil
}

// NextReplay completes the pieces of a step, and gives out those of the next one.
func (r replayer) NextReplay(ctx context.Context, step json.RawMessage) (handlers.ReplayStep, error) {
	now, s, err := r.resume(ctx, step)
	if err != nil {
		return handlers.ReplayStep{}, err
	}
	return now.next(ctx, s)
}

// next gives out pieces of the next pass. Those that failed come again with a later step as long as others get done:
// each step of a pass has fewer left than the one before, so the replay ends.
func (r replayer) next(ctx context.Context, s replayState) (handlers.ReplayStep, error) {
	cfg, err := r.config(ctx, s.ReplayRequest)
	if err != nil {
		return handlers.ReplayStep{}, err
	}
	defer closeSource(cfg.Source)
	step, err := replay.Next(ctx, cfg, s.At)
	if err != nil {
		return handlers.ReplayStep{}, r.noted(err)
	}
	same := step.Run == s.At.Run && step.Generation == s.At.Generation && step.Number == s.At.Number
	if !step.Done() && same && len(step.Pieces) >= s.Open {
		return handlers.ReplayStep{}, &replayerror.ReplayStuckError{Source: step.Source, Pieces: step.Pieces}
	}
	pieces := step.Pieces
	s.At, s.Open = step, len(pieces)
	s.At.Pieces = nil
	raw, err := json.Marshal(s)
	return handlers.ReplayStep{Step: raw, Pieces: pieces[:fitting(pieces)], Left: step.Left, Finished: step.Done()}, err
}

// fitting is how many names may be given out at once.
func fitting(names []string) int {
	size := 0
	for i, name := range names {
		if size += len(name) + len(`"",`); size > piecesBytesMax {
			return i
		}
	}
	return len(names)
}

// WorkReplay works off one piece of a step.
func (r replayer) WorkReplay(ctx context.Context, step json.RawMessage, piece string, until time.Time) (handlers.ReplayPiece, error) {
	var found handlers.ReplayPiece
	now, s, err := r.resume(ctx, step)
	if err != nil {
		return found, err
	}
	cfg, err := now.config(ctx, s.ReplayRequest)
	if err != nil {
		return found, err
	}
	defer closeSource(cfg.Source)
	cfg.Report = func(p replay.Progress) { found.Items = p.Items }
	found.Done, err = replay.WorkPiece(ctx, cfg, s.At, piece, until)
	return found, named(now.noted(err))
}

// resume reads a step, and returns the replayer that may work on it: this environment may have started under older rules.
func (r replayer) resume(ctx context.Context, step json.RawMessage) (now replayer, s replayState, err error) {
	if err := json.Unmarshal(step, &s); err != nil {
		return r, s, &handlers.PayloadError{Reason: fmt.Sprintf("this is no step of a replay: %v", err)}
	}
	if s.Version == replay.VersionOf(r.set) {
		return r, s, nil
	}
	opened, err := r.owner.reopen(ctx, false)
	if err != nil {
		return r, s, err
	}
	if s.Version != replay.VersionOf(opened.set) {
		return r, s, errors.New("this replay was begun under other rules than the function has now: begin another one")
	}
	return replayer{opened}, s, nil
}

func (r replayer) config(ctx context.Context, request handlers.ReplayRequest) (replay.Config, error) {
	keys := sources.KeyNames{Partition: r.set.Table.PartitionKey, Sort: r.set.Table.SortKey}
	cfg := replay.Config{
		Engine: r.instance, State: r.owner.cfg.Tables, StateTable: r.Describe().StateTable, Rules: request.Rules, Restart: request.Restart,
		Version: replay.VersionOf(r.set), Worker: r.owner.cfg.Worker,
		Scan: sources.ScanConfig{Client: r.owner.cfg.Tables, Keys: keys, Segments: request.Segments},
	}
	if request.Scans() {
		return cfg, nil
	}
	if r.owner.cfg.S3 == nil {
		return cfg, &handlers.PayloadError{Reason: "this function reads no exports: it has no client of S3"}
	}
	export, err := sources.OpenExport(ctx, sources.FilesConfig{Place: request.Source, S3: r.owner.cfg.S3, Table: r.table, Keys: keys})
	if err != nil {
		return cfg, named(fmt.Errorf("opening the export %s: %w", request.Source, err))
	}
	cfg.Source = export
	return cfg, nil
}

func closeSource(source sources.Source) {
	if export, ok := source.(*sources.Files); ok {
		_ = export.Close() // only read
	}
}

// Work is the engine's; it notices when newer rules have been registered.
func (i *instance) Work(ctx context.Context, pass string, keys []change.Key) error {
	return i.noted(i.Engine.Work(ctx, pass, keys))
}
