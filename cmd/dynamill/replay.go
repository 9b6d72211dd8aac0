package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/progress"
	"github.com/dynamill/dynamill/projections"
	"github.com/dynamill/dynamill/replay"
)

// replayOptions are the flags of `replay`.
type replayOptions struct {
	from                 string
	rules                []string
	segments, parallel   int
	writeRateMax         int     // write units per second; 0: no bound
	readRateMax          float64 // read units per second; 0: no bound
	eventuallyConsistent bool
	dryRun, restart, yes bool
}

const (
	fromScan    = "scan"
	fromParked  = "parked"
	fromExport  = "export://"
	fromS3      = "s3://"
	fromArchive = "archive://"
	fromKeys    = "keys:"

	parallelMax = 64 // the engine itself works on several items of a page at a time
)

// throttles tells refusals of a table that is asked for more than its capacity.
var throttles = retry.IsErrorThrottles(retry.DefaultThrottles)

func (o *replayOptions) addTo(flags *pflag.FlagSet) {
	flags.StringVar(&o.from, "from", fromScan, "the `source`: scan, export://PATH, s3://BUCKET/PREFIX (an export), archive://PATH,\nkeys://FILE, keys:- (standard input) or parked")
	flags.StringArrayVar(&o.rules, "rule", nil, "replay only the items of this rule, by `name`; may be repeated (default: all)")
	flags.IntVar(&o.segments, "segments", 0, "divide a scan into this `number` of segments (default: by the table's size)")
	flags.IntVar(&o.parallel, "parallel", 4, "work on this `number` of segments or files at a time")
	flags.IntVar(&o.writeRateMax, "rate", 0, "write at most this many write `units` per second (0: no bound)")
	flags.Float64Var(&o.readRateMax, "read-rate", 0, "scan at most this many read `units` per second (0: no bound)")
	flags.BoolVar(&o.eventuallyConsistent, "eventually-consistent", false, "scan at half the cost; not where rules are brought into force")
	flags.BoolVar(&o.dryRun, "dry-run", false, "write nothing: say what would be changed, by rule, and what that would cost")
	flags.BoolVar(&o.restart, "restart", false, "begin anew, and forget what an unfinished replay has done")
	flags.BoolVar(&o.yes, "yes", false, "carry out changed and removed rules without asking")
}

// check refuses what makes no sense together. What a file says to several commands
// one of them may have no use for.
func (o *replayOptions) check(typed map[string]bool) error {
	switch {
	case o.segments < 0:
		return invalid("--segments %d is negative: give a number of segments, or none", o.segments)
	case o.segments > replay.ScanSegmentsLimit:
		return invalid("--segments %d is more than DynamoDB's limit of %d", o.segments, replay.ScanSegmentsLimit)
	case o.segments > 0 && o.from != fromScan && typed["segments"]:
		return invalid("--segments has no meaning with --from %s: only a scan has segments", o.from)
	case o.eventuallyConsistent && o.from != fromScan:
		return invalid("--eventually-consistent has no meaning with --from %s: only a scan reads the table", o.from)
	case o.parallel < 1 || o.parallel > parallelMax:
		return invalid("--parallel %d is not between 1 and %d", o.parallel, parallelMax)
	case o.dryRun && o.from != fromScan:
		return invalid("--dry-run looks at the whole table: it has no meaning with --from %s", o.from)
	}
	if err := checkRates(o.writeRateMax, o.readRateMax); err != nil {
		return err
	}
	return o.checkFrom()
}

// checkFrom refuses what is not of the form of a source.
func (o *replayOptions) checkFrom() error {
	place := o.from
	switch {
	case place == fromScan, place == fromParked, place == fromKeys+"-":
		return nil
	case strings.HasPrefix(place, fromS3):
	default:
		scheme, rest, _ := strings.Cut(place, "://")
		if place = rest; !slices.Contains([]string{fromExport, fromArchive, fromKeys + "//"}, scheme+"://") {
			return invalid("--from %s is no source: give scan, export://PATH, s3://BUCKET/PREFIX, archive://PATH, keys://FILE, keys:- or parked", o.from)
		}
	}
	if bucket, onS3 := strings.CutPrefix(place, fromS3); place == "" || onS3 && (bucket == "" || bucket[0] == '/') {
		return invalid("--from %s names no place: give a path, or s3://BUCKET/PREFIX", o.from)
	}
	return nil
}

// whole reports whether the replay goes over all there is.
func (o *replayOptions) whole() bool { return o.from == fromScan && len(o.rules) == 0 }

func (a *app) replayCommand() *cobra.Command {
	var options replayOptions
	command := &cobra.Command{
		Use:   "replay",
		Short: "Applies the rules to what is in the table",
		Long: "Brings changed rules into force over all items; where they are in force, brings every item to what the rules ask\n" +
			"for, and cleans up after items that have vanished. Items that are right cost reads and no writes. The stream may be\n" +
			"followed at the same time: whatever comes is derived from the item as it is now.\n\n" +
			"Several processes started alike share the work. The first SIGINT or SIGTERM stops within seconds; the same command\n" +
			"goes on from there, also after a kill. A replay that has ended begins anew, and so does one left for a day.\n\n" +
			"Where the rule file changes or removes rules in force, it says so and asks before it carries that out; without a\n" +
			"terminal it wants --yes. `dynamill plan` says the same without doing anything.\n\n" + configurationHelp,
		Example: "  dynamill replay --table app\n" +
			"  dynamill replay --table app --dry-run\n" +
			"  dynamill replay --table app --rule member-count --rate 200 --read-rate 1000\n" +
			"  dynamill replay --table app --from s3://backups/AWSDynamoDB/01693685827463-2d8752fd\n" +
			"  dynamill replay --table app --from archive:///var/lib/dynamill/archive\n" +
			"  grep -o 'USER#[0-9]*/PROFILE' errors.log | dynamill replay --table app --from keys:-\n" +
			"  dynamill replay --table app --from parked",
		Args: cobra.NoArgs,
		PreRunE: func(*cobra.Command, []string) error {
			if options.from == fromKeys+standardInput {
				if err := a.options.claimStdin("--from " + options.from); err != nil {
					return err
				}
			}
			return options.check(a.typed)
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return a.replay(cmd.Context(), options) },
	}
	options.addTo(command.Flags())
	return command
}

