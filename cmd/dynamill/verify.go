package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/progress"
	"github.com/dynamill/dynamill/internal/pace"
	"github.com/dynamill/dynamill/projections"
	"github.com/dynamill/dynamill/replay/verify"
)

const (
	verifySettle   = 10 * time.Second
	verifyWait     = 2 * time.Minute
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
	settle, wait       time.Duration
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
	flags.DurationVar(&o.wait, "wait", verifyWait, "wait up to this `duration` for differences that cannot be decided yet, such as until the stream is applied;\n"+
		"nothing is waited for where nothing differs")
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
	case o.settle <= 0 || o.wait < 0 || o.lagMax < 0:
		return invalid("--settle, --wait and --lag-max want durations such as 30s")
	case o.limit < 0:
		return invalid("--limit %d is negative: give a number, or 0 for all", o.limit)
	}
	o.segments = min(o.segments, scanSegmentsMax) // of a file it may be replay's, which works off few of its segments at a time
	return checkRates(o.writeRateMax, o.readRateMax)
}

// waitOrNone is --wait for package verify, in which 0 stands for a default.
func (o *verifyOptions) waitOrNone() time.Duration {
	if o.wait == 0 {
		return -1
	}
	return o.wait
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
			"differences: missing, wrong and surplus copies, mirror items, counts and sums, ledger entries, references,\n" +
			"locators and parked records. It writes nothing without --repair, and may run beside `dynamill run` or the function.\n\n" +
			"A scan is no snapshot, and what has just been written is not derived yet. So every difference is looked at again:\n" +
			"it counts as drift only if it stands for --settle and no record that is still to be applied could be the cause.\n" +
			"verify waits for that up to --wait after its scan; a --wait below twice --settle is too short to prove drift.\n\n" +
			"It ends with 0 if it compared everything that it was asked for and nothing drifts, with 4 if drift is proven (with\n" +
			"--repair: and left), and with 5 if none is proven and something is open: a difference stayed undecided, is left out\n" +
			"because something is parked, or belongs to a rule that is still being brought into force or taken back. A sample\n" +
			"(--sample) or some rules (--rule) that are right end with 0, and the text says that it was not everything.\n\n" +
			"With --json every difference is a line, and the last line is the summary, with the outcome as a word:\n" +
			"clean, drift or undecided.\n\n" + configurationHelp,
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
	if err != nil {
		return report.breakOff(ctx, env, err)
	}
	if err := report.end(summary); err != nil {
		return err
	}
	return report.facts(summary).failure(options.repair)
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
	return env.classify(fmt.Errorf("verifying table %q: %w", env.table, env.tellLostState(ctx, err)))
}

// verifyTable wires everything together.
func (a *app) verifyTable(ctx context.Context, j *job, env *environment, options verifyOptions, report *verifyReport) (*verify.Summary, error) {
	audit, err := projections.OpenAudit(ctx, projections.AuditConfig{
		Client: env.tables, Table: env.table, StateTable: env.stateTable, Rules: j.set, Names: options.rules, Logger: j.logger,
	})
	if err != nil {
		return nil, err
	}
	report.waiting, report.rules = judgedRules(audit.Waiting(), options.rules), options.rules
	cfg := verify.Config{
		Auditor: audit, Logger: j.logger, MemoryBytes: options.memoryBytes, TempDir: options.tempDir, Settle: options.settle, Wait: options.waitOrNone(),
		Sample: options.share, SampleSeed: options.sampleSeed, Found: report.found,
	}
	reading := verify.NewReadPace(options.readRateMax)
	items := &verify.Scan{Client: env.tables, TableName: env.table, Segments: options.segments, Pace: reading}
	rows := &verify.Scan{Client: env.tables, TableName: env.stateTable, Segments: options.segments, Pace: reading}
	cfg.Items, cfg.Rows = items, rows
	report.readUnits = func() float64 { return items.ReadUnits() + rows.ReadUnits() }
	if options.share < 1 {
		report.seed, report.share = &options.sampleSeed, options.share
	}
	stream, err := env.unappliedStream(ctx, j.set.Table, options.lagMax, &report.leases)
	if err != nil {
		return nil, err
	}
	if stream != nil {
		cfg.Pending, report.blind = stream, stream.Blind
	}
	report.streamless = stream == nil
	if options.repair {
		engineConfig := projections.Config{Client: env.tables, Table: env.table, StateTable: env.stateTable, Rules: j.set, Logger: j.logger, Attach: true}
		if options.writeRateMax > 0 {
			engineConfig.Limiter = pace.New(options.writeRateMax)
		}
		engine, err := projections.Open(ctx, engineConfig)
		if err != nil {
			return nil, err
		}
		cfg.Mender = mender{audit, engine}
	}
	watch := newVerifyWatch(ctx, env, j.status, &report.leases)
	watch.wait, watch.settle = options.wait, options.settle
	cfg.Progress = watch.note
	stop := progress.Start(ctx, j.status, j.logger, watch.state)
	defer stop()
	summary, err := verify.Run(ctx, cfg)
	if err != nil {
		return nil, err
	}
	inspected, err := projections.Inspect(ctx, env.tables, env.stateTable)
	if err != nil {
		return nil, err
	}
	for _, n := range inspected.Parked {
		report.parkedEntries += n
	}
	report.seen, err = sightingsOfAudit(ctx, audit)
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
