package handlers

import (
	"context"
	"log/slog"
)

// taskProgress answers an invocation for tasks.
type taskProgress struct {
	Pieces int  `json:"pieces"`
	Done   bool `json:"done"` // nothing is left
}

// workTasks works off tasks until nothing is left or time is up. Time running
// out is no failure: every piece that is done is durable, and the schedule's next
// invocation goes on.
func (d *delivery) workTasks(ctx context.Context) error {
	pieces, err := d.Tasks.WorkTasks(ctx)
	d.reply = taskProgress{Pieces: pieces, Done: err == nil}
	d.commandAttrs = []slog.Attr{slog.Int("pieces", pieces), slog.Bool("done", err == nil)}
	if err == nil || ctx.Err() != nil {
		return nil
	}
	return d.stopped(ctx, "working off tasks", err)
}
