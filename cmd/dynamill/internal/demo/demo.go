// Package demo plays an example in memory: it writes an example's items to a simulated table, lets the engine follow the
// table's stream as `dynamill run` does, and shows what the engine makes of every step, what it costs, and, computed from
// scratch, whether it is right. It imports internal/story, rules, change, internal/sim/workbench and internal/proof/oracle.
package demo

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/printable"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/proof/oracle"
	"github.com/dynamill/dynamill/internal/sim/workbench"
	"github.com/dynamill/dynamill/internal/story"
)

// ErrDrift is returned when the table is not what its rules ask for.
var ErrDrift = errors.New("the table is not what its rules ask for")

// Default is the example that is played if none is named.
const Default = "groups"

// Run plays an example, Default if the name is empty, and writes to out what it does, in colour for a terminal. It returns
// ErrDrift, wrapped, if the end is not right. The output is the same with every run, but for the colours.
func Run(ctx context.Context, example string, out io.Writer, colour bool) error {
	ex, err := story.Load(cmp.Or(example, Default), projections.Kinds)
	if err != nil {
		return err
	}
	bench, err := workbench.New(ctx, ex.Set)
	if err != nil {
		return err
	}
	if err := bench.CountByHand(ctx, ex.ByHand); err != nil {
		return err
	}
	return newPlay(ex, bench, out, colour).run(ctx)
}

type play struct {
	ex    *story.Example
	bench *workbench.Bench
	paper *paper
	view  *view
	total workbench.Usage
	steps int
}

func newPlay(ex *story.Example, bench *workbench.Bench, out io.Writer, colour bool) *play {
	p := &play{ex: ex, bench: bench, paper: &paper{out: out, colour: colour}, view: &view{set: ex.Set}}
	for _, item := range ex.Items {
		p.view.widen(ex.Set.Table.KeyOf(item))
	}
	for _, step := range ex.Steps {
		for _, w := range step.Writes {
			p.view.widen(ex.Set.Table.KeyOf(w.Item))
		}
	}
	return p
}

func (p *play) run(ctx context.Context) error {
	if err := p.firstRun(ctx); err != nil {
		return err
	}
	for _, step := range p.ex.Steps {
		if err := p.step(ctx, step); err != nil {
			return fmt.Errorf("%s: %w", strings.ToLower(step.Title), err)
		}
		if err := p.paper.flush(); err != nil {
			return err
		}
	}
	return errors.Join(p.verify(ctx), p.paper.flush())
}

// firstRun shows the items that are there before dynamill, and what it makes of them.
func (p *play) firstRun(ctx context.Context) error {
	p.introduce()
	for _, item := range p.ex.Items {
		if err := p.bench.Put(ctx, item); err != nil {
			return err
		}
	}
	before, err := p.look(ctx)
	if err != nil {
		return err
	}
	p.show("Before", fmt.Sprintf("%d items, written by the application alone.", len(before)), before)
	p.bench.Usage() // what the items cost before does not count here
	p.number("The first run", "dynamill derives what these items ask for.")
	if err := p.follow(ctx, before); err != nil {
		return err
	}
	return p.paper.flush()
}

// follow lets dynamill follow the stream, and shows what it makes of the items and what that costs.
func (p *play) follow(ctx context.Context, before snapshot) error {
	if err := p.bench.Drain(ctx); err != nil {
		return err
	}
	after, err := p.look(ctx)
	if err != nil {
		return err
	}
	if p.view.difference(p.paper, before, after) == 0 {
		p.paper.say(6, ink("      ", plain), ink("Nothing to do.", faint))
	}
	if err := p.handWritten(ctx, after); err != nil {
		return err
	}
	p.cost(p.bench.Usage())
	return nil
}

func (p *play) introduce() {
	p.title("dynamill demo "+p.ex.Name, "in memory, on a simulated DynamoDB. The rules:")
	_, ruleLines, _ := bytes.Cut(p.ex.Rules, []byte("\nrules:\n"))
	for line := range strings.Lines(string(ruleLines)) {
		name, rest, _ := strings.Cut(strings.TrimRight(line, "\n"), ":")
		p.paper.columns(ink(name, derived), 0, []span{ink(":"+rest, plain)}, 0)
	}
	p.paper.blank()
	p.paper.say(2, ink("  ", plain), ink("put, set, del: the application writes. "+
		"+ ~ -: dynamill makes, changes, removes. wu: write units, as DynamoDB bills them.", faint))
	if len(p.ex.ByHand) > 0 {
		p.paper.say(2, ink("  ", plain), ink("ADD: what a handler written by hand has instead. It gets the same records, and keeps "+
			strings.Join(p.ex.ByHand, " and ")+" with a bare ADD for each record, in a table of its own.", faint))
	}
}

