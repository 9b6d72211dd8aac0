package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dynamill/dynamill"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/progress"
	"github.com/dynamill/dynamill/internal/printable"
	"github.com/dynamill/dynamill/internal/sighting"
	"github.com/dynamill/dynamill/rules"
)

// workerLengthMax bounds --worker, in bytes: it stands in every row of a lease.
const workerLengthMax = 256

var errDrainTimeout = errors.New("not drained within --drain-timeout")

// runOptions are the flags of `run`.
type runOptions struct {
	dynamill.Config
	drainTimeout time.Duration
	listen       string
	readyLag     time.Duration
	profile      bool
}

// check refuses what makes no sense together.
func (o *runOptions) check(timeoutGiven bool) error {
	switch {
	case o.drainTimeout < 0:
		return invalid("--drain-timeout %s is negative: give a duration such as 10m", o.drainTimeout)
	case timeoutGiven && !o.Drain:
		return invalid("--drain-timeout has no meaning without --drain: add --drain")
	case o.readyLag < 0:
		return invalid("--ready-lag %s is negative: give a duration such as 5m", o.readyLag)
	case o.profile && o.listen == "":
		return invalid("--pprof has no meaning without --listen: add --listen 127.0.0.1:9464")
	case o.WriteRateMax < 0:
		return invalid("--max-write-rate %d is negative: give write units per second", o.WriteRateMax)
	case o.LeaseTerm < dynamill.LeaseTermMin || o.LeaseTerm > dynamill.LeaseTermMax:
		return invalid("--lease-term %s is not between %s and %s", o.LeaseTerm, dynamill.LeaseTermMin, dynamill.LeaseTermMax)
	case o.ArchiveGzip && o.Archive == "":
		return invalid("--archive-gzip has no meaning without --archive: add --archive FOLDER")
	case len(o.Worker) > workerLengthMax:
		return invalid("--worker has %d bytes: give a name of at most %d", len(o.Worker), workerLengthMax)
	}
	return nil
}

// runTable follows the table's stream.
func runTable(ctx context.Context, out *output, s *settings, options runOptions) error {
	ctx, w, end, err := begin(ctx, out, s, nil)
	if err != nil {
		return err
	}
	defer end()
	if options.drainTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, options.drainTimeout, errDrainTimeout)
		defer cancel()
	}
	o := &overseer{lagMax: options.readyLag, logger: w.logger}
	endWatch, err := o.oversee(ctx, options.listen, options.profile)
	if err != nil {
		return err
	}
	defer endWatch()
	err = followTable(ctx, w, o, options)
	var ended *dynamill.EndedError
	if errors.As(err, &ended) && options.listen != "" && !options.Drain {
		o.ended(ctx, ended, err)
	}
	return err
}

func followTable(ctx context.Context, w *session, o *overseer, options runOptions) error {
	if err := w.connect(ctx); err != nil {
		return err
	}
	env, began, stopShowing := w.env, time.Now(), func() {}
	cfg := options.Config
	cfg.Tables, cfg.Streams, cfg.Table, cfg.Rules = env.tables, env.streams, w.table, w.set
	cfg.StateTable, cfg.LeaseTable, cfg.Logger = env.stateTable, env.leaseTable, w.logger
	cfg.Started = func(r *dynamill.Running) {
		fmt.Fprint(w.screen, announcement(w, r, cfg.Archive))
		o.running.Store(r)
		env.renewal.turnOn(o.holder.SetExpired)
		stopShowing = progress.Start(ctx, w.screen, w.logger, watchProgress(r, cfg.Drain))
	}
	err := dynamill.Follow(ctx, cfg)
	stopShowing()
	if err != nil {
		return runFailure(env, o.running.Load(), err)
	}
	if !options.Drain {
		return nil
	}
	return printDrained(context.WithoutCancel(ctx), w, o.running.Load(), time.Since(began))
}

// announcement says, before anything is written, what is followed and what will be written.
func announcement(w *session, r *dynamill.Running, archiveDir string) string {
	d := r.Engine.Describe()
	state := "found"
	if d.StateTableCreated {
		state = "created"
	}
	facts := columns{}
	facts.add("table", w.table+" in "+w.env.where())
	facts.add("stream", r.StreamARN)
	facts.add("state", d.StateTable+" ("+state+")")
	facts.add("checkpoints", w.env.leaseTable)
	if archiveDir != "" {
		facts.add("archive", archiveDir)
	}
	list := columns{indent: "  "}
	for _, rule := range w.set.Rules {
		note := ""
		if slices.Contains(d.NewRules, rule.Name) {
			note = "new: to be seeded"
		}
		list.add(rule.Name, kindName(rule.Kind), rule.Source.Name+" → "+written(rule), note)
	}
	return facts.Text() + printable.Counted(len(w.set.Rules), "rule") + ":\n" + list.Text()
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

	Rules map[string]float64 `json:"writeUnitsByRule"`
	seenReport
}

func printDrained(ctx context.Context, w *session, r *dynamill.Running, took time.Duration) error {
	parked, err := r.Engine.CountParked(ctx)
	if err != nil {
		return w.env.classify(fmt.Errorf("counting what is parked: %w", err))
	}
	seen, now := sightings{Seen: sighting.Of(r.Engine)}, r.Status()
	stats := now.Engine
	if w.json {
		w.printJSON(drained{
			Table: w.table, Records: now.Stream.Records, Writes: stats.Writes, Healed: stats.Heals,
			Relevant: stats.Relevant, Unmatched: stats.Unmatched, Transactions: stats.Transactions,
			Rollups: stats.Rollups, Copies: stats.Copies, Mirrors: stats.Mirrors,
			Parked: parked, Seconds: took.Round(time.Millisecond).Seconds(), Rules: workOf(r.Engine).Rules, seenReport: seen.report(),
		})
		return nil
	}
	text := fmt.Sprintf("drained: %s, %s, %s parked, in %s", printable.Counted(now.Stream.Records, "record"),
		printable.Counted(stats.Writes, "write"), printable.Grouped(parked), took.Round(100*time.Millisecond))
	if parked > 0 {
		text += "; see `dynamill parked list`"
	}
	w.printOutcome(outcomeColour(parked), text+"\n")
	w.printText(seen.Text())
	return nil
}
