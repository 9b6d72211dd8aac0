package handlers

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"time"
)

// Replayer works off a replay in pieces, for a state machine with parallel invocations. Its steps are opaque.
type Replayer interface {
	// BeginReplay begins a replay, or joins one like it that is not finished, unless it is to be begun anew.
	BeginReplay(ctx context.Context, r ReplayRequest) (ReplayStep, error)
	// NextReplay is called after the pieces of a step, with or without success. It completes what is done.
	NextReplay(ctx context.Context, step json.RawMessage) (ReplayStep, error)
	// WorkReplay works off one piece until it is done or the time, if not zero, has come, and counts the items.
	WorkReplay(ctx context.Context, step json.RawMessage, piece string, until time.Time) (ReplayPiece, error)
}

// ReplayRequest says what to replay. The zero value scans the whole table and brings the rules into force.
type ReplayRequest struct {
	Source   string   `json:"source,omitempty"`   // "scan", the default, or the place of an export: s3://bucket/prefix
	Segments int      `json:"segments,omitempty"` // of the scan; 0: by the table's size
	Rules    []string `json:"rules,omitempty"`    // names of those whose items are replayed; none: all
	// ChangeRules has what the rule file changes or removes of the rules in force carried out.
	ChangeRules bool `json:"changeRules,omitempty"`
	Restart     bool `json:"restart,omitempty"` // forget what an unfinished replay like it has done
}

// Scans reports whether the table itself is the source.
func (r ReplayRequest) Scans() bool { return r.Source == "" || r.Source == replayScan }

// ReplayStep is what a state machine is told to do next.
type ReplayStep struct {
	Step json.RawMessage `json:"step"` // for NextReplay and WorkReplay
	// Pieces are to be worked off now, as many as fit into a state's input. The others come with a later step.
	Pieces   []string `json:"pieces"`
	Left     int      `json:"left"`     // passes, with this one, as far as is known
	Finished bool     `json:"finished"` // nothing is left
}

// ReplayPiece is how far the work on a piece is.
type ReplayPiece struct {
	Done  bool  `json:"done"`  // else it is to be given out again
	Items int64 `json:"items"` // looked at by this call
}

const replayScan = "scan"

// replayMarginMax bounds the tenth of an invocation's time that is kept for finishing the page in hand.
const replayMarginMax = time.Minute

const replayWanted = `want {"dynamill":"replay","begin":{...}}, {"dynamill":"replay","next":STEP} ` +
	`or {"dynamill":"replay","work":STEP,"piece":"..."}`

// checkReplay refuses a command that does not ask a Replayer for one thing.
func (c *command) checkReplay() error {
	asked := 0
	for _, there := range []bool{c.Begin != nil, c.Next != nil, c.Work != nil} {
		if there {
			asked++
		}
	}
	switch {
	case c.Object != "":
		return payloadErrorf("the replay cannot be read: unknown field %q: %s", "object", replayWanted)
	case asked != 1 || (c.Work != nil) != (c.Piece != ""):
		return payloadErrorf("it does not say what of a replay to do: %s", replayWanted)
	case c.Begin != nil:
		return c.Begin.check()
	}
	return nil
}

// check refuses what makes no sense together.
func (r *ReplayRequest) check() error {
	switch {
	case !r.Scans() && !strings.HasPrefix(r.Source, "s3://"):
		return payloadErrorf("the source %q is neither scan nor the s3://bucket/prefix of an export", r.Source)
	case r.Segments < 0:
		return payloadErrorf("%d segments: want a number of segments, or none for as many as the table's size asks for", r.Segments)
	case r.Segments > 0 && !r.Scans():
		return payloadErrorf("segments have no meaning with the source %s: only a scan has them", r.Source)
	case r.ChangeRules && (!r.Scans() || len(r.Rules) > 0):
		return payloadErrorf("rules are changed by a scan for all rules only: leave out source and rules, or changeRules")
	}
	return nil
}

// IsReplay reports whether a payload is a step of a replay.
func IsReplay(payload []byte) bool {
	b, err := readBatch(payload, &Config{})
	return err == nil && b.shape == shapeReplay
}

// ChangesRules reports whether a payload begins a replay that may change the rules in force.
func ChangesRules(payload []byte) bool {
	b, err := readBatch(payload, &Config{})
	return err == nil && b.shape == shapeReplay && b.command.Begin != nil && b.command.Begin.ChangeRules
}

// workReplay does what a state machine asks for. The state machine knows by the type of an error whether a retry may help.
func (d *delivery) workReplay(ctx context.Context) (err error) {
	switch c := &d.command; {
	case c.Begin != nil:
		err = d.answerStep(d.Replays.BeginReplay(ctx, *c.Begin))
	case c.Next != nil:
		err = d.answerStep(d.Replays.NextReplay(ctx, *c.Next))
	default:
		var piece ReplayPiece
		piece, err = d.Replays.WorkReplay(ctx, *c.Work, c.Piece, untilReplayMargin(ctx, time.Now()))
		d.reply = piece
		d.commandAttrs = []slog.Attr{slog.String("piece", c.Piece), slog.Int64("items", piece.Items), slog.Bool("done", piece.Done)}
	}
	if err != nil && ctx.Err() != nil {
		return d.stopped(ctx, "replaying", err)
	}
	return err
}

// answerStep makes a step one that a state machine can go over.
func (d *delivery) answerStep(s ReplayStep, err error) error {
	if s.Pieces == nil {
		s.Pieces = []string{}
	}
	if s.Step == nil {
		s.Step = json.RawMessage("{}")
	}
	d.reply = s
	d.commandAttrs = []slog.Attr{slog.Int("pieces", len(s.Pieces)), slog.Int("left", s.Left), slog.Bool("finished", s.Finished)}
	return err
}

// untilReplayMargin is when no further page is begun; zero if there is no deadline.
func untilReplayMargin(ctx context.Context, now time.Time) time.Time {
	deadline, ok := ctx.Deadline()
	if !ok {
		return time.Time{}
	}
	return deadline.Add(-min(replayMarginMax, deadline.Sub(now)/10))
}
