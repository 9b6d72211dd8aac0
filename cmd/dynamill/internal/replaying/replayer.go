// Package replaying is what `replay` does beside package replay: it compares the rules with those in force, asks before it
// changes any, opens the source, and says what it does and did. It imports preview, verifying, session and report.
package replaying

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/environment"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/output"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/preview"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/progress"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/session"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/settings"
	"github.com/dynamill/dynamill/internal/pace"
	"github.com/dynamill/dynamill/internal/printable"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/replay"
	"github.com/dynamill/dynamill/internal/replay/sources"
)

// throttles tells refusals of a table that is asked for more than its capacity.
var throttles = retry.IsErrorThrottles(retry.DefaultThrottles)

// Run applies the rules to what is in the table.
func Run(ctx context.Context, out *output.Output, s *settings.Settings, options Options) error {
	ctx, w, end, err := session.Begin(ctx, out, s, slices.Concat(options.Rules, options.Recount))
	if err != nil {
		return err
	}
	defer end()
	if err := w.Connect(ctx); err != nil {
		return err
	}
	if len(options.Recount) > 0 {
		return recount(ctx, w, options.Recount)
	}
	r := &replayer{Session: w, options: options}
	err = r.run(ctx)
	if err != nil && !r.begun && errors.Is(context.Cause(ctx), session.ErrStopped) {
		return errors.New("stopped before anything was replayed")
	}
	return err
}

type replayer struct {
	*session.Session
	options Options
	engine  *projections.Engine
	source  sources.Source // nil: a scan of the whole table
	// sourceItems is how many items the source says that it has; 0: not known.
	sourceItems int64
	counts      environment.Counts
	begun       bool
}

