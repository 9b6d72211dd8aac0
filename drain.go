package dynamill

import (
	"context"
	"fmt"

	"github.com/dynamill/dynamill/internal/sighting"
)

// drain reads the stream until new rules are seeded, and then to its end.
func (f *follower) drain(ctx context.Context, seedingOver context.Context) error {
	if err := f.readUntil(ctx, seedingOver); err != nil {
		return err
	}
	if err := f.drainAll(ctx); err != nil {
		return err
	}
	f.drained.Store(true)
	if _, err := sighting.LookAndRecord(context.WithoutCancel(ctx), f.engine, f.engine.Matches().Whole); err != nil {
		return fmt.Errorf("looking for targets that do not exist: %w", err)
	}
	return nil
}

// readUntil follows the stream until another context ends, and then stops gracefully.
func (f *follower) readUntil(ctx, over context.Context) error {
	if over.Err() != nil {
		return nil // nothing was to be seeded
	}
	reading, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(over, stop)()
	return f.readBesideTasks(reading, f.reader.Run)
}

// drainAll drains the stream until a whole round finds no task: a task writes records to the stream. It looks for tasks
// before each round, because another process may just have ended one.
func (f *follower) drainAll(ctx context.Context) error {
	for {
		if ctx.Err() != nil { // a reader that begins anew forgets how far it came
			return context.Cause(ctx)
		}
		found := f.engine.TasksFound()
		if err := f.engine.LookForTasks(ctx); err != nil {
			return err
		}
		if err := f.readBesideTasks(ctx, f.reader.Drain); err != nil {
			return err
		}
		if err := f.workTasksOnce(ctx); err != nil || f.engine.TasksFound() == found {
			return err
		}
	}
}
