package shardread

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/dynamill/dynamill/internal/stream/streamapi"

	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/dynamill/dynamill/change"
)

// page is an answer of the stream, or the error that came instead.
type page struct {
	raw       []streams.Record // as it came; nil once it is decoded
	records   []change.Record
	marks     []streamapi.Mark
	count     int       // of records
	end       bool      // the shard has no more than this
	more      bool      // records are likely to wait behind it
	bytes     int64     // that it takes of the buffer
	requested time.Time // when the call began
	applies   int64     // batches applied by then
	heard     time.Time // when the stream last gave an iterator or records; zero if it did not
	err       error
}

// ahead fetches a shard's pages, in order, while those before are being applied, with one call at a time. Its goroutine ends
// behind a page that nothing is likely to follow yet, at an error, at the shard's end, with one full batch waiting, or
// without room. The shard's own goroutine takes the pages and starts it again.
type ahead struct {
	cfg     *Config
	shard   streamapi.Shard
	arrived chan struct{} // holds a token when something has come

	iterator *string // behind the last page; nil: to be opened anew. Of the goroutine while there is one

	mu      sync.Mutex
	pages   []*page // that are not taken yet
	records int     // in pages
	more    bool    // records are likely to wait behind the last page
	busy    bool    // the goroutine is there
	cancel  context.CancelFunc
	wg      sync.WaitGroup
}

func newAhead(cfg *Config, shard streamapi.Shard) *ahead {
	return &ahead{cfg: cfg, shard: shard, arrived: make(chan struct{}, 1), cancel: func() {}}
}

// start begins to fetch once there is room, unless a fetch runs or a page waits. The caller holds no records; from is where
// the shard is opened if it must be.
func (a *ahead) start(ctx context.Context, from streamapi.Place) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.busy || len(a.pages) > 0 {
		return
	}
	a.goOn(ctx, func(ctx context.Context) {
		if err := a.cfg.Buffer.reserve(ctx); err != nil {
			a.put(ctx, &page{err: err})
			return
		}
		a.run(ctx, from)
	})
}

// extend fetches more if that is of use, and possible right now.
func (a *ahead) extend(ctx context.Context) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.busy && a.wanted() && a.cfg.Buffer.reserveAhead() {
		a.goOn(ctx, func(ctx context.Context) { a.run(ctx, streamapi.Place{}) })
	}
}

// wanted reports whether there may be more, and less than a batch waits.
func (a *ahead) wanted() bool { return a.more && a.records < a.cfg.BatchMax }

func (a *ahead) goOn(ctx context.Context, run func(context.Context)) {
	ctx, a.cancel = context.WithCancel(ctx)
	a.busy = true
	a.wg.Go(func() { run(ctx) })
}

// run has the room of one page when it begins, and gives it back.
func (a *ahead) run(ctx context.Context, from streamapi.Place) {
	for a.put(ctx, a.fetch(ctx, from)) {
	}
}

// put adds a page. It reports whether to go on, and has the room then.
func (a *ahead) put(ctx context.Context, p *page) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pages, a.records = append(a.pages, p), a.records+p.count
	a.more = p.err == nil && p.more && !p.end
	a.busy = a.wanted() && ctx.Err() == nil && a.cfg.Buffer.reserveAhead()
	if !a.busy {
		a.cancel()
	}
	select {
	case a.arrived <- struct{}{}:
	default:
	}
	return a.busy
}

func (a *ahead) fetch(ctx context.Context, from streamapi.Place) *page {
	p := &page{requested: time.Now(), applies: a.cfg.Applies.Load()}
	defer func() { a.cfg.Buffer.release(streamapi.PageBytesMax - p.bytes) }()
	if a.iterator == nil {
		if a.iterator, p.err = streamapi.OpenShard(ctx, a.cfg.Streams, a.cfg.StreamARN, a.shard, from); p.err != nil {
			return p
		}
		p.heard = time.Now()
	}
	out, err := a.cfg.Streams.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: a.iterator,
		Limit: aws.Int32(streamapi.RecordsPageMax)})
	if err != nil {
		p.err = fmt.Errorf("reading shard %s: %w", a.shard.ID, err)
		return p
	}
	p.raw, p.count, p.heard = out.Records, len(out.Records), time.Now()
	p.bytes, p.end = bytesOf(out.Records), out.NextShardIterator == nil
	p.more = p.bytes >= largePage || isOld(out.Records)
	a.iterator = out.NextShardIterator
	return p
}

// isOld reports whether the newest of the records was written some time ago, so that the shard is behind.
func isOld(records []streams.Record) bool {
	if len(records) == 0 {
		return false
	}
	body := records[len(records)-1].Dynamodb
	return body == nil || body.ApproximateCreationDateTime == nil || time.Since(*body.ApproximateCreationDateTime) > behindLeast
}

// first returns the first page, nil if none is there. It is decoded here, not
// where it is fetched: the next one is on its way meanwhile.
func (a *ahead) first() *page {
	a.mu.Lock()
	if len(a.pages) == 0 {
		a.mu.Unlock()
		return nil
	}
	p := a.pages[0]
	a.mu.Unlock()
	a.decode(p)
	return p
}

// take removes the first page, which is the caller's then.
func (a *ahead) take() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.records -= a.pages[0].count
	a.pages[0] = nil // let go of its records
	a.pages = a.pages[1:]
}

func (a *ahead) decode(p *page) {
	if p.raw == nil {
		return
	}
	var err error
	if p.records, p.marks, err = streamapi.Records(a.cfg.Decoder, p.raw); err != nil {
		p.err = streamapi.Permanent(fmt.Errorf("shard %s: %w", a.shard.ID, err))
		a.cfg.Buffer.release(p.bytes)
		p.bytes = 0
	}
	p.raw = nil
}

func (a *ahead) coming() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.busy && len(a.pages) == 0
}

// interrupt ends a call that is under way.
func (a *ahead) interrupt() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cancel()
}

// drop ends the goroutine and forgets what is not taken: the shard is to be
// opened anew then.
func (a *ahead) drop() {
	a.interrupt()
	a.wg.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range a.pages {
		a.cfg.Buffer.release(p.bytes)
		a.iterator = nil
	}
	a.pages, a.records, a.more = nil, 0, false
}

// opened reports whether the next call goes on where the last one ended.
func (a *ahead) opened() bool { return a.iterator != nil }