func (a *app) replay(ctx context.Context, options replayOptions) error {
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
	r := &replayer{app: a, job: j, options: options, env: env}
	err = r.run(ctx)
	if err != nil && !r.begun && errors.Is(context.Cause(ctx), errStopped) {
		return errors.New("stopped before anything was replayed")
	}
	return err
}

// replayer is one call of `replay`.
type replayer struct {
	*job
	app     *app
	options replayOptions
	env     *environment
	engine  *projections.Engine
	source  replay.Source // nil: a scan of the whole table
	// sourceItems is how many items the source says that it has; 0: not known.
	sourceItems int64
	counts      counts
	begun       bool
}

// run does all that only reads, and can refuse, before it opens the engine, which
// registers the rules.
func (r *replayer) run(ctx context.Context) error {
	var err error
	if r.counts, err = r.count(ctx); err != nil {
		return err
	}
	if r.options.dryRun {
		return r.dryRun(ctx)
	}
	found, err := r.compare(ctx)
	if err != nil {
		return err
	}
	closeSource, err := r.openSource(ctx)
	if err != nil {
		return err
	}
	defer closeSource()
	if r.sourceItems, err = itemsOf(ctx, r.source); err != nil {
		return r.sourceFailure(err)
	}
	agreed, err := r.agree(ctx, found)
	if err != nil {
		return err
	}
	if r.engine, err = r.open(ctx, found, agreed); err != nil {
		return err
	}
	return r.work(ctx)
}

// work replays, with the rules registered.
func (r *replayer) work(ctx context.Context) error {
	pass, left, err := r.engine.Aim(ctx)
	if err != nil {
		return r.env.classify(fmt.Errorf("looking what the rules need: %w", err))
	}
	if left > 0 { // also where another process has just registered them
		if err := r.refusePending(r.engine.RulesOf(pass)); err != nil {
			return err
		}
	}
	if !r.options.whole() {
		left = 0 // it brings nothing into force
	}
	if err := r.announce(ctx, left); err != nil {
		return err
	}
	r.begun = true
	began := time.Now()
	watch := newReplayWatch(r)
	stop := progress.Start(context.WithoutCancel(ctx), r.status, r.logger, watch.state)
	totals, err := replay.Run(ctx, r.config(watch.note))
	stop()
	if err != nil {
		return r.failure(ctx, totals, err)
	}
	return r.printReplayed(context.WithoutCancel(ctx), totals, time.Since(began), watch)
}

func (r *replayer) config(report func(replay.Progress)) replay.Config {
	pace := replay.NewReadPace(r.options.readRateMax)
	stateTable := r.engine.Describe().StateTable
	return replay.Config{
		Engine: r.engine, State: r.env.tables, StateTable: stateTable, Source: r.source, Rules: r.options.rules,
		Version: replay.VersionOf(r.set), Parallel: r.options.parallel, Restart: r.options.restart, Report: report,
		Opened: func(o replay.Opened) { fmt.Fprintln(r.status, openedText(o)) },
		ScanOf: func(table string) replay.ScanConfig {
			keys := r.keys()
			if table == stateTable {
				keys = replay.StateKeys
			}
			return replay.ScanConfig{
				Client: r.env.tables, Table: table, Keys: keys, Segments: r.options.segments,
				EventuallyConsistent: r.options.eventuallyConsistent, Pace: pace,
			}
		},
	}
}

func (r *replayer) keys() replay.KeyNames {
	return replay.KeyNames{Partition: r.set.Table.PartitionKey, Sort: r.set.Table.SortKey}
}

// failure turns the end of a replay into the sentence to be read.
func (r *replayer) failure(ctx context.Context, totals replay.Totals, err error) error {
	if errors.Is(context.Cause(ctx), errStopped) {
		return fmt.Errorf("stopped after %s: the same command goes on from there", counted(int(totals.Items), "item"))
	}
	var (
		pieces *replay.PiecesError
		known  *failure
	)
	switch {
	case errors.As(err, &pieces):
		if found := r.env.classify(err); errors.As(found, &known) {
			return found
		}
		remedy := ""
		if throttles.IsErrorThrottle(err) == aws.TrueTernary {
			remedy = "; --rate and --read-rate have them ask for less"
		}
		told := &replay.PiecesError{Source: pieces.Source, Pieces: pieces.Pieces, Errors: r.env.classifyAll(pieces.Errors)}
		return fmt.Errorf("%w\nthe same command tries them again%s", told, remedy)
	case errors.Is(err, projections.ErrEpochMoved):
		return invalid("newer rules than those of %s were brought into force meanwhile: replay with the rule file that is in force", shownFile(r.app.options.rules))
	}
	return r.env.classify(fmt.Errorf("replaying: %w; the same command goes on from there", err))
}
