// Package follow is what `run` does beside the library's Follow: it shows how far a run is, tells its state to the log, to
// metrics and to readiness, and says how it ended. It imports session, report, the library and internal/monitor.
package follow

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/dynamill/dynamill"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/environment"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/output"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/progress"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/report"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/session"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/settings"
	"github.com/dynamill/dynamill/internal/monitor"
	"github.com/dynamill/dynamill/internal/printable"
	"github.com/dynamill/dynamill/internal/replay/archive"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/internal/sighting"
	"github.com/dynamill/dynamill/internal/streamreader"
	rulefile "github.com/dynamill/dynamill/rules"
)

// workerLengthMax bounds --worker, in bytes: it stands in every row of a lease.
const workerLengthMax = 256

var errDrainTimeout = errors.New("not drained within --drain-timeout")

// Options are the flags of `run`.
type Options struct {
	dynamill.Config
	DrainTimeout time.Duration
	Listen       string
	ReadyLag     time.Duration
	Profile      bool
}

// Check refuses what makes no sense together.
func (o *Options) Check(timeoutGiven bool) error {
	switch {
	case o.DrainTimeout < 0:
		return ending.Invalid("--drain-timeout %s is negative: give a duration such as 10m", o.DrainTimeout)
	case timeoutGiven && !o.Drain:
		return ending.Invalid("--drain-timeout has no meaning without --drain: add --drain")
	case o.ReadyLag < 0:
		return ending.Invalid("--ready-lag %s is negative: give a duration such as 5m", o.ReadyLag)
	case o.Profile && o.Listen == "":
		return ending.Invalid("--pprof has no meaning without --listen: add --listen 127.0.0.1:9464")
	case o.PollInterval < dynamill.PollIntervalMin || o.PollInterval > dynamill.PollIntervalMax:
		return ending.Invalid("--poll-interval %s is not between %s and %s", o.PollInterval, dynamill.PollIntervalMin, dynamill.PollIntervalMax)
	case o.Listen != "" && !o.Drain && o.ReadyLag > 0 && o.ReadyLag < o.PollInterval:
		return ending.Invalid("--ready-lag %s is shorter than --poll-interval %s: /readyz would say no between two reads of an idle shard",
			o.ReadyLag, o.PollInterval)
	case o.LeaseTerm < dynamill.LeaseTermMin || o.LeaseTerm > dynamill.LeaseTermMax:
		return ending.Invalid("--lease-term %s is not between %s and %s", o.LeaseTerm, dynamill.LeaseTermMin, dynamill.LeaseTermMax)
	case o.ArchiveGzip && o.Archive == "":
		return ending.Invalid("--archive-gzip has no meaning without --archive: add --archive FOLDER")
	case len(o.Worker) > workerLengthMax:
		return ending.Invalid("--worker has %d bytes: give a name of at most %d", len(o.Worker), workerLengthMax)
	}
	return settings.CheckRates(o.Budget, 0)
}

// heapGrowthPercent is by how much the heap grows between two collections, unless GOGC says otherwise. With 1,000 shards
// and 500 records a second, 50 takes 76 MB where Go's own 100 takes 85, and as much CPU time.
const heapGrowthPercent = 50

// Run follows the table's stream.
func Run(ctx context.Context, out *output.Output, s *settings.Settings, options Options) error {
	ctx, w, end, err := session.Begin(ctx, out, s, nil)
	if err != nil {
		return err
	}
	defer end()
	if os.Getenv("GOGC") == "" {
		defer debug.SetGCPercent(debug.SetGCPercent(heapGrowthPercent))
	}
	if options.DrainTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, options.DrainTimeout, errDrainTimeout)
		defer cancel()
	}
	o := &overseer{lagMax: options.ReadyLag, logger: w.Logger}
	endWatch, err := o.oversee(ctx, options.Listen, options.Profile)
	if err != nil {
		return err
	}
	defer endWatch()
	err = followTable(ctx, w, o, options)
	if ended, ok := errors.AsType[*dynamill.EndedError](err); ok && options.Listen != "" && !options.Drain {
		o.ended(ctx, ended, err)
	}
	return err
}

