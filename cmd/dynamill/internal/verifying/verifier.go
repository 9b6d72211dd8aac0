// Package verifying is what `verify` does beside internal/replay/verify: it wires tables, stream and engine to a verification,
// shows how far it is, and turns what was found into a report and an exit code. It imports session, report and followed.
package verifying

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/environment"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/followed"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/output"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/session"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/settings"
	"github.com/dynamill/dynamill/internal/following"
	"github.com/dynamill/dynamill/internal/pace"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/projections/audits"
	"github.com/dynamill/dynamill/internal/projections/inspect"
	"github.com/dynamill/dynamill/internal/replay/verify"
	"github.com/dynamill/dynamill/internal/replay/verify/pending"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/internal/tablescan"
)

// Run compares what is derived with what it should be, and mends it if asked to.
func Run(ctx context.Context, out *output.Output, s *settings.Settings, options Options) error {
	ctx, w, end, err := session.Begin(ctx, out, s, options.Rules)
	if err != nil {
		return err
	}
	defer end()
	if err := w.Connect(ctx); err != nil {
		return err
	}
	v := newVerification(out, options)
	summary, err := v.judge(ctx, w)
	if err != nil {
		return v.breakOff(ctx, w.Env, err)
	}
	v.end(summary)
	return v.facts(summary).failure(options.Repair)
}

// breakOff says why not everything was verified, after what was found: what was mended of it is written nowhere else.
func (r *verification) breakOff(ctx context.Context, env *environment.Environment, err error) error {
	r.differences()
	if errors.Is(context.Cause(ctx), session.ErrStopped) {
		return errors.New("stopped before everything was verified: what was found so far may not be all")
	}
	return env.Classify(fmt.Errorf("verifying table %q: %w", env.Table, env.ExplainLostState(ctx, err)))
}

func (r *verification) judge(ctx context.Context, w *session.Session) (*verify.Summary, error) {
	options := r.options
	audit, err := audits.Open(ctx, w.AuditConfig(options.Rules))
	if err != nil {
		return nil, err
	}
	r.waiting = judgedRules(audit.Waiting(), options.Rules)
	r.scans = NewScans(w, options.Segments, options.ReadRateMax)
	cfg := verify.Config{
		Items: r.scans.Items, Rows: r.scans.Rows, MemoryBytes: options.memoryBytes, TempDir: options.TempDir, Settle: options.Settle,
		Wait: options.Wait, Sample: options.share, SampleSeed: options.SampleSeed, Found: r.found,
	}
	stream, err := unappliedStream(ctx, w.Env, w.Set.Table, options.LagMax, &r.leases)
	if err != nil {
		return nil, err
	}
	if stream != nil {
		cfg.Pending = stream
	}
	r.streamless = stream == nil
	if options.Repair {
		engine, err := projections.OpenAttached(ctx, w.EngineConfig(options.Budget))
		if err != nil {
			return nil, err
		}
		cfg.Mender = mender{audit, engine}
	}
	if options.DeleteOrphans && !options.DryRun {
		cfg.Remover = audit
	}
	watch := &Watch{Message: "verifying", screen: w.Screen, leases: &r.leases, wait: options.Wait, settle: options.Settle}
	watch.Counts, _ = environment.CountsOf(ctx, w.Env) // without them no total is shown
	summary, seen, err := watch.Verify(ctx, w, audit, cfg)
	if err != nil {
		return nil, err
	}
	r.seen = seen
	if err := r.count(ctx, w, summary); err != nil {
		return nil, err
	}
	inspected, err := inspect.Read(ctx, w.Env.Tables, w.Env.StateTable)
	if err != nil {
		return nil, err
	}
	for _, n := range inspected.Parked {
		r.parkedEntries += n
	}
	return summary, nil
}

// Scans reads both tables of a session, together at a bounded rate.
type Scans struct{ Items, Rows *tablescan.Table }

// NewScans makes the scans, in so many segments each; 0 is a default.
func NewScans(w *session.Session, segments int, readRateMax float64) Scans {
	reading := pace.New(readRateMax)
	scan := func(table string) *tablescan.Table {
		return &tablescan.Table{Client: w.Env.Tables, TableName: table, Segments: min(segments, ScanSegmentsMax), Pace: reading}
	}
	return Scans{scan(w.Table), scan(w.Env.StateTable)}
}

// ReadUnits are the units consumed so far.
func (s Scans) ReadUnits() float64 { return s.Items.ReadUnits() + s.Rows.ReadUnits() }

// mender mends with an engine what rederiving can mend, and with the audit the rest.
type mender struct {
	*audits.Audit
	*projections.Engine
}

// unappliedStream is the table's stream with how far `run` has applied it; nil if the table has none. Where a function
// follows, nothing of it is known to be applied. The watch is shown the leases at each reading.
func unappliedStream(ctx context.Context, env *environment.Environment, keys rules.Table, lagMax time.Duration,
	watch *followed.Watch) (*pending.Stream, error) {
	table, err := env.Describe(ctx)
	if err != nil {
		return nil, err
	}
	arn := following.EnabledStream(table)
	if arn == "" {
		return nil, nil
	}
	traces, err := env.Traces(ctx)
	if err != nil {
		return nil, err
	}
	return &pending.Stream{
		Client: env.Streams, ARN: arn, PartitionKey: keys.PartitionKey, SortKey: keys.SortKey, LagMax: lagMax,
		Checkpoints: func(ctx context.Context) (map[string]verify.Checkpoint, error) {
			rows, exists, err := env.Leases().Read(ctx)
			if err != nil || !exists {
				return nil, err
			}
			watch.Observe(rows, arn, time.Now())
			if traces.BesideFunction { // what the function has applied is known to Lambda alone
				return nil, nil
			}
			return pending.CheckpointsOf(rows, arn), nil
		},
	}, nil
}
