package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	_ "github.com/redpanda-data/benthos/v4/public/components/pure" // what every pipeline is built with
	"github.com/redpanda-data/benthos/v4/public/service"
	_ "github.com/redpanda-data/connect/v4/public/components/aws" // the input aws_dynamodb_cdc
)

const redpandaStopMax = 15 * time.Second

// readRedpanda runs a pipeline of Redpanda Connect that counts what its input
// reads and drops it. All that is not about where to read keeps its default.
func readRedpanda(ctx context.Context, src *source, progress string, count *counter) error {
	builder := service.NewStreamBuilder()
	builder.SetLogger(slog.New(slog.NewTextHandler(io.Discard, nil)))
	err := errors.Join(
		builder.AddInputYAML(fmt.Sprintf(`
aws_dynamodb_cdc:
  tables: [%q]
  checkpoint_table: %q
  start_from: trim_horizon
  region: %q
  endpoint: %q
`, src.table, progress, src.region, src.endpoint)),
		builder.AddBatchConsumerFunc(func(_ context.Context, batch service.MessageBatch) error {
			if n := len(batch); n > 0 {
				sequence, _ := batch[n-1].MetaGet("dynamodb_sequence_number")
				count.add(n, sequence)
			}
			return nil
		}),
	)
	if err != nil {
		return fmt.Errorf("configuring: %w", err)
	}
	stream, err := builder.Build()
	if err != nil {
		return fmt.Errorf("building: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- stream.Run(ctx) }()
	select {
	case err := <-ended:
		return errors.Join(errors.New("the pipeline ended before all was read"), err, ctx.Err())
	case <-count.done:
	}
	err = stream.StopWithin(redpandaStopMax)
	if err := errors.Join(err, <-ended); err != nil {
		return fmt.Errorf("stopping: %w", err)
	}
	return nil
}
