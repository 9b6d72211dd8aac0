package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/replay"
	"github.com/dynamill/dynamill/replay/objects"
)

// openSource opens what --from names; a scan is made by the replay itself.
func (r *replayer) openSource(ctx context.Context) (closeSource func(), err error) {
	from := r.options.from
	switch {
	case from == fromScan:
		return func() {}, nil
	case from == fromParked:
		r.source = replay.NewParked(r.env.table, r.parkedKeys)
	case strings.HasPrefix(from, fromExport), strings.HasPrefix(from, fromS3):
		r.source, err = r.openExport(ctx, strings.TrimPrefix(from, fromExport))
	case strings.HasPrefix(from, fromArchive):
		r.source, err = r.openArchive(ctx, strings.TrimPrefix(from, fromArchive))
	case from == fromKeys+"-":
		r.source, err = replay.SpoolKeyList(stoppable{ctx, r.app.stdin}, "standard input", r.keys())
	default: // checkFrom lets nothing else through
		r.source, err = replay.OpenKeyList(strings.TrimPrefix(from, fromKeys+"//"), r.keys())
	}
	if err != nil {
		return nil, r.sourceFailure(err)
	}
	return func() {
		if closer, ok := r.source.(io.Closer); ok {
			_ = closer.Close()
		}
	}, nil
}

// stoppable reads what may keep one waiting for ever, until the context ends.
type stoppable struct {
	ctx context.Context //nolint:containedctx // a Reader is given none
	in  io.Reader
}

func (s stoppable) Read(into []byte) (int, error) {
	type answer struct {
		text []byte
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		own := make([]byte, len(into)) // into is not ours any more once the context has ended
		n, err := s.in.Read(own)
		answers <- answer{own[:n], err}
	}()
	select {
	case <-s.ctx.Done():
		return 0, context.Cause(s.ctx)
	case a := <-answers:
		return copy(into, a.text), a.err
	}
}

// sourceFailure tells what is wrong with a source from what keeps one from reading it.
func (r *replayer) sourceFailure(err error) error {
	var (
		known   *failure
		damaged *replay.ExportError
	)
	err = fmt.Errorf("--from %s: %w", r.options.from, err)
	switch {
	case errors.As(err, &known):
		return err
	case errors.As(err, &damaged), errors.Is(err, fs.ErrNotExist), !strings.Contains(r.options.from, fromS3):
		return invalid("%w", err)
	}
	return unsuited("%w", err)
}

func (r *replayer) openExport(ctx context.Context, place string) (replay.Source, error) {
	client, err := r.s3Client(ctx, place)
	if err != nil {
		return nil, err
	}
	export, err := replay.OpenExport(ctx, replay.ExportConfig{Place: place, S3: client, Table: r.env.table, Keys: r.keys()})
	if err != nil { // not a nil *Export within a Source that is none
		return nil, err
	}
	return export, nil
}

func (r *replayer) openArchive(ctx context.Context, place string) (replay.Source, error) {
	client, err := r.s3Client(ctx, place)
	if err != nil {
		return nil, err
	}
	archive, err := replay.OpenArchive(ctx, replay.ArchiveConfig{Place: place, S3: client, Table: r.env.table, Keys: r.keys()})
	if err != nil {
		return nil, err
	}
	return archive, nil
}

// s3Client makes a client of S3 for places that need one, with the credentials
// and region of the AWS configuration. --endpoint is DynamoDB's and not S3's.
func (r *replayer) s3Client(ctx context.Context, place string) (objects.S3Client, error) {
	if !objects.OnS3(place) {
		return nil, nil
	}
	cfg, err := config.LoadDefaultConfig(ctx, r.app.options.configOptions(false, r.logger)...)
	if err != nil {
		return nil, r.env.configurationFailure(err)
	}
	if cfg.Region == "" {
		cfg.Region = r.env.region
	}
	return s3.NewFromConfig(cfg), nil
}

// parkedKeys lists the keys of what is parked.
func (r *replayer) parkedKeys(ctx context.Context) ([]change.Key, error) {
	parked, err := r.engine.Parked(ctx)
	if err != nil {
		return nil, err
	}
	keys := make([]change.Key, len(parked))
	for i, p := range parked {
		keys[i] = p.Key
	}
	return keys, nil
}

// counts are what DynamoDB last counted, every six hours or so.
type counts struct {
	items, bytes           int64
	state                  bool // there is a state table
	stateItems, stateBytes int64
}

