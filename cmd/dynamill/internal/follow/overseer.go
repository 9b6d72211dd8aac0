package follow

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dynamill/dynamill"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/internal/monitor"
	"github.com/dynamill/dynamill/internal/pace"
	"github.com/dynamill/dynamill/internal/projections"
)

const (
	watchInterval = time.Second      // between two looks at the state
	throttledHold = 10 * time.Second // how long the last throttle keeps the state's name
	remindedEvery = time.Minute      // of a state that waits for a person

	unfinishedEvery = time.Minute      // between two readings of what is parked and which tasks are left
	unfinishedSoon  = time.Second      // until there is something to read
	unfinishedTime  = 20 * time.Second // of one reading
)

// overseer knows how a run is: for the log, for metrics and for readiness.
type overseer struct {
	holder  monitor.Holder
	lagMax  time.Duration
	logger  *slog.Logger
	running atomic.Pointer[dynamill.Running] // nil until something is followed

	unfinished atomic.Pointer[projections.Unfinished] // nil until it was read

	mu        sync.Mutex
	throttles int64     // at the last look
	throttled time.Time // when DynamoDB was last found to throttle
	reminded  time.Time // when the state was last said
}

// work is what the run shows of itself, and the facts of its state. The sample is complete but for its status.
func (o *overseer) work() (monitor.Sample, monitor.Facts) {
	sample := monitor.Sample{At: time.Now(), Unfinished: o.unfinished.Load()}
	r := o.running.Load()
	if r == nil {
		return sample, monitor.Facts{}
	}
	now := r.Status()
	read := now.Stream // the shards of other processes included: that no process reads one, each of them shows
	sample.Stream, sample.Engine, sample.Read, sample.Budget, sample.Rules = read, now.Engine, now.Read, now.Budget, r.RuleStats()
	return sample, monitor.Facts{
		Started:   !read.LastProgress.IsZero(),
		Skipped:   len(read.Skipped) > 0,
		Seeding:   now.Seeding,
		CaughtUp:  read.CaughtUp && (o.lagMax <= 0 || read.Lag <= o.lagMax),
		Throttled: o.isThrottled(now.Engine.Throttles, sample.At),
		Waits:     slices.Sorted(maps.Keys(now.Budget.Waits)),
	}
}

// isThrottled reports whether DynamoDB throttled lately. throttles counts the refusals so far.
func (o *overseer) isThrottled(throttles int64, now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.throttles = min(o.throttles, throttles) // an engine that is opened anew counts from 0
	if throttles > o.throttles {
		o.throttles, o.throttled = throttles, now
	}
	return !o.throttled.IsZero() && now.Sub(o.throttled) < throttledHold
}

func (o *overseer) sample() monitor.Sample {
	sample, facts := o.work()
	sample.Status = o.holder.Status(facts, sample.At)
	if r := o.running.Load(); r != nil {
		sample.Entities, sample.Missing = r.Matches().Entities, r.MissingTargets()
	}
	return sample
}

func (o *overseer) watch(ctx context.Context) {
	for pace.Sleep(ctx, watchInterval) == nil {
		o.look()
	}
}

// look logs the state when it has changed or has waited long for a person.
func (o *overseer) look() {
	sample, facts := o.work()
	o.mu.Lock()
	status, changed := o.holder.Note(facts, sample.At)
	waits := status.State.Urgent() || status.State.Ended()
	say := changed || waits && sample.At.Sub(o.reminded) >= remindedEvery
	if say {
		o.reminded = sample.At
	}
	o.mu.Unlock()
	if !say {
		return
	}
	attributes := []any{"state", string(status.State)}
	if status.Remedy != "" {
		attributes = append(attributes, "remedy", status.Remedy)
	}
	level := slog.LevelInfo
	if status.State.Urgent() {
		level = slog.LevelError
	}
	o.logger.Log(context.Background(), level, "state", attributes...)
}

func (o *overseer) watchUnfinished(ctx context.Context) {
	for {
		wait := unfinishedSoon
		if r := o.running.Load(); r != nil {
			wait = unfinishedEvery
			o.readUnfinished(ctx, r)
		}
		if pace.Sleep(ctx, wait) != nil {
			return
		}
	}
}

func (o *overseer) readUnfinished(ctx context.Context, r *dynamill.Running) {
	reading, cancel := context.WithTimeout(ctx, unfinishedTime)
	defer cancel()
	found, err := r.Unfinished(reading)
	switch {
	case err == nil:
		o.unfinished.Store(&found)
	case ctx.Err() == nil:
		o.logger.Warn("parked records and tasks could not be counted for /metrics, will retry", "error", err)
	}
}

// oversee starts the watching, and the serving if an address is given. Both end with the returned function.
func (o *overseer) oversee(ctx context.Context, listen string, profile bool) (end func(), err error) {
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	var server *monitor.Server
	if listen != "" {
		server, err = monitor.Listen(ctx, listen, monitor.Config{Take: o.sample, LagMax: o.lagMax, Profile: profile})
		if err != nil {
			stop()
			return nil, ending.Unsuited("metrics cannot be served at %s: choose another --listen (%w)", listen, err)
		}
		o.logger.Info("serving /metrics, /healthz and /readyz", "address", server.Addr())
	}
	stopped := context.AfterFunc(ctx, func() { o.holder.End(monitor.Stopped, "") })
	var watcher sync.WaitGroup
	watcher.Go(func() { o.watch(watching) })
	if listen != "" {
		watcher.Go(func() { o.watchUnfinished(watching) })
	}
	return func() {
		stopped()
		stop()
		watcher.Wait()
		if ctx.Err() != nil {
			o.look() // the last word is how it ended
		}
		if server != nil {
			if err := server.Close(); err != nil {
				o.logger.Warn("the server of metrics did not close", "error", err)
			}
		}
	}, nil
}

// ended says why there is nothing more to be done until a person stops the process: a supervisor that starts it again and again
// would show nothing but restarts.
func (o *overseer) ended(ctx context.Context, ended *dynamill.EndedError, err error) {
	o.holder.End(monitor.State(ended.State), ended.Remedy)
	o.look()
	o.logger.Error("the table is no longer followed; the process stays up to report this until it is stopped", "error", err.Error())
	<-ctx.Done()
}
