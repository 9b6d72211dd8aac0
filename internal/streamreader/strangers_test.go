package streamreader

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/sim/dynamosim"
)

// putRow writes a row as the Kinesis Client Library or a person does.
func putRow(t *testing.T, sim *dynamosim.Sim, shard, checkpoint, parent string, more map[string]ddb.AttributeValue) {
	t.Helper()
	item := map[string]ddb.AttributeValue{
		"leaseKey": text(shard), "checkpoint": text(checkpoint), "leaseCounter": number(7), "checkpointSubSequenceNumber": number(0),
	}
	if parent != "" {
		item["parentShardId"] = &ddb.AttributeValueMemberSS{Value: []string{parent}}
	}
	for name, av := range more {
		item[name] = av
	}
	if _, err := sim.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("leases"), Item: item}); err != nil {
		t.Fatal(err)
	}
}

// Rows that were not made by dynamill lack what it notes of a shard. That is
// looked up; nothing is assumed.
func TestRowsThatAnotherProgramMade(t *testing.T) {
	ours := map[string]ddb.AttributeValue{"streamName": text(testARN)}
	for _, test := range []struct {
		name, checkpoint, parent string
		more                     map[string]ddb.AttributeValue
		followed                 bool // by dynamill, before
		trimmed, read            int
		lost                     bool
	}{
		{name: "nothing done", checkpoint: "TRIM_HORIZON", read: 6},
		{name: "nothing done, its parent gone", checkpoint: "TRIM_HORIZON", parent: "gone", read: 6},
		{name: "nothing done, its parent gone, named as of the stream", checkpoint: "TRIM_HORIZON", parent: "gone", more: ours, read: 6},
		{name: "partly trimmed when it is first met", checkpoint: "TRIM_HORIZON", trimmed: 2, more: ours, read: 4},
		{name: "where the library would begin at the end", checkpoint: "LATEST", read: 6},
		{name: "where the library would begin at a time", checkpoint: "AT_TIMESTAMP", more: ours, read: 6},
		{name: "half done", checkpoint: "half", read: 3},
		{name: "half done, its parent gone", checkpoint: "half", parent: "gone", more: ours, read: 3},
		{name: "half done, trimmed behind that", checkpoint: "half", trimmed: 5, lost: true},
		{name: "all done", checkpoint: "SHARD_END"},
		{name: "put back by hand", checkpoint: "TRIM_HORIZON", more: ours, followed: true, read: 6},
		{name: "put back by hand, trimmed since", checkpoint: "TRIM_HORIZON", more: ours, followed: true, trimmed: 1, lost: true},
		{name: "put back by hand without the stream, trimmed since", checkpoint: "TRIM_HORIZON", followed: true, trimmed: 1, lost: true},
		{name: "put back by hand, of a parent that nobody has seen", checkpoint: "TRIM_HORIZON", parent: "never-read", more: ours, followed: true,
			lost: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, c, sim := newFakeStream(), &collector{}, dynamosim.New(dynamosim.Options{})
				cp := NewLeaseTable(sim, "leases")
				if _, err := cp.Load(t.Context()); err != nil {
					t.Fatal(err)
				}
				s := f.open("shard", test.parent)
				f.write(s, "item", 6)
				if test.followed {
					if _, err := cp.Create(t.Context(), Lease{Shard: testARN, Stream: testARN, Checkpoint: Latest, Counter: 1}); err != nil {
						t.Fatal(err)
					}
				}
				s.trimmed = test.trimmed
				if test.checkpoint == ShardEnd {
					f.close(s)
				}
				if test.checkpoint == "half" {
					test.checkpoint = *s.records[2].Dynamodb.SequenceNumber
				}
				putRow(t, sim, "shard", test.checkpoint, test.parent, test.more)
				err := newTestReader(t, f, cp, c).Drain(t.Context())
				var lost *TrimmedError
				if errors.As(err, &lost) != test.lost || !test.lost && err != nil {
					t.Errorf("Drain returned %v", err)
				}
				if c.count() != test.read {
					t.Errorf("%d records done, want %d", c.count(), test.read)
				}
				if l := leaseOf(t, cp, "shard"); !test.lost && l.Checkpoint != ShardEnd && (l.Unadopted || l.Stream != testARN || l.Start != s.start) {
					t.Errorf("the row says %+v", l)
				}
			})
		})
	}
}

// What another program had not finished when the stream dropped it is lost,
// although that program's rows do not name the stream.
func TestShardUnfinishedByAnotherProgramIsLost(t *testing.T) {
	for _, test := range []struct {
		name, checkpoint string
		childRow, lost   bool
	}{
		{name: "half done", checkpoint: "half", childRow: true, lost: true},
		{name: "half done, no row of the child", checkpoint: "half", lost: true},
		{name: "nothing done", checkpoint: "TRIM_HORIZON", childRow: true, lost: true},
		{name: "all done", checkpoint: "SHARD_END", childRow: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, c, sim := newFakeStream(), &collector{}, dynamosim.New(dynamosim.Options{})
				cp := NewLeaseTable(sim, "leases")
				if _, err := cp.Load(t.Context()); err != nil {
					t.Fatal(err)
				}
				parent := f.open("shard-1", "")
				f.write(parent, "item", 6)
				f.close(parent)
				f.write(f.open("shard-2", "shard-1"), "next", 3)
				checkpoint := test.checkpoint
				if checkpoint == "half" {
					checkpoint = *parent.records[2].Dynamodb.SequenceNumber
				}
				putRow(t, sim, "shard-1", checkpoint, "", nil)
				if test.childRow {
					putRow(t, sim, "shard-2", "TRIM_HORIZON", "shard-1", nil)
				}
				parent.gone = true
				for _, when := range []string{"at the first start", "at the next"} {
					err := newTestReader(t, f, cp, c).Drain(t.Context())
					var lost *TrimmedError
					if errors.As(err, &lost) != test.lost || !test.lost && err != nil ||
						test.lost && (lost.Shard != "shard-1" || lost.Checkpoint != checkpoint) {
						t.Errorf("%s Drain returned %v", when, err)
					}
					if test.lost && c.count() != 0 {
						t.Errorf("%s %d records done behind the gap", when, c.count())
					}
				}
				// What the error says helps.
				forget(t, cp)
				c.records = nil
				if err := newTestReader(t, f, cp, c).Drain(t.Context()); err != nil {
					t.Fatal(err)
				}
				wantItems(t, c, map[string]int{"next": 3})
			})
		})
	}
}
