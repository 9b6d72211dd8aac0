package dynamill

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/counting"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/sim/dynamosim"
)

// rollAll has every open shard end, and another one go on.
func (h *hotTable) rollAll() {
	open, err := h.sim.OpenShards("app")
	for _, shard := range open {
		if err == nil {
			_, err = h.sim.RollOver("app", shard)
		}
	}
	if err != nil {
		h.Error(err)
	}
}

// replaceStream disables the stream and enables it again, and does what the error of `run` says: the lease table is deleted.
func (h *hotTable) replaceStream() {
	h.enableStream(false)
	h.enableStream(true)
	h.deleteLeases()
}

// enableStream enables or disables the stream.
func (h *hotTable) enableStream(on bool) {
	spec := &ddb.StreamSpecification{StreamEnabled: &on}
	if on {
		spec.StreamViewType = ddb.StreamViewTypeNewAndOldImages
	}
	if _, err := h.sim.UpdateTable(h.Context(), &dynamodb.UpdateTableInput{TableName: new("app"), StreamSpecification: spec}); err != nil {
		h.Fatal(err)
	}
}

func (h *hotTable) deleteLeases() {
	if _, err := h.sim.DeleteTable(h.Context(), &dynamodb.DeleteTableInput{TableName: new("app-dynamill-leases")}); err != nil {
		h.Fatal(err)
	}
}

// TestHotRulesAreCountedAnewAfterALongOutage has no process run for two days while the application writes, and then does what
// docs/replay.md, "After an outage", says: the lease table is deleted. Nothing of the shards of before is left in the stream.
func TestHotRulesAreCountedAnewAfterALongOutage(t *testing.T) {
	for name, outage := range map[string]func(h *hotTable){
		"records are dropped": func(h *hotTable) {},
		"their shards are gone": func(h *hotTable) {
			for range 12 {
				time.Sleep(4 * time.Hour)
				h.rollAll()
			}
		},
		"and one process has seen the last shards": func(h *hotTable) {
			for range 12 {
				time.Sleep(4 * time.Hour)
				h.rollAll()
			}
			stop := h.follow("between")
			time.Sleep(time.Minute)
			stop()
			for range 12 {
				h.write(5, time.Second)
				time.Sleep(4 * time.Hour)
				h.rollAll()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHotTable(t, 61)
				h.write(80, 0)
				stop := h.follow("a")
				h.write(100, 100*time.Millisecond)
				h.expect("seeded")
				stop()
				h.write(100, 100*time.Millisecond) // no process reads these
				outage(h)
				time.Sleep(26 * time.Hour)
				h.rollAll()
				h.deleteLeases()
				stop = h.follow("b")
				h.write(100, 100*time.Millisecond)
				h.expect("after the outage")
				stop()
			})
		})
	}
}

// TestHotRulesAreCountedAnewBehindAnotherStream has the stream disabled and enabled again behind records that no process has read.
func TestHotRulesAreCountedAnewBehindAnotherStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHotTable(t, 62)
		h.write(80, 0)
		stop := h.follow("a")
		h.write(100, 100*time.Millisecond)
		h.expect("seeded")
		stop()
		h.write(100, 100*time.Millisecond)
		h.replaceStream()
		stop = h.follow("b")
		h.write(100, 100*time.Millisecond)
		h.expect("behind another stream")
		stop()
	})
}

// TestACountEndsUnderSteadyTraffic has an application write to each shard more often than a count polls it.
func TestACountEndsUnderSteadyTraffic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHotTable(t, 64)
		h.write(80, 0)
		busy := make(chan struct{})
		h.work.Go(func() {
			for n := range 6000 { // six minutes
				key := change.Item{"pk": change.String(fmt.Sprint("LIKE#", n%60)), "sk": change.String("LIKE")}
				key["postId"], key["weight"] = change.String(fmt.Sprint(h.r.IntN(hotPosts))), change.Number("1")
				h.put(key)
				if n%500 == 0 {
					h.rollAll()
				}
				time.Sleep(60 * time.Millisecond)
			}
			close(busy)
		})
		stop := h.follow("a")
		time.Sleep(2 * time.Minute)
		for _, row := range h.items("app-dynamill") {
			if strings.HasPrefix(row["sk"].Text(), "rule/") && row["state"].Text() != "live" {
				t.Errorf("rule %s is %s", row["name"].Text(), row["state"].Text())
			}
		}
		for _, r := range h.count(counting.Verify) {
			if r.Undecided != "" || len(r.Findings) > 0 {
				t.Errorf("verify finds %v, undecided: %q", r.Findings, r.Undecided)
			}
		}
		select {
		case <-busy:
			t.Error("the counts ended with the traffic only")
		default:
		}
		<-busy
		h.expect("counted")
		stop()
	})
}