// step plays one step: the application writes, dynamill follows.
func (p *play) step(ctx context.Context, step story.Step) error {
	p.number(step.Title, step.Say)
	before, err := p.look(ctx)
	if err != nil {
		return err
	}
	for _, w := range step.Writes {
		if err := w.Apply(ctx, p.bench); err != nil {
			return err
		}
		p.written(w, before)
	}
	if before, err = p.look(ctx); err != nil {
		return err
	}
	if step.RepeatEvery > 0 {
		p.bench.RepeatEvery(step.RepeatEvery)
		p.paper.say(6, ink("  !!  ", badNews), ink(fmt.Sprintf(
			"One record in %d is delivered twice.", step.RepeatEvery), badNews))
	}
	if step.CrashAfter > 0 {
		if before, err = p.crash(ctx, step.CrashAfter, before); err != nil {
			return err
		}
	}
	return p.follow(ctx, before)
}

// crash lets the engine's process die on its way, and shows the table as it is left.
func (p *play) crash(ctx context.Context, after int, before snapshot) (snapshot, error) {
	p.bench.CrashAfter(after)
	if err := p.bench.Drain(ctx); !errors.Is(err, workbench.ErrCrashed) {
		return nil, fmt.Errorf("the process was to die after %d writes, but did not: %w", after, cmp.Or(err, errSurvived))
	}
	left, err := p.look(ctx)
	if err != nil {
		return nil, err
	}
	p.view.difference(p.paper, before, left)
	drift := oracle.Drift(p.ex.Set, slices.Collect(maps.Values(left)))
	p.paper.say(6, ink("  !!  ", badNews), ink(fmt.Sprintf(
		"The process is dead after %s, with %s left. Another one takes over from the last checkpoint:",
		printable.Counted(after, "write"), printable.Counted(len(drift), "wrong value")), badNews))
	return left, nil
}

var errSurvived = errors.New("it had no more to write")

// verify shows the items at the end and compares them with a computation from scratch.
func (p *play) verify(ctx context.Context) error {
	end, err := p.look(ctx)
	if err != nil {
		return err
	}
	p.show("After", fmt.Sprintf("%d items.", len(end)), end)
	p.paper.blank()
	p.paper.say(2, ink("Cost: ", heading), ink(fmt.Sprintf(
		"application %s wu; dynamill %s wu in the table, %s in its state table; %s.",
		units(p.total.Application), units(p.total.Table), units(p.total.State),
		printable.Counted(p.total.Records, "stream record")), plain))
	if err := p.compareByHand(ctx, end); err != nil {
		return err
	}
	drift, says, tone := oracle.Drift(p.ex.Set, slices.Collect(maps.Values(end))), "no drift", goodNews
	if len(drift) > 0 {
		says, tone = "DRIFT", badNews
	}
	p.paper.say(2, ink("Check: ", heading), ink(fmt.Sprintf("all %d items computed anew from scratch: %s.", len(end), says), tone))
	if len(drift) == 0 {
		return nil
	}
	for _, d := range drift {
		p.paper.say(4, ink("  ", plain), ink(d.String(), badNews))
	}
	return fmt.Errorf("example %s: %w: %s", p.ex.Name, ErrDrift, printable.Counted(len(drift), "difference"))
}

func (p *play) look(ctx context.Context) (snapshot, error) {
	items, err := p.bench.Items(ctx)
	if err != nil {
		return nil, err
	}
	s := snapshot{}
	for _, item := range items {
		key := p.ex.Set.Table.KeyOf(item)
		s[key] = item
		p.view.widen(key)
	}
	return s, nil
}

func (p *play) show(title, text string, s snapshot) {
	p.paper.blank()
	p.title(title, text)
	for _, key := range keys(s, nil) {
		p.view.whole(p.paper, key, s[key])
	}
}

// written shows one write of the application.
func (p *play) written(w story.Write, before snapshot) {
	key := p.ex.Set.Table.KeyOf(w.Item)
	mark := map[story.Verb]string{story.Put: "put", story.Update: "set", story.Delete: "del"}[w.Verb]
	var parts []span
	was := p.view.timed(key, before[key])
	base, own := p.view.attributes(key, w.Item, was)
	for _, name := range slices.Concat(base, own) {
		value := w.Item.Lookup(name)
		switch {
		case value.Kind() != change.KindAbsent:
			parts = append(parts, ink(name+"="+short(value), users))
		case w.Verb == story.Put && slices.Contains(own, name) && was.Lookup(name).Kind() != change.KindAbsent:
			parts = append(parts, ink(name+" lost, was "+short(was.Lookup(name)), gone))
		}
	}
	p.paper.columns(p.view.marked(mark, users, key), 2+markWidth+p.view.indent(), parts, 2)
}

func units(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

func (p *play) title(title, text string) {
	p.paper.say(3, ink(title+": ", heading), ink(text, plain))
}

func (p *play) number(title, text string) {
	p.paper.blank()
	p.steps++
	p.title(fmt.Sprintf("%d  %s", p.steps, title), text)
}

func (p *play) cost(u workbench.Usage) {
	p.total = p.total.Plus(u)
	text := fmt.Sprintf("dynamill %s wu in the table, %s in its state table", units(u.Table), units(u.State))
	if u.Application > 0 {
		text = fmt.Sprintf("application %s wu; %s", units(u.Application), text)
	}
	p.paper.say(6, ink("      ", plain), ink(text, faint))
}
