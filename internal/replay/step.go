package replay

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/internal/replay/internal/progress"
	"github.com/dynamill/dynamill/internal/replay/sources"
)

// Step is one pass of a replay, for Run or, as JSON, for other processes that call WorkPiece.
type Step struct {
	Run        string   `json:"run,omitempty"` // names the rows that hold the progress
	Generation string   `json:"generation,omitempty"`
	Number     int      `json:"number"`           // of the pass in its run, from 0
	Pass       string   `json:"pass,omitempty"`   // "" when nothing is left to do
	Left       int      `json:"left"`             // passes, with this one
	Changes    bool     `json:"changes"`          // the pass brings changed rules into force
	Source     string   `json:"source,omitempty"` // as it describes itself
	Segments   int      `json:"segments,omitempty"`
	Pieces     []string `json:"pieces,omitempty"` // that were not done when the step was made
}

// Done reports that nothing is left to do.
func (s Step) Done() bool { return s.Pass == "" }

func (s Step) run() progress.Run { return progress.Run{ID: s.Run, Generation: s.Generation} }

// Next completes whatever has all its pieces done and returns the pass to work off next. last is the step that it
// returned before, zero at first: by it Next tells a replay that is done from one that is to begin anew. Next joins an
// unfinished replay with the same Config, unless that has had no progress for a day.
//
//	for step, err := replay.Next(ctx, cfg, replay.Step{}); err == nil && !step.Done(); step, err = replay.Next(ctx, cfg, step) {
//		// each of step.Pieces, anywhere, as often as WorkPiece says that it is not done
//	}
func Next(ctx context.Context, cfg Config, last Step) (Step, error) {
	d, err := newDriver(cfg)
	if err != nil {
		return Step{}, err
	}
	return d.next(ctx, last)
}

func (d *driver) next(ctx context.Context, last Step) (Step, error) {
	if d.whole() {
		step, err := d.nextChange(ctx, last)
		if err != nil || !step.Done() || step.Changes {
			return step, err
		}
	}
	passes := []string{d.rederive()}
	if d.whole() {
		passes = append(passes, passSweep)
	}
	return d.nextOf(ctx, passes, last)
}

// nextChange returns the pass that the engine needs next for rules that are not in force yet. Changes without a pass
// says that all of them are in force now.
func (d *driver) nextChange(ctx context.Context, last Step) (Step, error) {
	completed := ""
	for {
		pass, left, err := d.Engine.NextPass(ctx)
		switch {
		case err != nil:
			return Step{}, fmt.Errorf("asking what rules need: %w", err)
		case left == 0:
			return Step{Changes: last.Changes || completed != ""}, nil
		case pass == completed:
			return Step{}, fmt.Errorf("pass %s is still left after all of it was done", pass)
		}
		step, err := d.nextOf(ctx, []string{pass}, Step{Changes: last.Changes})
		if err != nil {
			return Step{}, err
		}
		if step.Done() {
			completed = pass
			continue
		}
		// Another process may have completed the pass before its run was opened, which then was begun again for nothing.
		if still, _, err := d.Engine.NextPass(ctx); err != nil || still == pass {
			step.Changes, step.Left = true, left
			return step, err
		}
		last.Changes = true
	}
}

// nextOf returns the first of a run's passes that is not done. It completes those before, and the run if there is none.
func (d *driver) nextOf(ctx context.Context, passes []string, last Step) (Step, error) {
	run, err := d.open(ctx, passes, last)
	if err != nil || !run.Finished.IsZero() {
		return Step{}, err
	}
	var items int64
	for i, pass := range run.Passes {
		step := Step{Run: run.ID, Generation: run.Generation, Number: i, Pass: pass, Left: len(run.Passes) - i}
		if i < len(run.Segments) {
			step.Segments = run.Segments[i]
		}
		found, pieces, err := d.readPieces(ctx, &step)
		if err != nil {
			return Step{}, err
		}
		if len(step.Pieces) > 0 {
			d.reportOpened(run, step, pieces)
			return step, nil
		}
		items += found
		if last.Generation == run.Generation && i < last.Number { // completed before the last step was given out
			continue
		}
		if err := d.Engine.Complete(ctx, pass); err != nil {
			return Step{}, fmt.Errorf("completing pass %s: %w", pass, err)
		}
	}
	return Step{}, d.store.Finish(ctx, run.Run, items)
}

// reportOpened reports, once, a replay that was found unfinished.
func (d *driver) reportOpened(run progress.Opened, step Step, pieces int) {
	if d.Opened != nil && (run.Joined && !d.opened || !run.GivenUpAt.IsZero()) {
		d.Opened(Opened{
			Begun: run.Started, GivenUpAt: run.GivenUpAt, Number: step.Number + 1, Of: len(run.Passes),
			Pieces: pieces, PiecesDone: pieces - len(step.Pieces),
		})
	}
	d.opened = true
}

// readPieces fills in which pieces of a step are left. It also returns the items worked off and the number of pieces.
func (d *driver) readPieces(ctx context.Context, step *Step) (items int64, all int, err error) {
	source, pieces, err := d.piecesOf(ctx, *step)
	if err != nil {
		return 0, 0, err
	}
	step.Source = source.Describe()
	rows, err := d.store.Pieces(ctx, step.run(), step.Number, namesOf(pieces))
	for _, p := range pieces {
		items += rows[p.Name].Items
		if !rows[p.Name].Done {
			step.Pieces = append(step.Pieces, p.Name)
		}
	}
	return items, len(pieces), err
}

// piecesOf returns the source of a step and all of its pieces.
func (d *driver) piecesOf(ctx context.Context, step Step) (sources.Source, []sources.Piece, error) {
	source, _, err := d.sourceOf(ctx, step.Pass, step.Segments)
	if err != nil {
		return nil, nil, err
	}
	pieces, err := source.Pieces(ctx)
	if err != nil {
		err = fmt.Errorf("listing the pieces of the %s: %w", source.Describe(), err)
	}
	return source, pieces, err
}

// open joins or begins the run of some passes. It does not begin again a run that this replay has worked on and that is
// finished; it does if another process began it anew or its row was deleted.
func (d *driver) open(ctx context.Context, passes []string, last Step) (progress.Opened, error) {
	identity := slices.Concat([]string{d.Version}, passes)
	for _, pass := range passes {
		identity = append(identity, d.identityOf(pass))
	}
	run := progress.Run{ID: progress.RunID(identity...), Passes: passes, Rules: d.Version}
	if last.Run == run.ID {
		found, err := d.store.Get(ctx, run.ID)
		if err != nil {
			return progress.Opened{}, err
		}
		if found.IsOf(passes) && (found.Generation == last.Generation || !found.Finished.IsZero()) {
			return progress.Opened{Run: found}, nil
		}
	}
	var described []string
	for _, pass := range passes {
		source, segments, err := d.sourceOf(ctx, pass, 0)
		if err != nil {
			return progress.Opened{}, err
		}
		described = append(described, source.Describe())
		run.Segments = append(run.Segments, segments)
	}
	run.Source = strings.Join(described, "; ")
	return d.store.Open(ctx, run, d.Restart && last.Run == "" && !last.Changes, idleMax)
}

func namesOf(pieces []sources.Piece) []string {
	names := make([]string, len(pieces))
	for i, p := range pieces {
		names[i] = p.Name
	}
	return names
}
