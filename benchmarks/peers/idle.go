package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	busyRecords = 500 // a second, in the second half of a run with many shards
	settling    = 15 * time.Second
)

// rest is what a process takes that follows many shards.
type rest struct {
	idle, busy usage // in each second
	memory     int64 // bytes, the peak up to the end
}

// resting has dynamill follow many shards, first idle ones, then some with records.
func (o options) resting(ctx context.Context) (r rest, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, o.runMax, fmt.Errorf("%s took longer than %v", nameDynamill, o.runMax))
	defer cancel()
	w, err := newWorld(ctx, backendSimulator, simulation{Delays: o.delays, Shards: o.shards})
	if err != nil {
		return rest{}, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	load := mirroring(int(busyRecords * o.lasting.Seconds()))
	s, err := o.session(ctx, w, job{Workload: load.name, Rules: load.rules, Contender: nameDynamill})
	if err != nil {
		return rest{}, err
	}
	defer func() { err = errors.Join(err, ignore(s.stop(), err)) }()
	if _, err := s.await(ctx, eventReady); err != nil {
		return rest{}, err
	}
	time.Sleep(settling)
	before, err := s.report(ctx)
	if err != nil {
		return rest{}, err
	}
	began := time.Now()
	time.Sleep(o.lasting)
	idle, err := s.report(ctx)
	if err != nil {
		return rest{}, err
	}
	r.idle, began = idle.since(before, time.Since(began)), time.Now()
	if _, err := w.spread(ctx, load, busyRecords); err != nil {
		return rest{}, err
	}
	busy, err := s.report(ctx)
	r.busy, r.memory = busy.since(idle, time.Since(began)), busy.MemoryPeak
	return r, err
}
