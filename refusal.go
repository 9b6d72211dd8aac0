package dynamill

import (
	"context"
	"sync/atomic"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/awserror"
	"github.com/dynamill/dynamill/internal/streamreader"
)

// guard counts the records that come by, and stops the reader where the surroundings refuse the
// engine's writes: a permission that is missing does not come back by trying again, and a stream
// that waits for it looks like one that is empty.
type guard struct {
	streamreader.Processor
	place awserror.Place
	read  *atomic.Int64
}

// Process hands the records on.
func (g guard) Process(ctx context.Context, records []change.Record) (int, error) {
	g.read.Add(int64(len(records)))
	done, err := g.Processor.Process(ctx, records)
	if told := awserror.Explain(err, g.place); told != nil && told.StopReading() {
		return done, told
	}
	return done, err
}
