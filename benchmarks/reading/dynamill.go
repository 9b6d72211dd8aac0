package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/streamreader"
)

// readDynamill follows the stream as `dynamill run` does, which loads the
// leases before it begins.
func readDynamill(ctx context.Context, src *source, progress string, count *counter) error {
	leases := streamreader.NewLeaseTable(src.tables, progress)
	if _, err := leases.Load(ctx); err != nil {
		return fmt.Errorf("reading the leases: %w", err)
	}
	reader, err := streamreader.New(streamreader.Config{
		Streams: src.streams, StreamARN: src.streamARN, Checkpoints: leases,
		Logger:    slog.New(slog.NewTextHandler(io.Discard, nil)),
		Processor: counting{count}, PartitionKey: partitionKey, SortKey: sortKey,
	})
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-count.done:
		case <-running.Done():
		}
		stop()
	}()
	return errors.Join(reader.Run(running), ctx.Err())
}

// counting is a Processor that has nothing to do.
type counting struct{ *counter }

// Process counts the records.
func (c counting) Process(_ context.Context, records []change.Record) (int, error) {
	if n := len(records); n > 0 {
		c.add(n, records[n-1].Position.SequenceNumber())
	}
	return len(records), nil
}
