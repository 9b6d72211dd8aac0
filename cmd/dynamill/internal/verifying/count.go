package verifying

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/progress"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/session"
	"github.com/dynamill/dynamill/internal/counting"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/following"
	"github.com/dynamill/dynamill/internal/printable"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/replay/verify"
	"github.com/dynamill/dynamill/internal/tally"
)

// unitsOfCount is about what mending one group costs, or one display.
const unitsOfCount = 1

// count judges the rules that count by stream position, each by a scan of its own and the stream. It judges all of their groups, whatever
// the sample is.
func (r *verification) count(ctx context.Context, w *session.Session, summary *verify.Summary) error {
	names := slices.DeleteFunc(w.Set.Folded(), func(name string) bool {
		return slices.Contains(r.waiting, name) || len(r.options.Rules) > 0 && !slices.Contains(r.options.Rules, name)
	})
	if len(names) == 0 {
		return nil
	}
	cfg, why, err := r.countConfig(ctx, w)
	if err != nil {
		return err
	}
	if why != "" {
		summary.Undecided[why] += int64(len(names))
		return nil
	}
	engine, err := projections.OpenAttached(ctx, w.EngineConfig(r.options.Budget))
	if err != nil {
		return err
	}
	var at atomic.Pointer[counting.Progress]
	cfg.Progress = func(p counting.Progress) { at.Store(&p) }
	generations := engine.Generations()
	for _, name := range names {
		if !slices.ContainsFunc(generations, func(g *projections.Generation) bool { return g.Rule() == name }) {
			summary.Undecided["rule "+name+" is being counted anew"]++
		}
	}
	for _, g := range generations {
		if !slices.Contains(names, g.Rule()) {
			continue
		}
		at.Store(&counting.Progress{})
		stop := progress.Start(ctx, w.Screen, w.Logger, func() progress.State { return countState(g.Rule(), *at.Load()) })
		cfg.Generation = g
		found, err := counting.Run(ctx, cfg)
		stop()
		if errors.Is(err, projections.ErrEpochMoved) {
			found, err = counting.Result{Undecided: "the rules have changed, or the rule is counted anew: verify again"}, nil
		}
		if err == nil {
			err = r.noteCount(g.Rule(), found, summary)
		}
		if err != nil {
			return fmt.Errorf("counting rule %s: %w", g.Rule(), err)
		}
	}
	return nil
}

// countConfig is what the counts of all rules have in common. It says why none is possible, if so.
func (r *verification) countConfig(ctx context.Context, w *session.Session) (cfg counting.Config, why string, err error) {
	table, err := w.Env.Describe(ctx)
	if err != nil {
		return cfg, "", err
	}
	keys := w.Set.Table
	cfg = counting.Config{
		Purpose: counting.Verify, Streams: w.Env.Streams, StreamARN: following.EnabledStream(table), PartitionKey: keys.PartitionKey,
		SortKey: keys.SortKey, Leases: w.Env.Leases(), Logger: w.Logger, TempDir: r.options.TempDir,
		Items: func(ctx context.Context, f func(change.Key, change.Image) error) error {
			return r.scans.Items.Each(ctx, func(item change.Item) error { return f(keys.KeyOf(item), item) })
		},
	}
	if r.options.Repair {
		cfg.Purpose = counting.Repair
	}
	if cfg.StreamARN == "" {
		return cfg, "the rule counts by stream position, and the table has no stream", nil
	}
	_, exists, err := w.Env.Leases().Read(ctx)
	if err == nil && !exists {
		why = "the rule counts by stream position, and no process has ever followed the stream"
	}
	return cfg, why, err
}

func countState(rule string, p counting.Progress) progress.State {
	s := progress.State{Message: "counting", Phase: "counting rule " + rule, Done: p.Items, Unit: "items",
		Attributes: []any{"rule", rule, "items", p.Items, "groups", p.Groups}}
	if p.Groups > 0 {
		s.Notes = []string{"groups " + printable.Grouped(p.Groups)}
	}
	return s
}

// noteCount reports what a count has found, and mended.
func (r *verification) noteCount(rule string, found counting.Result, summary *verify.Summary) error {
	summary.Parked += found.Parked
	if found.Undecided != "" {
		summary.Undecided[found.Undecided]++
	}
	for _, f := range found.Findings {
		shown := drift.Finding{Rule: rule, Kind: drift.Sum, What: drift.Wrong, Group: f.Group, WriteUnits: unitsOfCount,
			Expected: amountText(f.Want), Found: amountText(f.Have)}
		if d := f.Display; d != nil {
			shown.Kind, shown.Item, shown.Attribute, shown.Expected, shown.Found = drift.Display, d.Item, d.Attribute, d.Want, d.Have
		}
		result := verify.Result{Finding: shown, Status: verify.Drifted}
		if r.options.Repair {
			result.Status = verify.Repaired
			summary.Repaired++
		}
		summary.All++
		summary.Found[shown.Kind]++
		summary.WriteUnits += unitsOfCount
		if err := r.found(result); err != nil {
			return err
		}
	}
	return nil
}

func amountText(a tally.Amount) string {
	if a.Overflow {
		return "no number"
	}
	return a.Value.String() + " from " + printable.Counted(a.Members, "source")
}
