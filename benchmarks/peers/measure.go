package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// result is what one run of a contender came to.
type result struct {
	Took  time.Duration // from the opening of the gate until all is right
	Usage usage
	Twice int // derived values that are wrong after a second delivery; notTried if there was none
}

const notTried = -1

// session starts a contender in a world.
func (o options) session(ctx context.Context, w *world, j job) (*session, error) {
	j.Table, j.StreamARN, j.Poll, j.Quiet = w.table, w.streamARN, o.poll, o.quiet
	if j.Endpoint.URL == "" {
		j.Endpoint = w.contender
	}
	process, err := o.process(ctx, j.Contender)
	if err != nil {
		return nil, err
	}
	return start(process, j)
}

// run has a contender do a workload, once and, if that is wished, delivered twice.
func (o options) run(ctx context.Context, backend string, load workload, contender string, twice bool) (r result, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, o.runMax, fmt.Errorf("%s took longer than %v", contender, o.runMax))
	defer cancel()
	w, err := newWorld(ctx, backend, simulation{Delays: o.delays})
	if err != nil {
		return result{}, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := w.put(ctx, load.before); err != nil {
		return result{}, err
	}
	if isDynamill(contender) { // its tables are there, and its rules seeded
		if err := o.through(ctx, w, job{Endpoint: w.application, Rules: load.rules, Contender: contender, Prepare: true}); err != nil {
			return result{}, fmt.Errorf("preparing: %w", err)
		}
	}
	if r, err = o.timed(ctx, w, load, contender); err != nil {
		return result{}, err
	}
	r.Twice = notTried
	if twice {
		r.Twice, err = o.again(ctx, w, load, contender)
	}
	return r, err
}

// through runs a session to its end.
func (o options) through(ctx context.Context, w *world, j job) error {
	s, err := o.session(ctx, w, j)
	if err != nil {
		return err
	}
	return s.finish()
}

// timed measures a contender that has started and finds all changes when its gate opens.
func (o options) timed(ctx context.Context, w *world, load workload, contender string) (r result, err error) {
	s, err := o.session(ctx, w, job{Workload: load.name, Rules: load.rules, Contender: contender, Gated: true})
	if err != nil {
		return result{}, err
	}
	defer func() { err = errors.Join(err, ignore(s.stop(), err)) }()
	if _, err := s.await(ctx, eventReady); err != nil {
		return result{}, err
	}
	watch, err := observe(ctx, w.application, w.streamARN, load.attribute, load.wanted, o.look)
	if err != nil {
		return result{}, err
	}
	defer watch.stop()
	if err := w.put(ctx, load.changes); err != nil {
		return result{}, err
	}
	var write, read float64
	if w.simulated {
		if write, read, err = w.billed(ctx); err != nil {
			return result{}, err
		}
	}
	began := time.Now()
	if err := s.tell(commandOpen); err != nil {
		return result{}, err
	}
	if err := watch.wait(ctx, s); err != nil {
		return result{}, err
	}
	r.Took = time.Since(began)
	if r.Usage, err = s.report(ctx); err != nil {
		return result{}, err
	}
	if w.simulated {
		r.Usage.WriteUnits, r.Usage.ReadUnits, err = w.billed(ctx)
		r.Usage.WriteUnits -= write
		r.Usage.ReadUnits -= read
	}
	return r, err
}

// ignore leaves out how a process ended that was ended because of another error.
func ignore(ending, because error) error {
	if because != nil {
		return nil
	}
	return ending
}

// again has everything delivered once more, as after a checkpoint that was lost, and counts what is wrong then.
func (o options) again(ctx context.Context, w *world, load workload, contender string) (wrong int, err error) {
	if isDynamill(contender) {
		_, err := w.client.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: aws.String(w.table + leaseSuffix)})
		if err != nil {
			return 0, fmt.Errorf("losing the checkpoints: %w", err)
		}
	}
	s, err := o.session(ctx, w, job{Endpoint: w.application, Workload: load.name, Rules: load.rules, Contender: contender, Oldest: true})
	if err != nil {
		return 0, err
	}
	_, err = s.await(ctx, eventReady)
	for used := (usage{}); err == nil && used.Records < len(load.before)+len(load.changes); {
		used, err = s.report(ctx)
	}
	if err = errors.Join(err, ignore(s.stop(), err)); err != nil {
		return 0, fmt.Errorf("delivering twice: %w", err)
	}
	return w.wrong(ctx, load)
}