// run does all that only reads, and can refuse, before it opens the engine, which registers the rules.
func (r *replayer) run(ctx context.Context) (err error) {
	if r.counts, err = environment.CountsOf(ctx, r.Env); err != nil {
		return err
	}
	if r.options.DryRun {
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
	agreedEpoch, err := r.agree(ctx, found)
	if err != nil {
		return err
	}
	if r.engine, err = r.open(ctx, agreedEpoch); err != nil {
		return err
	}
	return r.work(ctx)
}

// work replays, with the rules registered.
func (r *replayer) work(ctx context.Context) error {
	pass, left, err := r.engine.NextPass(ctx)
	if err != nil {
		return r.Env.Classify(fmt.Errorf("looking what the rules need: %w", err))
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
	watch := &watch{replayer: r, items: map[string]int64{}}
	stop := progress.Start(context.WithoutCancel(ctx), r.Screen, r.Logger, watch.state)
	totals, err := replay.Run(ctx, r.config(watch.note))
	stop()
	if err != nil {
		return r.failure(ctx, totals, err)
	}
	r.printReplayed(context.WithoutCancel(ctx), totals, time.Since(began), watch)
	return nil
}

func (r *replayer) config(report func(replay.Progress)) replay.Config {
	return replay.Config{
		Engine: r.engine, State: r.Env.Tables, StateTable: r.engine.Describe().StateTable, Source: r.source, Rules: r.options.Rules,
		Version: replay.VersionOf(r.Set), Parallel: r.options.Parallel, Restart: r.options.Restart, Report: report,
		Opened: func(o replay.Opened) { fmt.Fprintln(r.Screen, openedText(o)) },
		Scan: sources.ScanConfig{
			Client: r.Env.Tables, Keys: r.keys(), Segments: r.options.Segments,
			EventuallyConsistent: r.options.EventuallyConsistent, Pace: pace.New(r.options.ReadRateMax),
		},
	}
}

func (r *replayer) keys() sources.KeyNames {
	return sources.KeyNames{Partition: r.Set.Table.PartitionKey, Sort: r.Set.Table.SortKey}
}

func (r *replayer) failure(ctx context.Context, totals replay.Totals, err error) error {
	if errors.Is(context.Cause(ctx), session.ErrStopped) {
		return fmt.Errorf("stopped after %s: %s resumes there", printable.Counted(totals.Items, "item"), r.again())
	}
	switch pieces, failed := errors.AsType[*replay.PiecesError](err); {
	case failed:
		if found := r.Env.Classify(err); errors.As(found, new(*ending.Failure)) {
			return found
		}
		remedy := ""
		if throttles.IsErrorThrottle(err) == aws.TrueTernary {
			remedy = "; set or lower --budget or --read-rate to ask the table for less"
		}
		told := &replay.PiecesError{Source: pieces.Source, Pieces: pieces.Pieces}
		for _, err := range pieces.Errors {
			told.Errors = append(told.Errors, r.Env.Classify(err))
		}
		return fmt.Errorf("%w\n%s tries them again%s", told, r.again(), remedy)
	case errors.Is(err, projections.ErrEpochMoved) && r.areInForce(ctx):
		return fmt.Errorf("a rule that counts by stream position is being recounted: %s resumes there once `dynamill run` has counted it",
			r.again())
	case errors.Is(err, projections.ErrEpochMoved):
		return ending.Invalid("newer rules than those of %s were brought into force meanwhile: replay with the rule file that is in force",
			settings.ShownFile(r.Settings.Rules))
	}
	return r.Env.Classify(fmt.Errorf("replaying: %w; %s resumes there", err, r.again()))
}

// areInForce reports whether the rules of the file are still those of the table.
func (r *replayer) areInForce(ctx context.Context) bool {
	found, err := preview.CompareRules(ctx, r.Session)
	return err == nil && changedOf(found) == nil && !slices.ContainsFunc(found.Rules, func(c projections.RuleChange) bool {
		return c.What == projections.RuleAdded
	})
}

// again names the command that resumes: with --restart each process begins anew.
func (r *replayer) again() string {
	if r.options.Restart {
		return "the same command without --restart"
	}
	return "the same command"
}

// Options are the flags of `replay`.
type Options struct {
	From                 string
	Rules                []string
	Recount              []string // rules to be counted anew, and nothing else is done
	Segments, Parallel   int
	Budget               int     // write units per second; 0: no bound
	ReadRateMax          float64 // read units per second; 0: no bound
	EventuallyConsistent bool
	DryRun, Restart, Yes bool
}

// The values of --from, or how they begin.
const (
	FromScan    = "scan"
	FromParked  = "parked"
	FromExport  = "export://"
	FromS3      = "s3://"
	FromArchive = "archive://"
	FromKeys    = "keys:"

	parallelMax = 64 // the engine itself works on several items of a page at a time
)

// Check refuses flags that are invalid or contradict each other. Some checks apply to typed flags only: a configuration
// file serves several commands.
func (o *Options) Check(s *settings.Settings, typed map[string]bool) error {
	if o.From == FromKeys+settings.StandardInput {
		if err := s.ClaimStdin("--from " + o.From); err != nil {
			return err
		}
	}
	if len(o.Recount) > 0 {
		for _, flag := range []string{"from", "rule", "segments", "dry-run", "restart", "yes"} {
			if typed[flag] {
				return ending.Invalid("--%s has no meaning with --recount, which only has a running process count the table anew", flag)
			}
		}
	}
	switch {
	case o.Segments < 0:
		return ending.Invalid("--segments %d is negative: give a number of segments, or none", o.Segments)
	case o.Segments > sources.ScanSegmentsLimit:
		return ending.Invalid("--segments %d is more than DynamoDB's limit of %d", o.Segments, sources.ScanSegmentsLimit)
	case o.Segments > 0 && o.From != FromScan && typed["segments"]:
		return ending.Invalid("--segments has no meaning with --from %s: only a scan has segments", o.From)
	case o.EventuallyConsistent && o.From != FromScan:
		return ending.Invalid("--eventually-consistent has no meaning with --from %s: only a scan reads the table", o.From)
	case o.Parallel < 1 || o.Parallel > parallelMax:
		return ending.Invalid("--parallel %d is not between 1 and %d", o.Parallel, parallelMax)
	case o.DryRun && o.From != FromScan:
		return ending.Invalid("--dry-run looks at the whole table: it has no meaning with --from %s", o.From)
	}
	return cmp.Or(settings.CheckRates(o.Budget, o.ReadRateMax), o.checkFrom())
}

const fromFile = FromKeys + "//"

// source divides --from into what it begins with and the place behind it.
func (o *Options) source() (begin, place string) {
	for _, begin := range []string{FromExport, FromArchive, fromFile} {
		if place, ok := strings.CutPrefix(o.From, begin); ok {
			return begin, place
		}
	}
	if strings.HasPrefix(o.From, FromS3) {
		return FromExport, o.From
	}
	return o.From, ""
}

// checkFrom refuses what is not of the form of a source.
func (o *Options) checkFrom() error {
	begin, place := o.source()
	switch begin {
	case FromScan, FromParked, FromKeys + settings.StandardInput:
		return nil
	case FromExport, FromArchive, fromFile:
	default:
		return ending.Invalid("--from %s is no source: give scan, export://PATH, s3://BUCKET/PREFIX, archive://PATH, keys://FILE, keys:- or "+
			"parked", o.From)
	}
	if bucket, onS3 := strings.CutPrefix(place, FromS3); place == "" || onS3 && (bucket == "" || bucket[0] == '/') {
		return ending.Invalid("--from %s names no place: give a path, or s3://BUCKET/PREFIX", o.From)
	}
	return nil
}

// whole reports whether the replay goes over all there is.
func (o *Options) whole() bool { return o.From == FromScan && len(o.Rules) == 0 }

// passesOver says how many passes go over the items, and how many over the state table: the last one, where former rules
// are taken back or everything is in force.
func (r *replayer) passesOver(left int, formers bool) (items, state int64) {
	switch {
	case left > 0 && formers:
		return int64(left) - 1, 1
	case left > 0:
		return int64(left), 0
	case r.options.whole():
		return 1, 1
	}
	return 1, 0
}

// announce says, before anything is read or written at length, what will be done and what it takes.
func (r *replayer) announce(ctx context.Context, left int) error {
	description, items := r.engine.Describe(), r.counts.Items
	facts := output.Columns{}
	facts.Add("table", r.Table+" in "+r.Env.Where())
	facts.Add("state", description.StateTable)
	if r.source == nil {
		facts.Add("source", r.sourceName())
	} else {
		pieces, err := r.source.Pieces(ctx)
		if err != nil {
			return fmt.Errorf("listing the pieces of the %s: %w", r.source.Describe(), err)
		}
		items = 0
		for _, p := range pieces {
			items += p.Items
		}
		// An archive's files do not say how many they have, and what is parked is counted by rule.
		_, exact := r.source.(*sources.Files)
		if exact && !slices.ContainsFunc(pieces, func(p sources.Piece) bool { return p.Items == 0 }) {
			r.sourceItems = items
		}
		facts.Add("source", r.sourceName()+", "+printable.Counted(len(pieces), "piece"))
	}
	switch {
	case left > 0:
		facts.Add("does", "brings rules into force in "+passes(left)+": "+strings.Join(r.bringing(), ", "))
	case r.options.whole():
		facts.Add("does", "brings every item to what the rules ask for, then cleans up after items that have vanished")
	default:
		facts.Add("does", "brings items to what the rules ask for")
	}
	if r.source == nil {
		facts.Add("items", fmt.Sprintf("about %s, %.1f MB (DynamoDB's own count, up to 6 hours old)", printable.Grouped(items),
			float64(r.counts.Bytes)/1e6))
	} else if items > 0 {
		facts.Add("items", "about "+printable.Grouped(items))
	}
	over, sweeps := r.passesOver(left, len(description.FormerRules) > 0)
	e := r.counts.Estimate(over, sweeps, items, r.source == nil, r.options.EventuallyConsistent)
	if total := e.Scan + e.Look + e.Sweep; total > 0 {
		facts.Add("reads",
			fmt.Sprintf("about %s read units: %s to scan, %s to look at each item and its ledger entry, %s to sweep; more where rules write "+
				"on other items",
				printable.Grouped(total), printable.Grouped(e.Scan), printable.Grouped(e.Look), printable.Grouped(e.Sweep)))
	}
	if left > 0 {
		facts.Add("writes", "what the rules ask for and does not stand there yet")
	} else {
		facts.Add("writes", "none where all is right")
	}
	fmt.Fprint(r.Screen, facts.Text())
	return nil
}