func (r *replayer) count(ctx context.Context) (c counts, err error) {
	table, err := r.env.describe(ctx)
	if err != nil {
		return c, err
	}
	c.items, c.bytes = aws.ToInt64(table.ItemCount), aws.ToInt64(table.TableSizeBytes)
	stateTable := r.app.options.stateTableName(r.env.table)
	out, err := r.env.tables.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &stateTable})
	var missing *types.ResourceNotFoundException
	switch {
	case errors.As(err, &missing): // nothing has run yet
		return c, nil
	case err != nil:
		return c, r.env.classify(fmt.Errorf("describing the state table %s: %w", stateTable, err))
	case out.Table != nil:
		c.state, c.stateItems, c.stateBytes = true, aws.ToInt64(out.Table.ItemCount), aws.ToInt64(out.Table.TableSizeBytes)
	}
	return c, nil
}

// A read unit is a consistent read of 4 KB (DynamoDB developer guide, "DynamoDB read and write operations").
const readUnitBytes = 4096

func scanUnits(bytes int64, eventually bool) int64 {
	units := math.Ceil(float64(bytes) / readUnitBytes)
	if eventually {
		units = math.Ceil(units / 2)
	}
	return int64(units)
}

// itemUnits is what it takes to read so many items of a table and as many ledger entries, one by one.
func (c counts) itemUnits(items int64) int64 {
	if items == 0 || c.items == 0 {
		return 2 * items
	}
	return items * (1 + scanUnits(c.bytes/c.items+1, false))
}

// estimate is what a replay takes to read, in units.
type estimate struct{ scan, look, sweep int64 }

// estimate reckons with so many passes over so many items, which a scan finds unless
// they come from elsewhere, and so many over the state table.
func (c counts) estimate(passes, sweeps, items int64, scanned, eventually bool) (e estimate) {
	if scanned {
		e.scan = passes * scanUnits(c.bytes, eventually)
	}
	e.look = passes * c.itemUnits(items)
	e.sweep = sweeps * (scanUnits(c.stateBytes, eventually) + 2*c.stateItems)
	return e
}

// passesOver says how many passes go over the items, and how many over the state
// table: the last one, where former rules are taken back or everything is in force.
func (r *replayer) passesOver(left int, formers bool) (items, state int64) {
	switch {
	case left > 0 && formers:
		return int64(left) - 1, 1
	case left > 0:
		return int64(left), 0
	case r.options.whole():
		return 1, 1
	}
	return 1, 0
}

// announce says, before anything is read or written at length, what will be
// done and what it takes as far as that can be told.
func (r *replayer) announce(ctx context.Context, left int) error {
	description, items := r.engine.Describe(), r.counts.items
	facts := columns{}
	facts.add("table", r.env.table+" in "+r.env.where())
	facts.add("state", description.StateTable)
	if r.source == nil {
		facts.add("source", "scan of "+r.env.table)
	} else {
		pieces, err := r.source.Pieces(ctx)
		if err != nil {
			return fmt.Errorf("listing the pieces of the %s: %w", r.source.Describe(), err)
		}
		items = 0
		for _, p := range pieces {
			items += p.Items
		}
		facts.add("source", r.source.Describe()+", "+counted(len(pieces), "piece"))
	}
	switch {
	case left > 0:
		facts.add("does", "brings rules into force in "+passes(left)+": "+strings.Join(r.bringing(), ", "))
	case r.options.whole():
		facts.add("does", "brings every item to what the rules ask for, then cleans up after items that have vanished")
	default:
		facts.add("does", "brings items to what the rules ask for")
	}
	if r.source == nil {
		facts.add("items", fmt.Sprintf("about %s, %.1f MB (DynamoDB's own count, up to 6 hours old)", grouped(items), float64(r.counts.bytes)/1e6))
	} else if items > 0 {
		facts.add("items", "about "+grouped(items))
	}
	over, sweeps := r.passesOver(left, len(description.FormerRules) > 0)
	e := r.counts.estimate(over, sweeps, items, r.source == nil, r.options.eventuallyConsistent)
	if total := e.scan + e.look + e.sweep; total > 0 {
		facts.add("reads", fmt.Sprintf("about %s read units: %s to scan, %s to look at each item and its ledger entry, %s to sweep; more where copies and mirrors are checked",
			grouped(total), grouped(e.scan), grouped(e.look), grouped(e.sweep)))
	}
	if left > 0 {
		facts.add("writes", "what the rules ask for and does not stand there yet")
	} else {
		facts.add("writes", "none where all is right")
	}
	return facts.writeTo(r.status)
}
