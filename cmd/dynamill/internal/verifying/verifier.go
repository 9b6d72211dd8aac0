package verifying

import (
	"context"
	"errors"
	"fmt"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/environment"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/output"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/progress"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/report"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/session"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/settings"
	"github.com/dynamill/dynamill/internal/pace"
	"github.com/dynamill/dynamill/projections"
	"github.com/dynamill/dynamill/replay/verify"
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

// breakOff says why not everything was verified. What was found by then is worth
// knowing, and what was mended of it is written nowhere else.
func (r *verification) breakOff(ctx context.Context, env *environment.Environment, err error) error {
	r.differences()
	if errors.Is(context.Cause(ctx), session.ErrStopped) {
		return errors.New("stopped before everything was verified: what was found so far may not be all")
	}
	return env.Classify(fmt.Errorf("verifying table %q: %w", env.Table, env.TellLostState(ctx, err)))
}

// judge wires everything together.
func (r *verification) judge(ctx context.Context, w *session.Session) (*verify.Summary, error) {
	options := r.options
	audit, err := projections.OpenAudit(ctx, w.AuditConfig(options.Rules))
	if err != nil {
		return nil, err
	}
	r.waiting = judgedRules(audit.Waiting(), options.Rules)
	reading := verify.NewReadPace(options.ReadRateMax)
	items := &verify.Scan{Client: w.Env.Tables, TableName: w.Table, Segments: options.Segments, Pace: reading}
	rows := &verify.Scan{Client: w.Env.Tables, TableName: w.Env.StateTable, Segments: options.Segments, Pace: reading}
	r.readUnits = func() float64 { return items.ReadUnits() + rows.ReadUnits() }
	cfg := verify.Config{
		Auditor: audit, Items: items, Rows: rows, Logger: w.Logger, MemoryBytes: options.memoryBytes, TempDir: options.TempDir,
		Settle: options.Settle, Wait: options.waitOrNone(), Sample: options.share, SampleSeed: options.SampleSeed, Found: r.found,
	}
	stream, err := unappliedStream(ctx, w.Env, w.Set.Table, options.LagMax, &r.leases)
	if err != nil {
		return nil, err
	}
	if stream != nil {
		cfg.Pending, r.blind = stream, stream.Blind
	}
	r.streamless = stream == nil
	if options.Repair {
		engineConfig := w.EngineConfig()
		engineConfig.Attach = true
		if options.WriteRateMax > 0 {
			engineConfig.Limiter = pace.New(options.WriteRateMax)
		}
		engine, err := projections.Open(ctx, engineConfig)
		if err != nil {
			return nil, err
		}
		cfg.Mender = mender{audit, engine}
	}
	watch := &Watch{Message: "verifying", screen: w.Screen, leases: &r.leases, wait: options.Wait, settle: options.Settle}
	watch.Counts, _ = environment.CountsOf(ctx, w.Env) // without them no total is shown
	cfg.Progress = watch.Note
	stop := progress.Start(ctx, w.Screen, w.Logger, watch.State)
	defer stop()
	summary, err := verify.Run(ctx, cfg)
	if err != nil {
		return nil, err
	}
	inspected, err := projections.Inspect(ctx, w.Env.Tables, w.Env.StateTable)
	if err != nil {
		return nil, err
	}
	for _, n := range inspected.Parked {
		r.parkedEntries += n
	}
	r.seen, err = report.SightingsOfAudit(ctx, audit)
	return summary, err
}

// mender mends with an engine what rederiving can mend, and with the audit the rest.
type mender struct {
	*projections.Audit
	engine *projections.Engine
}

// Rederive brings items' effects to what the items ask for.
func (m mender) Rederive(ctx context.Context, keys []change.Key) error {
	return m.engine.Rederive(ctx, keys)
}