// tardy is a stream whose removals cannot be read for a while.
type tardy struct {
	*dynamosim.Sim
	hidden atomic.Bool
	shards sync.Map // by iterator
}

func (s *tardy) GetShardIterator(ctx context.Context, in *dynamodbstreams.GetShardIteratorInput, o ...func(*dynamodbstreams.Options),
) (*dynamodbstreams.GetShardIteratorOutput, error) {
	out, err := s.Sim.GetShardIterator(ctx, in, o...)
	if err == nil {
		s.shards.Store(*out.ShardIterator, in)
	}
	return out, err
}

func (s *tardy) GetRecords(ctx context.Context, in *dynamodbstreams.GetRecordsInput, o ...func(*dynamodbstreams.Options),
) (*dynamodbstreams.GetRecordsOutput, error) {
	out, err := s.Sim.GetRecords(ctx, in, o...)
	if err != nil {
		return out, err
	}
	from, _ := s.shards.Load(*in.ShardIterator)
	if out.NextShardIterator != nil {
		s.shards.Store(*out.NextShardIterator, from)
	}
	late := slices.IndexFunc(out.Records, func(r streams.Record) bool { return r.EventName == streams.OperationTypeRemove })
	if late < 0 || !s.hidden.Load() {
		return out, nil
	}
	if out.Records, out.NextShardIterator = out.Records[:late], in.ShardIterator; late > 0 {
		after := *from.(*dynamodbstreams.GetShardIteratorInput)
		after.ShardIteratorType, after.SequenceNumber = streams.ShardIteratorTypeAfterSequenceNumber, out.Records[late-1].Dynamodb.SequenceNumber
		next, err := s.GetShardIterator(ctx, &after)
		if err != nil {
			return nil, err
		}
		out.NextShardIterator = next.ShardIterator
	}
	return out, nil
}

// TestARecordThatIsLateWhileACountEndsIsCounted has the removal of a post's only like be readable when a count has read the shards, and
// before it says so: the process adds it to the generation, and no item or other record tells the count of the post.
func TestARecordThatIsLateWhileACountEndsIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHotTable(t, 63)
		stream := &tardy{Sim: h.sim}
		h.streams = stream
		like := change.Item{"pk": change.String("LIKE#1"), "sk": change.String("LIKE")}
		stop := h.follow("a")
		h.put(change.Item{"pk": like["pk"], "sk": like["sk"], "postId": change.String("7"), "weight": change.Number("1")})
		h.put(change.Item{"pk": change.String("LIKE#2"), "sk": like["sk"], "postId": change.String("8"), "weight": change.Number("1")})
		h.expect("seeded")
		stream.hidden.Store(true)
		remove := &dynamodb.DeleteItemInput{TableName: new("app"), Key: attributes.ItemToTable(like)}
		if _, err := h.sim.DeleteItem(t.Context(), remove); err != nil {
			t.Fatal(err)
		}
		h.watch(func(input any) {
			in, is := input.(*dynamodb.PutItemInput)
			if is && strings.HasPrefix(attributes.ItemFromTable(in.Item)["pk"].Text(), "counted/") && stream.hidden.Swap(false) {
				time.Sleep(20 * time.Second)
			}
		})
		if err := h.attach().Recount(t.Context(), []string{"likes", "weight"}); !errors.Is(err, projections.ErrEpochMoved) {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		if stream.hidden.Load() {
			t.Error("no count has ended")
		}
		h.expect("counted anew")
		stop()
	})
}
