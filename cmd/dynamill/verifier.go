package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/progress"
	"github.com/dynamill/dynamill/internal/pace"
	"github.com/dynamill/dynamill/projections"
	"github.com/dynamill/dynamill/replay/verify"
)

// verifyTable compares what is derived with what it should be, and mends it if asked to.
func verifyTable(ctx context.Context, out *output, s *settings, options verifyOptions) error {
	ctx, w, end, err := begin(ctx, out, s, options.rules)
	if err != nil {
		return err
	}
	defer end()
	if err := w.connect(ctx); err != nil {
		return err
	}
	report := newVerifyReport(out, options)
	summary, err := report.judge(ctx, w)
	if err != nil {
		return report.breakOff(ctx, w.env, err)
	}
	report.end(summary)
	return report.facts(summary).failure(options.repair)
}

// breakOff says why not everything was verified. What was found by then is worth
// knowing, and what was mended of it is written nowhere else.
func (r *verifyReport) breakOff(ctx context.Context, env *environment, err error) error {
	r.differences()
	if errors.Is(context.Cause(ctx), errStopped) {
		return errors.New("stopped before everything was verified: what was found so far may not be all")
	}
	return env.classify(fmt.Errorf("verifying table %q: %w", env.table, env.tellLostState(ctx, err)))
}

// judge wires everything together.
func (r *verifyReport) judge(ctx context.Context, w *session) (*verify.Summary, error) {
	options := r.options
	audit, err := projections.OpenAudit(ctx, w.auditConfig(options.rules))
	if err != nil {
		return nil, err
	}
	r.waiting = judgedRules(audit.Waiting(), options.rules)
	reading := verify.NewReadPace(options.readRateMax)
	items := &verify.Scan{Client: w.env.tables, TableName: w.table, Segments: options.segments, Pace: reading}
	rows := &verify.Scan{Client: w.env.tables, TableName: w.env.stateTable, Segments: options.segments, Pace: reading}
	r.readUnits = func() float64 { return items.ReadUnits() + rows.ReadUnits() }
	cfg := verify.Config{
		Auditor: audit, Items: items, Rows: rows, Logger: w.logger, MemoryBytes: options.memoryBytes, TempDir: options.tempDir,
		Settle: options.settle, Wait: options.waitOrNone(), Sample: options.share, SampleSeed: options.sampleSeed, Found: r.found,
	}
	stream, err := unappliedStream(ctx, w.env, w.set.Table, options.lagMax, &r.leases)
	if err != nil {
		return nil, err
	}
	if stream != nil {
		cfg.Pending, r.blind = stream, stream.Blind
	}
	r.streamless = stream == nil
	if options.repair {
		engineConfig := w.engineConfig()
		engineConfig.Attach = true
		if options.writeRateMax > 0 {
			engineConfig.Limiter = pace.New(options.writeRateMax)
		}
		engine, err := projections.Open(ctx, engineConfig)
		if err != nil {
			return nil, err
		}
		cfg.Mender = mender{audit, engine}
	}
	watch := &verifyWatch{message: "verifying", screen: w.screen, leases: &r.leases, wait: options.wait, settle: options.settle}
	watch.counts, _ = countsOf(ctx, w.env) // without them no total is shown
	cfg.Progress = watch.note
	stop := progress.Start(ctx, w.screen, w.logger, watch.state)
	defer stop()
	summary, err := verify.Run(ctx, cfg)
	if err != nil {
		return nil, err
	}
	inspected, err := projections.Inspect(ctx, w.env.tables, w.env.stateTable)
	if err != nil {
		return nil, err
	}
	for _, n := range inspected.Parked {
		r.parkedEntries += n
	}
	r.seen, err = sightingsOfAudit(ctx, audit)
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
