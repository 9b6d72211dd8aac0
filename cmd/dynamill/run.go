package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dynamill/dynamill"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/progress"
	"github.com/dynamill/dynamill/internal/following"
	"github.com/dynamill/dynamill/internal/printable"
	"github.com/dynamill/dynamill/internal/sighting"
	"github.com/dynamill/dynamill/rules"
)

const (
	stateSuffix  = following.StateSuffix // names the state table beside the user's table
	leasesSuffix = following.LeaseSuffix // names the table of leases and checkpoints beside the state table
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
	endWatch, err := o.oversee(ctx, options.listen, options.profile)
	if err != nil {
		return err
	}
	defer endWatch()
	err = a.followTable(ctx, j, o, options)
	var ended *dynamill.EndedError
	if errors.As(err, &ended) && options.listen != "" && !options.drain {
		o.ended(ctx, ended, err)
	}
	return err
}

func (a *app) followTable(ctx context.Context, j *job, o *overseer, options runOptions) error {
	env, err := a.options.connect(ctx, j.table, j.logger)
	if err != nil {
		return err
	}
	began, stopShowing := time.Now(), func() {}
	err = dynamill.Follow(ctx, dynamill.Config{
		Tables: env.tables, Streams: env.streams, Table: j.table, Rules: j.set, StateTable: env.stateTable, LeaseTable: env.leaseTable,
		Drain: options.drain, Worker: options.worker, LeaseTerm: options.leaseTerm, WriteRateMax: options.writeRateMax,
		Archive: options.archive, ArchiveGzip: options.archiveGzip, Logger: j.logger,
		Started: func(r *dynamill.Running) {
			fmt.Fprint(j.status, announcement(j.set, env, r, options.archive))
			o.running.Store(r)
			env.renewal.turnOn(o.holder.SetExpired)
			stopShowing = progress.Start(ctx, j.status, j.logger, watchProgress(r, options.drain))
		},
	})
	stopShowing()
	if err != nil {
		return env.failure(o.running.Load(), err)
	}
	if !options.drain {
		return nil
	}
	return a.printDrained(context.WithoutCancel(ctx), env, o.running.Load(), time.Since(began))
}

// announcement says, before anything is written, what is followed and what will be written.
func announcement(set *rules.Set, env *environment, r *dynamill.Running, archiveDir string) string {
	d := r.Engine.Describe()
	var b strings.Builder
	state := "found"
	if d.StateTableCreated {
		state = "created"
	}
	facts := columns{}
	facts.add("table", env.table+" in "+env.where())
	facts.add("stream", r.StreamARN)
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
		list.add(rule.Name, rule.Kind.Word(), rule.Source.Name+" → "+written(rule), note)
	}
	_ = list.writeTo(&b)
	return b.String()
}

// written names what a rule writes: Group.memberCount, Comment.{userName, userAvatar}, or whole Member items.
func written(rule *rules.Rule) string {
	switch {
	case rule.MakesItems():
		return rule.Target.Name + " items"
	case len(rule.Writes) == 1:
		return rule.Target.Name + "." + rule.Writes[0]
	}
	return rule.Target.Name + ".{" + strings.Join(rule.Writes, ", ") + "}"
}

func counted(n int, noun string) string { return printable.Counted(int64(n), noun) }

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

func (a *app) printDrained(ctx context.Context, env *environment, r *dynamill.Running, took time.Duration) error {
	parked, err := r.Engine.CountParked(ctx)
	if err != nil {
		return env.classify(fmt.Errorf("counting what is parked: %w", err))
	}
	seen, now := sightings{Seen: sighting.Of(r.Engine)}, r.Status()
	stats := now.Engine
	if a.options.json {
		return a.printJSON(drained{
			Table: env.table, Records: now.Stream.Records, Writes: stats.Writes, Healed: stats.Heals,
			Relevant: stats.Relevant, Unmatched: stats.Unmatched, Transactions: stats.Transactions,
			Rollups: stats.Rollups, Copies: stats.Copies, Mirrors: stats.Mirrors,
			Parked: parked, Seconds: took.Round(time.Millisecond).Seconds(),
			Rules: unitsByRule(r.Engine), Matched: seen.matched(), Missing: seen.missing(), Warnings: seen.Warnings(true),
		})
	}
	text := fmt.Sprintf("drained: %s, %s, %s parked, in %s", counted(int(now.Stream.Records), "record"),
		counted(int(stats.Writes), "write"), grouped(int64(parked)), took.Round(100*time.Millisecond))
	if parked > 0 {
		text += "; see `dynamill parked list`"
	}
	if err := a.printOutcome(outcomeColour(parked), text+"\n"); err != nil {
		return err
	}
	return a.printText(seen.text())
}