func followTable(ctx context.Context, w *session.Session, o *overseer, options Options) error {
	if err := w.Connect(ctx); err != nil {
		if errors.Is(err, session.ErrStopped) && !options.Drain {
			return nil
		}
		return err
	}
	env, began, stopShowing := w.Env, time.Now(), func() {}
	cfg := options.Config
	file, err := rulefile.Load(settings.ShownFile(w.Settings.Rules), []byte(w.Set.Text()))
	if err != nil {
		return err
	}
	cfg.Tables, cfg.Streams, cfg.Table, cfg.Rules = env.Tables, env.Streams, w.Table, file
	cfg.StateTable, cfg.LeaseTable, cfg.Logger = env.StateTable, env.LeaseTable, w.Logger
	cfg.Started = func(r *dynamill.Running) {
		fmt.Fprint(w.Screen, announcement(w, r, &cfg))
		o.running.Store(r)
		env.Renewal.TurnOn(o.holder.SetExpired)
		stopShowing = progress.Start(ctx, w.Screen, w.Logger, watchProgress(r, cfg.Drain))
	}
	err = dynamill.Follow(ctx, cfg)
	stopShowing()
	if err != nil {
		return failureOf(env, o.running.Load(), err)
	}
	if !options.Drain {
		return nil
	}
	return printDrained(context.WithoutCancel(ctx), w, o.running.Load(), time.Since(began))
}

// announcement says, before anything is written, what is followed and what will be written.
func announcement(w *session.Session, r *dynamill.Running, cfg *dynamill.Config) string {
	d := r.Description()
	state := "found"
	if d.StateTableCreated {
		state = "created"
	}
	facts := output.Columns{}
	facts.Add("table", w.Table+" in "+w.Env.Where())
	facts.Add("stream", r.StreamARN)
	facts.Add("state", d.StateTable+" ("+state+")")
	facts.Add("checkpoints", w.Env.LeaseTable)
	if cfg.Archive != "" {
		facts.Add("archive", cfg.Archive)
	}
	list := output.Columns{Indent: "  "}
	for _, rule := range w.Set.Rules {
		note := ""
		if slices.Contains(d.NewRules, rule.Name) {
			note = "new: to be seeded"
		}
		if cfg.BesideFunction && !rule.Folds() {
			note = strings.TrimPrefix(note+"; its changes are left to the function", "; ")
		}
		list.Add(rule.Name, rule.KindName(), rule.Source.Name+" → "+written(rule), note)
	}
	return facts.Text() + printable.Counted(len(w.Set.Rules), "rule") + ":\n" + list.Text()
}

// written names what a rule writes: Group.memberCount, Comment.{userName, userAvatar}, or whole Member items; or the items that it deletes.
func written(rule *rules.Rule) string {
	switch {
	case rule.Deletes():
		return "deletes " + rule.Target.Name + " items"
	case rule.MakesItems():
		return rule.Target.Name + " items"
	case len(rule.Writes) == 1:
		return rule.Target.Name + "." + rule.Writes[0]
	}
	return rule.Target.Name + ".{" + strings.Join(rule.Writes, ", ") + "}"
}

// Drained is the result of `run --drain`.
type Drained struct {
	Table   string `json:"table"`
	Records int64  `json:"records"`
	// Relevant records asked for work; Unmatched ones were of items of no entity.
	Relevant     int64   `json:"relevant"`
	Unmatched    int64   `json:"unmatched"`
	Writes       int64   `json:"writes"`
	Transactions int64   `json:"transactions"`
	Rollups      int64   `json:"rollups"`
	Children     int64   `json:"copies"`
	Made         int64   `json:"mirrors"`
	Deleted      int64   `json:"deleted"` // items of the application, with their parents
	Healed       int64   `json:"healed"`
	Parked       int     `json:"parked"`
	Seconds      float64 `json:"seconds"`

	Rules map[string]float64 `json:"writeUnitsByRule"`
	report.Seen
}

