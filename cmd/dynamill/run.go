package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dynamill/dynamill/projections"
	"github.com/dynamill/dynamill/replay/archive"
	"github.com/dynamill/dynamill/rules"
)

const (
	stateSuffix  = "-dynamill" // names the state table beside the user's table
	leasesSuffix = "-leases"   // names the table of leases and checkpoints beside the state table
)

// A term is renewed three times; below a second a slow answer would end it. What
// a process leaves behind lies for a term: for an hour at most, which leaves 23
// of the stream's 24.
const (
	leaseTermDefault = 10 * time.Second
	leaseTermMin     = time.Second
	leaseTermMax     = time.Hour
	workerLengthMax  = 256
)

var errDrainTimeout = errors.New("not drained within --drain-timeout")

// runOptions are the flags of `run`.
type runOptions struct {
	drain        bool
	drainTimeout time.Duration
	listen       string
	readyLag     time.Duration
	profile      bool
	writeRateMax int // write units per second; 0: no bound
	worker       string
	leaseTerm    time.Duration
	archive      string // a folder; "": no archive
	archiveGzip  bool
}

func (o *runOptions) addTo(flags *pflag.FlagSet) {
	flags.BoolVar(&o.drain, "drain", false, "end once new rules are seeded and every change up to then is applied")
	flags.DurationVar(&o.drainTimeout, "drain-timeout", 0, "with --drain: give up after this `duration` (0: never)")
	flags.StringVar(&o.listen, "listen", "", "serve /metrics, /healthz and /readyz at this `address`, such as 127.0.0.1:9464\n(default: nothing is served)")
	flags.DurationVar(&o.readyLag, "ready-lag", readyLagDefault, "/readyz says no beyond this lag `duration` (0: lag does not count)")
	flags.BoolVar(&o.profile, "pprof", false, "with --listen: serve /debug/pprof/ too")
	flags.IntVar(&o.writeRateMax, "max-write-rate", 0, "write at most this many write `units` per second (0: no bound)")
	flags.StringVar(&o.worker, "worker", "", "this process's `name`, which no other that shares the stream may have (default: host and a random part)")
	flags.DurationVar(&o.leaseTerm, "lease-term", leaseTermDefault, "after this `duration` the shards of a process that is not heard of go to others;\nothers go by it, whatever theirs is")
	flags.StringVar(&o.archive, "archive", "", "keep every record in files in this `folder`, for replays (default: none is kept)")
	flags.BoolVar(&o.archiveGzip, "archive-gzip", false, "with --archive: pack the files")
}

// check refuses what makes no sense together.
func (o *runOptions) check(changed func(flag string) bool) error {
	switch {
	case o.drainTimeout < 0:
		return invalid("--drain-timeout %s is negative: give a duration such as 10m", o.drainTimeout)
	case changed("drain-timeout") && !o.drain:
		return invalid("--drain-timeout has no meaning without --drain: add --drain")
	case o.readyLag < 0:
		return invalid("--ready-lag %s is negative: give a duration such as 5m", o.readyLag)
	case o.profile && o.listen == "":
		return invalid("--pprof has no meaning without --listen: add --listen 127.0.0.1:9464")
	case o.writeRateMax < 0:
		return invalid("--max-write-rate %d is negative: give write units per second", o.writeRateMax)
	case o.leaseTerm < leaseTermMin || o.leaseTerm > leaseTermMax:
		return invalid("--lease-term %s is not between %s and %s", o.leaseTerm, leaseTermMin, leaseTermMax)
	case o.archiveGzip && o.archive == "":
		return invalid("--archive-gzip has no meaning without --archive: add --archive FOLDER")
	case len(o.worker) > workerLengthMax:
		return invalid("--worker has %d bytes: give a name of at most %d", len(o.worker), workerLengthMax)
	}
	return nil
}

