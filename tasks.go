package dynamill

import (
	"context"
	"time"

	"github.com/dynamill/dynamill/internal/pace"
	"github.com/dynamill/dynamill/internal/streamreader"
	"github.com/dynamill/dynamill/projections"
)

// tasksPoll is how often a process looks for what large fan-outs have left.
const tasksPoll = 5 * time.Second

// workTasks works off tasks beside the stream until ctx ends. What fails is
// tried again: the records do not wait for it.
func (f *follower) workTasks(ctx context.Context) error {
	for {
		_, err := f.workTasksOnce(ctx)
		if streamreader.StopsReading(err) {
			return err
		}
		if err != nil && ctx.Err() == nil {
			f.Logger.Warn("working off a task failed, will retry", "error", err)
		}
		if pace.Sleep(ctx, tasksPoll) != nil {
			return nil
		}
	}
}

func (f *follower) workTasksOnce(ctx context.Context) (pieces int, err error) {
	pieces, err = f.engine.WorkTasks(ctx)
	f.fanOut.Store(nil)
	f.pieces.Add(int64(pieces))
	return pieces, err
}

// fanOutState is the fan-out at hand.
type fanOutState struct {
	projections.TaskProgress
	began time.Time // the first piece that was seen
}

// noteTask takes the progress of a fan-out's task from the engine.
func (f *follower) noteTask(p projections.TaskProgress) {
	state := &fanOutState{TaskProgress: p, began: time.Now()}
	if last := f.fanOut.Load(); last != nil && last.Rule == p.Rule && last.Parent == p.Parent {
		state.began = last.began
	}
	f.fanOut.Store(state)
}
