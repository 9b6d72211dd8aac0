package dynamill

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dynamill/dynamill/internal/streamreader"
	"github.com/dynamill/dynamill/projections"
)

// tasksPoll is how often a process looks for tasks of other processes. It works on its own at once.
const tasksPoll = 5 * time.Second

// displayEvery is the least time between two writes of a display that many records change. Beside the stream, the process
// does the roll-ups that it has put off.
const displayEvery = time.Second

// wakeTasks has workTasks look for tasks now.
func (f *follower) wakeTasks() {
	select {
	case f.taskKept <- struct{}{}:
	default: // it is about to look
	}
}

// readBesideTasks reads the stream, and works off tasks beside it. After the reading it finishes the task that is under way.
func (f *follower) readBesideTasks(ctx context.Context, read func(context.Context) error) error {
	readingOver := make(chan struct{})
	group, working := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(readingOver)
		return read(working)
	})
	group.Go(func() error { return f.workTasks(working, readingOver) })
	return group.Wait()
}

// workTasks works off tasks until ctx ends or over is closed. It retries a failed task; records do not wait for it.
func (f *follower) workTasks(ctx context.Context, over <-chan struct{}) error {
	for {
		err := f.workTasksOnce(ctx)
		if streamreader.StopsReading(err) {
			return err
		}
		var woken <-chan struct{} = f.taskKept
		if err != nil && ctx.Err() == nil {
			f.Logger.Warn("working off a task failed, will retry", "error", err)
			woken = nil // each batch of a hot display wakes, and would have it fail again
		}
		select {
		case <-ctx.Done():
			return nil
		case <-over:
			return nil
		case <-woken:
		case <-time.After(tasksPoll):
		}
	}
}

func (f *follower) workTasksOnce(ctx context.Context) error {
	_, err := f.engine.WorkTasks(ctx)
	f.fanOut.Store(nil)
	return err
}

// fanOutState is the fan-out at hand.
type fanOutState struct {
	projections.TaskProgress
	began time.Time // the first piece that was seen
}

// noteTask takes the progress of a fan-out's task from the engine.
func (f *follower) noteTask(p projections.TaskProgress) {
	if p.Rule == "" { // no fan-out is left
		f.fanOut.Store(nil)
		return
	}
	state := &fanOutState{TaskProgress: p, began: time.Now()}
	if last := f.fanOut.Load(); last != nil && last.Rule == p.Rule && last.Parent == p.Parent {
		state.began = last.began
	}
	f.fanOut.Store(state)
}
