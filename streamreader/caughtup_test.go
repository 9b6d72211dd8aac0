package streamreader

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/dynamill/dynamill/internal/dynamosim"
)

// slowList answers late when it is asked for the shards.
type slowList struct {
	*line
	wait time.Duration
}

// DescribeStream lists the stream's shards.
func (n *slowList) DescribeStream(ctx context.Context, in *dynamodbstreams.DescribeStreamInput, o ...func(*dynamodbstreams.Options)) (*dynamodbstreams.DescribeStreamOutput, error) {
	time.Sleep(n.wait)
	return n.line.DescribeStream(ctx, in, o...)
}

// TestNobodyHasCaughtUpBeforeAllShardsAreListed looks at workers that begin on a stream that was
// written to before: seeding waits for that (promise 10).
func TestNobodyHasCaughtUpBeforeAllShardsAreListed(t *testing.T) {
	const items = 400
	for name, wait := range map[string]time.Duration{"a quick list": 10 * time.Millisecond, "a slow list": 3 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCrew(t, dynamosim.Options{Shards: 4})
				for i := range items {
					c.write(t, fmt.Sprintf("item%d", i))
				}
				time.Sleep(time.Minute)
				c.work.took = 5 * time.Second
				slow := func(cfg *Config) { cfg.Streams = &slowList{cfg.Streams.(*line), wait} }
				a, b := c.join("a", slow), c.join("b", slow)
				caughtUp := func() bool { return a.reader.Stats().CaughtUp || b.reader.Stats().CaughtUp }
				for range 400 {
					time.Sleep(10 * time.Millisecond)
					if done := a.reader.Stats().Records + b.reader.Stats().Records; done < items && caughtUp() {
						t.Fatalf("caught up with %d of %d records done", done, items)
					}
				}
				time.Sleep(5 * time.Minute)
				if !a.reader.Stats().CaughtUp || !b.reader.Stats().CaughtUp {
					t.Error("nobody ever catches up")
				}
				c.dismiss()
			})
		})
	}
}
