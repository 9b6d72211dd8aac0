package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/projections"
	"github.com/dynamill/dynamill/replay/verify"
)

const (
	verifySettle   = 10 * time.Second
	verifyPatience = 2 * time.Minute
	verifyMemory   = "128MB"
	verifyMemoryLo = 16 << 20
	verifyLimit    = 100
)

// verifyOptions are the flags of `verify`.
type verifyOptions struct {
	repair             bool
	rules              []string
	sample             string
	sampleSeed         uint64
	memory             string
	tempDir            string
	segments           int
	readRateMax        float64
	writeRateMax       int
	settle, patience   time.Duration
	lagMax             time.Duration
	limit              int
	share              float64 // of --sample
	memoryBytes        int
	sampleSeedWasGiven bool
}

func (o *verifyOptions) addTo(flags *pflag.FlagSet) {
	flags.BoolVar(&o.repair, "repair", false, "mend what is found, beside live traffic")
	flags.StringArrayVar(&o.rules, "rule", nil, "judge this rule only, by its `name`; may be given more than once (default: all)")
	flags.StringVar(&o.sample, "sample", "100%", "judge this `share` of the items, sums and mirror items, drawn at random; the tables are read whole all the same")
	flags.Uint64Var(&o.sampleSeed, "sample-seed", 0, "draw the sample that this `number` drew before (default: another one every time)")
	flags.StringVar(&o.memory, "memory", verifyMemory, "take about this `size` of memory; what is more goes to temporary files")
	flags.StringVar(&o.tempDir, "temp-dir", "", "the `folder` for temporary files: about 150 bytes for each item and each row of the state table\n(default: the system's)")
	flags.IntVar(&o.segments, "segments", 4, "scan each table in this `number` of parallel segments")
	flags.Float64Var(&o.readRateMax, "read-rate", 0, "scan each table with at most this many read `units` per second (0: no bound)")
	flags.IntVar(&o.writeRateMax, "rate", 0, "with --repair: write at most this many write `units` per second (0: no bound)")
	flags.DurationVar(&o.settle, "settle", verifySettle, "count a difference as drift only if it stands this `duration`, and the stream does not explain it")
	flags.DurationVar(&o.patience, "patience", verifyPatience, "wait up to this `duration` for what cannot be decided yet")
	flags.DurationVar(&o.lagMax, "lag-max", 0, "take records that are older than this `duration` for applied; for deployments without a lease table\n(0: none is, unless its checkpoint says so)")
	flags.IntVar(&o.limit, "limit", verifyLimit, "print at most this `number` of differences; with --json all are printed (0: all)")
}

// check refuses what makes no sense, and reads what is not read by then.
func (o *verifyOptions) check(changed func(flag string) bool, typed map[string]bool) (err error) {
	if o.share, err = shareOf(o.sample); err != nil {
		return invalid("--sample %q: %w", o.sample, err)
	}
	if o.memoryBytes, err = sizeOf(o.memory); err != nil {
		return invalid("--memory %q: %w", o.memory, err)
	}
	if o.sampleSeedWasGiven = changed("sample-seed"); !o.sampleSeedWasGiven {
		o.sampleSeed = rand.Uint64N(1 << 53) // what reads the summary as JSON may hold numbers as floats, as jq does
	}
	if info, err := os.Stat(o.tempDir); o.tempDir != "" && (err != nil || !info.IsDir()) {
		return invalid("--temp-dir %q is no folder: make it first", o.tempDir)
	}
	switch {
	case typed["segments"] && (o.segments < 1 || o.segments > scanSegmentsMax):
		return invalid("--segments %d: give a number from 1 to %d", o.segments, scanSegmentsMax)
	case typed["rate"] && !o.repair: // of a file it may be replay's
		return invalid("--rate has no meaning without --repair: add --repair")
	case o.settle <= 0 || o.patience < 0 || o.lagMax < 0:
		return invalid("--settle, --patience and --lag-max want durations such as 30s")
	case o.limit < 0:
		return invalid("--limit %d is negative: give a number, or 0 for all", o.limit)
	}
	o.segments = min(o.segments, scanSegmentsMax) // of a file it may be replay's, which works off few of its segments at a time
	return checkRates(o.writeRateMax, o.readRateMax)
}

// scanSegmentsMax is in how many segments a table is scanned at once.
const scanSegmentsMax = 1000

// shareOf reads 1% or 0.01.
func shareOf(text string) (float64, error) {
	number, percent := strings.CutSuffix(text, "%")
	share, err := strconv.ParseFloat(number, 64)
	if percent {
		share /= 100
	}
	if err != nil || !(share > 0 && share <= 1) {
		return 0, errors.New("give a share such as 1%")
	}
	return share, nil
}

// sizeOf reads 128MB or 1GB.
func sizeOf(text string) (int, error) {
	for _, unit := range []struct {
		suffix string
		bytes  int
	}{{"GB", 1 << 30}, {"MB", 1 << 20}} {
		if number, ok := strings.CutSuffix(text, unit.suffix); ok {
			n, err := strconv.Atoi(number)
			if err != nil || n <= 0 || n > 1<<20 || n*unit.bytes < verifyMemoryLo {
				break
			}
			return n * unit.bytes, nil
		}
	}
	return 0, fmt.Errorf("give a size such as %s, at least %dMB", verifyMemory, verifyMemoryLo>>20)
}