func printDrained(ctx context.Context, w *session.Session, r *dynamill.Running, took time.Duration) error {
	left, err := r.Unfinished(ctx)
	if err != nil {
		return w.Env.Classify(fmt.Errorf("counting what is parked: %w", err))
	}
	parked := 0
	for _, n := range left.Parked {
		parked += n
	}
	seen, now := report.Sightings{Seen: sighting.Of(r)}, r.Status()
	stats := now.Engine
	if w.JSON {
		w.PrintJSON(Drained{
			Table: w.Table, Records: now.Stream.Records, Writes: stats.Writes, Healed: stats.Heals,
			Relevant: stats.Relevant, Unmatched: stats.Unmatched, Transactions: stats.Transactions,
			Rollups: stats.Rollups, Children: stats.Children, Made: stats.Made, Deleted: stats.Deleted,
			Parked: parked, Seconds: took.Round(time.Millisecond).Seconds(), Rules: report.WorkOf(stats, r.RuleStats()).Rules, Seen: seen.Report(),
		})
		return nil
	}
	text := fmt.Sprintf("drained: %s, %s, %s parked, in %s", printable.Counted(now.Stream.Records, "record"),
		printable.Counted(stats.Writes, "write"), printable.Grouped(parked), took.Round(100*time.Millisecond))
	if parked > 0 {
		text += "; see `dynamill parked list`"
	}
	seen.PrintBehind(w.Output, text, parked)
	return nil
}

// asFlags says in flags what the library's remedies name by the fields of its configuration.
var asFlags = strings.NewReplacer(
	"Config.Table", "--table", "Config.StateTable", "--state-table", "Config.AWS.Region", "--region",
	"Config.AWS.BaseEndpoint", "--endpoint", "Config.Archive", "--archive", "Config.BesideFunction", "--beside-function",
)

// inFlags is an error of the library in the words of the command.
type inFlags struct{ error }

func (e inFlags) Error() string { return asFlags.Replace(e.error.Error()) }
func (e inFlags) Unwrap() error { return e.error }

// failureOf turns the end of the work into the sentence to be read. r is nil if nothing was followed.
func failureOf(env *environment.Environment, r *dynamill.Running, err error) error {
	switch {
	case r == nil && (errors.Is(err, errDrainTimeout) || errors.Is(err, session.ErrStopped)):
		return fmt.Errorf("%w; run it again to resume", err)
	case errors.Is(err, errDrainTimeout):
		return fmt.Errorf("not drained within --drain-timeout: %s; run it again to resume", unfinished(r))
	case errors.Is(err, session.ErrStopped), errors.Is(err, context.Canceled):
		return fmt.Errorf("stopped before the stream was drained: %s; run it again to resume", unfinished(r))
	}
	unwritten, lost := errors.AsType[*archive.WriteError](err)
	ended, over := errors.AsType[*dynamill.EndedError](err)
	switch {
	case errors.As(err, new(*streamreader.SkippedError)):
		return fmt.Errorf("not everything is drained: delete the rows of these shards from the lease table %s and drain again "+
			"(docs/operations.md, \"A shard that is skipped\"): %w",
			env.LeaseTable, err)
	case lost:
		return ending.Unsuited("%w", unwritten)
	case environment.IsSetup(err):
		return inFlags{env.Classify(err)}
	case over:
		ended.Remedy = asFlags.Replace(ended.Remedy)
		if state := monitor.State(ended.State); state == monitor.StreamDisabled || state == monitor.TableDeleted {
			return ending.Unsuited("%w", ended)
		}
		return ended
	}
	return env.Classify(err)
}

// unfinished says what a drain that was cut short has left.
func unfinished(r *dynamill.Running) string {
	now := r.Status()
	left := fmt.Sprintf("the stream was applied up to %s ago", now.Stream.Lag.Round(time.Second))
	if now.Stream.Records == 0 {
		left = "no record was applied"
	}
	if seeding := seedText(now); seeding != "" {
		left += ", seeding was not finished (" + seeding + ")"
	}
	return left
}