func (a *app) runCommand() *cobra.Command {
	var options runOptions
	command := &cobra.Command{
		Use:   "run",
		Short: "Follows the table's stream and keeps what the rules derive true",
		Long: "Follows the table's stream until it is stopped. Several processes may do so at once: they divide the stream's\n" +
			"shards between them, and those of one that dies go to the others after --lease-term. Rules that are new to the\n" +
			"table are seeded from what is in it once what the stream held is applied. Two tables are created where they are\n" +
			"missing: TABLE-dynamill for dynamill's state and TABLE-dynamill-leases for how far the stream is done.\n" +
			"--state-table NAME makes them NAME and NAME-leases.\n\n" +
			"The first SIGINT or SIGTERM stops gracefully: what is in flight is finished and checkpointed. A second one\n" +
			"aborts; whatever a process leaves behind, the next one takes up, and nothing is applied twice.\n\n" +
			"With --listen a state that only a person can end (the table is deleted, its stream disabled or replaced, records\n" +
			"lost) does not end the process: it stays up and says so until it is stopped. docs/operations.md lists the\n" +
			"states and the metrics.\n\n" + configurationHelp,
		Example: "  dynamill run --table app\n" +
			"  dynamill run --table app --drain --drain-timeout 10m --json\n" +
			"  dynamill run --table app --listen 127.0.0.1:9464 --max-write-rate 500\n" +
			"  dynamill run --table app --endpoint http://localhost:8000",
		Args:    cobra.NoArgs,
		PreRunE: func(cmd *cobra.Command, _ []string) error { return options.check(cmd.Flags().Changed) },
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.run(cmd.Context(), options) },
	}
	options.addTo(command.Flags())
	return command
}

func (a *app) run(ctx context.Context, options runOptions) error {
	ctx, j, end, err := a.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	if options.drainTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, options.drainTimeout, errDrainTimeout)
		defer cancel()
	}
	o := &overseer{lagMax: options.readyLag, logger: j.logger}
	if options.writeRateMax > 0 {
		o.pace = newWritePace(options.writeRateMax)
	}
	endWatch, err := o.oversee(ctx, options.listen, options.profile)
	if err != nil {
		return err
	}
	defer endWatch()
	err = a.followTable(ctx, j, o, options)
	var ended *endedError
	if errors.As(err, &ended) && options.listen != "" && !options.drain {
		o.ended(ctx, ended)
	}
	return err
}

func (a *app) followTable(ctx context.Context, j *job, o *overseer, options runOptions) error {
	f, err := a.start(ctx, j, o, options)
	switch cause := context.Cause(ctx); {
	case err != nil && errors.Is(cause, errStopped) && !options.drain:
		return nil
	case err != nil && cause != nil:
		return fmt.Errorf("%w: nothing was followed yet; run again to go on", cause)
	case err != nil:
		return err
	}
	defer f.endArchive()
	if err := f.follow(ctx, j.status, options.drain); err != nil {
		var unwritten *archive.WriteError
		if errors.As(err, &unwritten) {
			return unsuited("%w", unwritten)
		}
		return f.failure(ctx, err)
	}
	if !options.drain {
		return nil
	}
	return a.printDrained(context.WithoutCancel(ctx), f)
}

// start opens the engine on the table, says what will be followed and written,
// and makes ready to follow.
func (a *app) start(ctx context.Context, j *job, o *overseer, options runOptions) (*follower, error) {
	env, err := a.options.connect(ctx, j.table, j.logger)
	if err != nil {
		return nil, err
	}
	streamARN, err := env.streamARN(ctx)
	if err != nil {
		return nil, err
	}
	lost, err := env.refuseLostState(ctx, streamARN)
	if err != nil {
		return nil, err
	}
	if lost != lostNone {
		j.logger.Warn(env.lostText(lost))
	}
	cfg := projections.Config{Client: env.tables, Table: j.table, StateTable: env.stateTable, Rules: j.set, Logger: j.logger}
	cfg.TaskProgress = func(p projections.TaskProgress) {
		if f := o.follower.Load(); f != nil {
			f.noteTask(p)
		}
	}
	if o.pace != nil {
		cfg.Limiter = o.pace
	}
	engine, err := projections.Open(ctx, cfg)
	if err != nil {
		return nil, env.classify(fmt.Errorf("starting on table %q: %w", j.table, err))
	}
	fmt.Fprint(j.status, announcement(j.set, env, engine.Describe(), streamARN, options.archive))
	return newFollower(ctx, env, engine, j.set.Table, streamARN, o, options)
}

