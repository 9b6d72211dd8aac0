package replaying

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/environment"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/output"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/progress"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/session"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/settings"
	"github.com/dynamill/dynamill/internal/printable"
	"github.com/dynamill/dynamill/projections"
	"github.com/dynamill/dynamill/replay"
)

// throttles tells refusals of a table that is asked for more than its capacity.
var throttles = retry.IsErrorThrottles(retry.DefaultThrottles)

// Run applies the rules to what is in the table.
func Run(ctx context.Context, out *output.Output, s *settings.Settings, options Options) error {
	ctx, w, end, err := session.Begin(ctx, out, s, options.Rules)
	if err != nil {
		return err
	}
	defer end()
	if err := w.Connect(ctx); err != nil {
		return err
	}
	r := &replayer{Session: w, options: options}
	err = r.run(ctx)
	if err != nil && !r.begun && errors.Is(context.Cause(ctx), session.ErrStopped) {
		return errors.New("stopped before anything was replayed")
	}
	return err
}

// replayer is one call of `replay`.
type replayer struct {
	*session.Session
	options Options
	engine  *projections.Engine
	source  replay.Source // nil: a scan of the whole table
	// sourceItems is how many items the source says that it has; 0: not known.
	sourceItems int64
	counts      environment.Counts
	begun       bool
}

// run does all that only reads, and can refuse, before it opens the engine, which
// registers the rules.
func (r *replayer) run(ctx context.Context) error {
	var err error
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
	watch := newWatch(r)
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
	pace := replay.NewReadPace(r.options.ReadRateMax)
	stateTable := r.engine.Describe().StateTable
	return replay.Config{
		Engine: r.engine, State: r.Env.Tables, StateTable: stateTable, Source: r.source, Rules: r.options.Rules,
		Version: replay.VersionOf(r.Set), Parallel: r.options.Parallel, Restart: r.options.Restart, Report: report,
		Opened: func(o replay.Opened) { fmt.Fprintln(r.Screen, openedText(o)) },
		ScanOf: func(table string) replay.ScanConfig {
			keys := r.keys()
			if table == stateTable {
				keys = replay.StateKeys
			}
			return replay.ScanConfig{
				Client: r.Env.Tables, Table: table, Keys: keys, Segments: r.options.Segments,
				EventuallyConsistent: r.options.EventuallyConsistent, Pace: pace,
			}
		},
	}
}

func (r *replayer) keys() replay.KeyNames {
	return replay.KeyNames{Partition: r.Set.Table.PartitionKey, Sort: r.Set.Table.SortKey}
}

// failure turns the end of a replay into the sentence to be read.
func (r *replayer) failure(ctx context.Context, totals replay.Totals, err error) error {
	if errors.Is(context.Cause(ctx), session.ErrStopped) {
		return fmt.Errorf("stopped after %s: the same command goes on from there", printable.Counted(totals.Items, "item"))
	}
	var (
		pieces *replay.PiecesError
		known  *ending.Failure
	)
	switch {
	case errors.As(err, &pieces):
		if found := r.Env.Classify(err); errors.As(found, &known) {
			return found
		}
		remedy := ""
		if throttles.IsErrorThrottle(err) == aws.TrueTernary {
			remedy = "; --rate and --read-rate have them ask for less"
		}
		told := &replay.PiecesError{Source: pieces.Source, Pieces: pieces.Pieces, Errors: r.Env.ClassifyAll(pieces.Errors)}
		return fmt.Errorf("%w\nthe same command tries them again%s", told, remedy)
	case errors.Is(err, projections.ErrEpochMoved):
		return ending.Invalid("newer rules than those of %s were brought into force meanwhile: replay with the rule file that is in force", settings.ShownFile(r.Settings.Rules))
	}
	return r.Env.Classify(fmt.Errorf("replaying: %w; the same command goes on from there", err))
}
