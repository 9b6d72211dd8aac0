package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// observer watches a table's stream for derived values, so that it need not read items again and again.
type observer struct {
	attribute string
	stop      context.CancelFunc
	ended     chan error

	mu     sync.Mutex
	wanted map[string]string
	right  map[string]time.Time // when a wanted value came, by the keys of its item
	done   chan struct{}        // closed when all wanted values are there
}

// observe starts to watch at the stream's end, and returns when no later record can be missed.
func observe(ctx context.Context, e endpoint, streamARN, attribute string, wanted map[string]string, every time.Duration) (
	*observer, error,
) {
	watching, stop := context.WithCancel(ctx)
	o := &observer{
		attribute: attribute, wanted: wanted, stop: stop, ended: make(chan error, 1), right: map[string]time.Time{}, done: make(chan struct{}),
	}
	config := e.config()
	reached := make(chan struct{})
	m := newMeter(func() { close(reached) })
	m.open()
	m.attach(&config)
	go func() {
		o.ended <- readStream(watching, dynamodbstreams.NewFromConfig(config), streamARN, streams.ShardIteratorTypeLatest, every, o.look)
	}()
	select {
	case <-reached: // and so are the iterators of an only shard
		return o, nil
	case err := <-o.ended:
		stop()
		return nil, fmt.Errorf("watching the stream: %w", err)
	}
}

func (o *observer) look(_ context.Context, records []streams.Record) error {
	now := time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	before := len(o.right)
	for _, r := range records {
		key := text(r.Dynamodb.Keys[partitionKey]) + keySeparator + text(r.Dynamodb.Keys[sortKey])
		want, ok := o.wanted[key]
		_, known := o.right[key]
		switch {
		case !ok:
		case text(r.Dynamodb.NewImage[o.attribute]) != want:
			delete(o.right, key)
		case !known:
			o.right[key] = now
		}
	}
	if len(o.right) == len(o.wanted) && before < len(o.wanted) {
		select {
		case <-o.done:
		default:
			close(o.done)
		}
	}
	return nil
}

// wait returns when all wanted values have come.
func (o *observer) wait(ctx context.Context, s *session) error {
	select {
	case <-o.done:
		return nil
	case err := <-o.ended:
		return fmt.Errorf("watching the stream: %w", err)
	case <-s.over:
		return s.failure()
	case <-ctx.Done():
		o.mu.Lock()
		defer o.mu.Unlock()
		return fmt.Errorf("%w: %d of %d values are there", context.Cause(ctx), len(o.right), len(o.wanted))
	}
}