// announcement says, before anything is written, what is followed and what will be written.
func announcement(set *rules.Set, env *environment, d projections.Description, streamARN, archiveDir string) string {
	var b strings.Builder
	state := "found"
	if d.StateTableCreated {
		state = "created"
	}
	facts := columns{}
	facts.add("table", env.table+" in "+env.where())
	facts.add("stream", streamARN)
	facts.add("state", d.StateTable+" ("+state+")")
	facts.add("checkpoints", env.leaseTable)
	if archiveDir != "" {
		facts.add("archive", archiveDir)
	}
	_ = facts.writeTo(&b)
	fmt.Fprintf(&b, "%s:\n", counted(len(set.Rules), "rule"))
	isNew := make(map[string]bool, len(d.NewRules))
	for _, name := range d.NewRules {
		isNew[name] = true
	}
	list := columns{indent: "  "}
	for _, rule := range set.Rules {
		note := ""
		if isNew[rule.Name] {
			note = "new: to be seeded"
		}
		list.add(rule.Name, kindName(rule.Kind), rule.Source.Name+" → "+written(rule), note)
	}
	_ = list.writeTo(&b)
	return b.String()
}

// written names what a rule writes: Group.memberCount, Comment.{userName, userAvatar}, or whole Member items.
func written(rule *rules.Rule) string {
	switch {
	case rule.Kind == rules.Mirror:
		return rule.Target.Name + " items"
	case len(rule.Writes) == 1:
		return rule.Target.Name + "." + rule.Writes[0]
	}
	return rule.Target.Name + ".{" + strings.Join(rule.Writes, ", ") + "}"
}

func counted(n int, noun string) string { return grouped(int64(n)) + " " + plural(int64(n), noun) }

// drained is the result of `run --drain`.
type drained struct {
	Table   string `json:"table"`
	Records int64  `json:"records"`
	// Relevant records asked for work; Unmatched ones were of items of no entity.
	Relevant     int64   `json:"relevant"`
	Unmatched    int64   `json:"unmatched"`
	Writes       int64   `json:"writes"`
	Transactions int64   `json:"transactions"`
	Rollups      int64   `json:"rollups"`
	Copies       int64   `json:"copies"`
	Mirrors      int64   `json:"mirrors"`
	Healed       int64   `json:"healed"`
	Parked       int     `json:"parked"`
	Seconds      float64 `json:"seconds"`

	Rules    map[string]float64 `json:"writeUnitsByRule"`
	Matched  matchReport        `json:"matched"`
	Missing  []missingReport    `json:"missingTargets"`
	Warnings []string           `json:"warnings"`
}

func (a *app) printDrained(ctx context.Context, f *follower) error {
	seen, err := f.recordAfterDrain(ctx)
	if err != nil {
		return f.env.classify(err)
	}
	parked, err := f.engine.CountParked(ctx)
	if err != nil {
		return f.env.classify(fmt.Errorf("counting what is parked: %w", err))
	}
	now, stats, took := f.snapshot(), f.engine.Stats(), time.Since(f.started)
	if a.options.json {
		return a.printJSON(drained{
			Table: f.env.table, Records: now.Records, Writes: now.Writes, Healed: now.Healed,
			Relevant: stats.Relevant, Unmatched: stats.Unmatched, Transactions: stats.Transactions,
			Rollups: stats.Rollups, Copies: stats.Copies, Mirrors: stats.Mirrors,
			Parked: parked, Seconds: took.Round(time.Millisecond).Seconds(),
			Rules: unitsByRule(f.engine), Matched: seen.matched(), Missing: seen.missing(), Warnings: seen.warnings(true),
		})
	}
	text := fmt.Sprintf("drained: %s, %s, %s parked, in %s", counted(int(now.Records), "record"),
		counted(int(now.Writes), "write"), grouped(int64(parked)), took.Round(100*time.Millisecond))
	if parked > 0 {
		text += "; see `dynamill parked list`"
	}
	if err := a.printOutcome(outcomeColour(parked), text+"\n"); err != nil {
		return err
	}
	return a.printText(seen.text())
}