// latencies returns how long each of the workload's changes took from its write until its derived value was there.
func (o options) latencies(ctx context.Context, backend string, load workload, contender string, everySecond int) (
	took []time.Duration, err error,
) {
	ctx, cancel := context.WithTimeoutCause(ctx, o.runMax, fmt.Errorf("%s took longer than %v", contender, o.runMax))
	defer cancel()
	w, err := newWorld(ctx, backend, simulation{Delays: o.delays.uniform(o.uniform)})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := w.put(ctx, load.before); err != nil {
		return nil, err
	}
	s, err := o.session(ctx, w, job{Workload: load.name, Rules: load.rules, Contender: contender})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, ignore(s.stop(), err)) }()
	if _, err := s.await(ctx, eventReady); err != nil {
		return nil, err
	}
	time.Sleep(o.quiet) // what a start leaves to be done is over
	watch, err := observe(ctx, w.application, w.streamARN, load.attribute, load.wanted, time.Millisecond)
	if err != nil {
		return nil, err
	}
	defer watch.stop()
	written, err := w.spread(ctx, load, everySecond)
	if err != nil {
		return nil, err
	}
	if err := watch.wait(ctx, s); err != nil {
		return nil, err
	}
	for key, at := range watch.right {
		took = append(took, at.Sub(written[key]))
	}
	return took, nil
}

// spread writes the changes of a workload one after the other, so many each second, at irregular times so that
// they do not keep step with a poll. It returns when the write of each was answered, by the key of its target.
func (w *world) spread(ctx context.Context, load workload, everySecond int) (map[string]time.Time, error) {
	written := map[string]time.Time{}
	random := rand.New(rand.NewPCG(1, 1))
	due := time.Now()
	for _, source := range load.changes {
		time.Sleep(time.Until(due))
		due = due.Add(time.Duration((0.5 + random.Float64()) * float64(time.Second) / float64(everySecond)))
		if _, err := w.client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &w.table, Item: source}); err != nil {
			return nil, fmt.Errorf("writing a source: %w", err)
		}
		written[plain(source[sortKey])+keySeparator+plain(source[partitionKey])] = time.Now()
	}
	return written, nil
}

// startups returns how long a process takes from its start until a first change is visible: where it
// never ran, and where it ran before.
func (o options) startups(ctx context.Context, backend, contender string) (cold, restart time.Duration, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, o.runMax, fmt.Errorf("%s took longer than %v", contender, o.runMax))
	defer cancel()
	w, err := newWorld(ctx, backend, simulation{Delays: o.delays})
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := w.put(ctx, mirroring(1).before); err != nil {
		return 0, 0, err
	}
	for i, took := range []*time.Duration{&cold, &restart} {
		if *took, err = o.startup(ctx, w, contender, i); err != nil {
			return 0, 0, err
		}
	}
	return cold, restart, nil
}

// startup writes the i-th change as a process starts.
func (o options) startup(ctx context.Context, w *world, contender string, i int) (took time.Duration, err error) {
	source, target := membership(i)
	watch, err := observe(ctx, w.application, w.streamARN, "role", map[string]string{target: "member"}, time.Millisecond)
	if err != nil {
		return 0, err
	}
	defer watch.stop()
	began := time.Now()
	s, err := o.session(ctx, w, job{Workload: "mirror", Rules: mirrorRules, Contender: contender, Oldest: true})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, ignore(s.stop(), err)) }()
	if err := w.put(ctx, []attributes{source}); err != nil {
		return 0, err
	}
	if err := watch.wait(ctx, s); err != nil {
		return 0, err
	}
	return watch.right[target].Sub(began), nil
}
