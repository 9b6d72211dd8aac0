package dynamosim

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/dynamill/dynamill/internal/sim/dynamosim/values"
)

const (
	region  = "us-east-1"
	account = "000000000000"
	// streamRetention is how long records, closed shards and disabled streams stay (developer guide).
	streamRetention = 24 * time.Hour
	labelLayout     = "2006-01-02T15:04:05.000"
)

// stream is one stream of one table. A table that has its stream disabled and
// enabled again gets a new one.
type stream struct {
	arn, label, tableName string
	view                  streamtypes.StreamViewType
	keySchema             []types.KeySchemaElement
	created               time.Time
	disabled              time.Time // zero while enabled
	shards                []*shard  // by id
	last                  sequence  // number that was taken
}

// shard is one shard: the records of the keys that hash into its range.
type shard struct {
	id, parent   string
	from, to     uint64 // hash range, both included
	start, end   sequence
	closed       time.Time // zero while open
	records      []storedRecord
	trimmed      int      // how many were dropped from the front of records
	trimmedUntil sequence // the last of those
}

// storedRecord is a change as it was; GetRecords makes a fresh reply from it each time.
type storedRecord struct {
	sequence   sequence
	created    time.Time
	eventID    string
	name       streamtypes.OperationType
	keys       values.Item
	old, after values.Item
	identity   *streamtypes.Identity
	bytes      int
}

func (s *Sim) openStream(t *table, view types.StreamViewType) {
	now := s.options.Now()
	at := now.UTC().Truncate(time.Millisecond)
	for _, st := range s.streams { // labels rise
		if last, err := time.Parse(labelLayout, st.label); err == nil && st.tableName == t.name && !at.After(last) {
			at = last.Add(time.Millisecond)
		}
	}
	st := &stream{
		label: at.Format(labelLayout), tableName: t.name, view: streamtypes.StreamViewType(view),
		keySchema: t.definition.KeySchema, created: now, last: firstSequence,
	}
	st.arn = t.arn + "/stream/" + st.label
	n := uint64(s.options.Shards)
	width := math.MaxUint64/n + 1 // 0 for n == 1
	for i := range n {
		from, to := i*width, (i+1)*width-1
		if i == n-1 {
			to = math.MaxUint64
		}
		s.addShard(st, "", from, to)
	}
	s.streams = append(s.streams, st)
	t.stream = st
}

func (s *Sim) closeStream(t *table) {
	t.stream.disabled = s.options.Now()
	for _, sh := range t.stream.shards {
		s.closeShard(t.stream, sh)
	}
}

func (t *table) streaming() bool { return t.stream != nil && t.stream.disabled.IsZero() }

func (s *Sim) addShard(st *stream, parent string, from, to uint64) *shard {
	sh := &shard{
		id:     fmt.Sprintf("shardId-%020d-%08x", s.options.Now().UnixMilli(), s.random.Uint32()),
		parent: parent, from: from, to: to, start: s.takeSequence(st),
	}
	st.shards = append(st.shards, sh)
	slices.SortFunc(st.shards, func(a, b *shard) int { return strings.Compare(a.id, b.id) })
	return sh
}

func (s *Sim) closeShard(st *stream, sh *shard) {
	if sh.closed.IsZero() {
		sh.closed = s.options.Now()
		sh.end = s.takeSequence(st)
	}
}

// record tells the table's stream, if there is one, of a change.
func (s *Sim) record(t *table, k key, old, after values.Item, identity *streamtypes.Identity) {
	if s.options.Changed != nil {
		s.options.Changed(t.name, old, after, t.streaming())
	}
	if !t.streaming() {
		return
	}
	hash := s.hash(k.partition.text)
	if s.options.ScatterCollections {
		hash = s.hash(k.partition.text, k.sort.text)
	}
	r := storedRecord{
		sequence: s.takeSequence(t.stream), created: s.options.Now(), name: streamtypes.OperationTypeModify,
		eventID: fmt.Sprintf("%016x%016x", s.random.Uint64(), s.random.Uint64()), identity: identity,
	}
	switch {
	case old == nil:
		r.name, r.keys = streamtypes.OperationTypeInsert, t.keyOf(after)
	case after == nil:
		r.name, r.keys = streamtypes.OperationTypeRemove, t.keyOf(old)
	default:
		r.keys = t.keyOf(after)
	}
	view := t.stream.view
	if view == streamtypes.StreamViewTypeNewImage || view == streamtypes.StreamViewTypeNewAndOldImages {
		r.after = after
	}
	if view == streamtypes.StreamViewTypeOldImage || view == streamtypes.StreamViewTypeNewAndOldImages {
		r.old = old
	}
	r.bytes = values.Size(r.keys) + values.Size(r.old) + values.Size(r.after)
	for _, sh := range t.stream.shards {
		if sh.closed.IsZero() && sh.from <= hash && hash <= sh.to {
			sh.records = append(sh.records, r)
			return
		}
	}
}

func (r storedRecord) reply(view streamtypes.StreamViewType) streamtypes.Record {
	out := streamtypes.Record{
		AwsRegion: aws.String(region), EventID: aws.String(r.eventID), EventName: r.name,
		EventSource: aws.String("aws:dynamodb"), EventVersion: aws.String("1.1"),
		Dynamodb: &streamtypes.StreamRecord{
			ApproximateCreationDateTime: aws.Time(r.created.UTC().Truncate(time.Second)),
			Keys:                        values.ToStream(r.keys), OldImage: values.ToStream(r.old), NewImage: values.ToStream(r.after),
			SequenceNumber: aws.String(r.sequence.String()), SizeBytes: aws.Int64(int64(r.bytes)), StreamViewType: view,
		},
	}
	if r.identity != nil {
		identity := *r.identity
		out.UserIdentity = &identity
	}
	return out
}

// trim drops the records made before a moment.
func (sh *shard) trim(before time.Time) int {
	n := 0
	for n < len(sh.records) && sh.records[n].created.Before(before) {
		sh.trimmedUntil = sh.records[n].sequence
		n++
	}
	sh.records = sh.records[n:]
	sh.trimmed += n
	return n
}

// forgetOld drops what is past its retention: records, closed shards, disabled streams, tokens.
func (s *Sim) forgetOld() {
	now := s.options.Now()
	horizon := now.Add(-streamRetention)
	for _, st := range s.streams {
		for _, sh := range st.shards {
			sh.trim(horizon)
		}
		st.shards = slices.DeleteFunc(st.shards, func(sh *shard) bool {
			return !sh.closed.IsZero() && sh.closed.Before(horizon)
		})
	}
	s.streams = slices.DeleteFunc(s.streams, func(st *stream) bool {
		return !st.disabled.IsZero() && st.disabled.Before(horizon)
	})
	for len(s.tokenQueue) > 0 {
		first := s.tokenQueue[0]
		if now.Before(s.tokens[first].done.Add(tokenTTL)) {
			break
		}
		delete(s.tokens, first)
		s.tokenQueue = s.tokenQueue[1:]
	}
}
