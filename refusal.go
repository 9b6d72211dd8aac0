package dynamill

import (
	"context"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/awserror"
	"github.com/dynamill/dynamill/internal/streamreader"
)

// guard stops the reader where the surroundings refuse the engine's writes: a
// permission that is missing does not come back by trying again, and a stream
// that waits for it looks like one that is empty.
type guard struct {
	streamreader.Processor
	place awserror.Place
}

// Process hands the records on.
func (g guard) Process(ctx context.Context, records []change.Record) (int, error) {
	done, err := g.Processor.Process(ctx, records)
	if told := awserror.Explain(err, g.place); told != nil && told.Kind.Lasting() {
		return done, &refusedError{told}
	}
	return done, err
}

// refusedError ends the reading.
type refusedError struct{ *awserror.Explained }

func (e *refusedError) Unwrap() error { return e.Explained }

// StopReading tells the stream reader that trying again is of no use.
func (e *refusedError) StopReading() bool { return true }