func (a *app) verifyCommand() *cobra.Command {
	var options verifyOptions
	command := &cobra.Command{
		Use:   "verify",
		Short: "Compares what is derived with what it should be, and mends it if asked to",
		Long: "Reads the whole table and the state table, works out what everything derived should be, and lists the\n" +
			"differences: missing, wrong and surplus copies, mirror items, counts and sums, ledger entries, references and\n" +
			"locators. It writes nothing without --repair, and may run beside `dynamill run` or the function.\n\n" +
			"A scan is no snapshot, and what has just been written is not derived yet. So every difference is looked at again:\n" +
			"it counts as drift only if it stands for --settle and no record that is still to be applied could be the cause.\n" +
			"What cannot be decided within --patience is counted, and told apart. What is parked is left out.\n\n" +
			"With --json every difference is a line, and the last line is the summary. The exit code is 4 where drift was\n" +
			"found, and with --repair where some of it could not be mended.\n\n" + configurationHelp,
		Example: "  dynamill verify --table app\n  dynamill verify --table app --sample 1% --json\n  dynamill verify --table app --repair --rate 100",
		Args:    cobra.NoArgs,
		PreRunE: func(cmd *cobra.Command, _ []string) error { return options.check(cmd.Flags().Changed, a.typed) },
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.verify(cmd.Context(), options) },
	}
	options.addTo(command.Flags())
	return command
}

func (a *app) verify(ctx context.Context, options verifyOptions) error {
	ctx, j, end, err := a.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	if err := j.checkRules(options.rules); err != nil {
		return err
	}
	env, err := a.options.connect(ctx, j.table, j.logger)
	if err != nil {
		return err
	}
	report := newVerifyReport(a, options.limit)
	summary, err := a.verifyTable(ctx, j, env, options, report)
	j.status.show("")
	if err != nil {
		return report.breakOff(ctx, env, err)
	}
	if err := report.end(summary); err != nil {
		return err
	}
	if n := summary.Drift(); n > 0 {
		what := "found"
		if options.repair {
			what = "left"
		}
		return &failure{exitDrift, fmt.Errorf("drift %s: %s", what, counted(int(n), "difference"))}
	}
	return nil
}

// breakOff says why not everything was verified. What was found by then is worth
// knowing, and what was mended of it is written nowhere else.
func (r *verifyReport) breakOff(ctx context.Context, env *environment, err error) error {
	if unwritten := r.differences(); unwritten != nil {
		return unwritten
	}
	if errors.Is(context.Cause(ctx), errStopped) {
		return errors.New("stopped before everything was verified: what was found so far may not be all")
	}
	return env.classify(fmt.Errorf("verifying table %q: %w", env.table, err))
}

// verifyTable wires everything together.
func (a *app) verifyTable(ctx context.Context, j *job, env *environment, options verifyOptions, report *verifyReport) (*verify.Summary, error) {
	stateTable := a.options.stateTableName(env.table)
	audit, err := projections.OpenAudit(ctx, projections.AuditConfig{
		Client: env.tables, Table: env.table, StateTable: stateTable, Rules: j.set, Names: options.rules, Logger: j.logger,
	})
	if err != nil {
		return nil, err
	}
	report.waiting = slices.Compact(slices.Sorted(slices.Values(audit.Waiting()))) // a changed rule waits, and so does what it was
	cfg := verify.Config{
		Auditor: audit, Logger: j.logger, MemoryBytes: options.memoryBytes, TempDir: options.tempDir, Settle: options.settle, Patience: options.patience,
		Sample: options.share, SampleSeed: options.sampleSeed, Found: report.found,
	}
	items := &verify.Scan{Client: env.tables, TableName: env.table, Segments: options.segments, Rate: options.readRateMax}
	rows := &verify.Scan{Client: env.tables, TableName: stateTable, Segments: options.segments, Rate: options.readRateMax}
	cfg.Items, cfg.Rows = items, rows
	report.readUnits = func() float64 { return items.ReadUnits() + rows.ReadUnits() }
	if options.share < 1 {
		report.seed = &options.sampleSeed
	}
	stream, err := env.unappliedStream(ctx, j.set.Table, options.lagMax)
	if err != nil {
		return nil, err
	}
	if stream != nil {
		cfg.Pending, report.blind = stream, stream.Blind
	}
	report.streamless = stream == nil
	if options.repair {
		engineConfig := projections.Config{Client: env.tables, Table: env.table, StateTable: stateTable, Rules: j.set, Logger: j.logger, Attach: true}
		if options.writeRateMax > 0 {
			engineConfig.Limiter = newWritePace(options.writeRateMax)
		}
		engine, err := projections.Open(ctx, engineConfig)
		if err != nil {
			return nil, err
		}
		cfg.Mender = mender{audit, engine}
	}
	cfg.Progress = verifyProgress(j.status, j.logger)
	return verify.Run(ctx, cfg)
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

// verifyProgress shows how far it has come: as a line on a terminal, elsewhere in the log.
func verifyProgress(status *statusLine, logger *slog.Logger) func(verify.Progress) {
	var last time.Time
	interval := logInterval
	if status.terminal {
		interval = statusInterval
	}
	return func(p verify.Progress) {
		if time.Since(last) < interval {
			return
		}
		last = time.Now()
		if !status.terminal {
			logger.Info("verifying", "phase", p.Phase, "items", p.Items, "rows", p.Rows, "suspects", p.Suspects, "open", p.Open, "found", p.Found)
			return
		}
		parts := []string{p.Phase, "items " + grouped(p.Items), "state rows " + grouped(p.Rows)}
		if p.Suspects > 0 {
			parts = append(parts, "suspects "+grouped(p.Suspects), "open "+grouped(p.Open), "drift "+grouped(p.Found))
		}
		status.show(strings.Join(parts, "  "))
	}
}
