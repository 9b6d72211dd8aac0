package dynamill_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/dynamill/dynamill"
	"github.com/dynamill/dynamill/internal/sim/worldsize"
)

// killable is a process that follows a table. Its calls take so long that it can be killed in the middle of a fan-out, and have
// no effect any more once it is.
type killable struct {
	dead    atomic.Bool
	running *dynamill.Running
	stop    context.CancelFunc
	ended   chan error
}

var errKilledProcess = errors.New("the process was killed")

func startKillable(t *testing.T, cfg aws.Config, follow dynamill.Config) *killable {
	ctx, stop := context.WithCancel(t.Context())
	p := &killable{stop: stop, ended: make(chan error, 1)}
	started := make(chan *dynamill.Running, 1)
	follow.AWS, follow.Started = cfg.Copy(), func(r *dynamill.Running) { started <- r }
	slow := middleware.InitializeMiddlewareFunc("killable",
		func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (
			out middleware.InitializeOutput, data middleware.Metadata, err error,
		) {
			time.Sleep(300 * time.Millisecond)
			if p.dead.Load() {
				return out, data, errKilledProcess
			}
			return next.HandleInitialize(ctx, in)
		})
	follow.AWS.APIOptions = append([]func(*middleware.Stack) error{func(stack *middleware.Stack) error {
		return stack.Initialize.Add(slow, middleware.Before)
	}}, follow.AWS.APIOptions...)
	go func() { p.ended <- dynamill.Follow(ctx, follow) }()
	p.running = <-started
	return p
}

func (p *killable) kill() {
	p.dead.Store(true)
	p.stop()
	<-p.ended
}

// TestFleetSharesALargeFanOutThoughTwoAreKilled has four processes share the fan-out of one group: its members are 24,000,
// 6,000 under the race detector, or 100,000 with DYNAMILL_SOAK. Two of the processes are killed in the middle of it.
func TestFleetSharesALargeFanOutThoughTwoAreKilled(t *testing.T) {
	members := worldsize.Of(24_000, 6_000)
	if os.Getenv("DYNAMILL_SOAK") != "" {
		members = 100_000
	}
	synctest.Test(t, func(t *testing.T) {
		cfg := inMemory(t)
		for i := range members {
			put(t, cfg, "GROUP#g", fmt.Sprintf("USER#%06d", i), "U")
		}
		follow := dynamill.Config{Table: "app", Rules: loaded(t, ruleFile), Logger: slog.New(slog.DiscardHandler)}
		var fleet []*killable
		for i := range 4 {
			follow.Worker = fmt.Sprint("worker", i)
			fleet = append(fleet, startKillable(t, cfg, follow))
		}
		for fleet[0].running.Status().Read < int64(members) && fleet[1].running.Status().Read < int64(members) {
			time.Sleep(time.Second)
		}
		time.Sleep(time.Minute)
		before := writesOf(t, cfg)
		written := childrenOf(fleet)
		put(t, cfg, "GROUP#g", "METADATA", "New")
		began := time.Now()
		killed := killInTheMiddle(fleet, written, int64(members))
		for tasks := 1; tasks > 0; time.Sleep(time.Second) {
			left, err := fleet[killed].running.Unfinished(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			tasks = left.Tasks
		}
		t.Logf("%d members are written after %s", members, time.Since(began))
		for _, p := range fleet[killed:] {
			p.stop()
			if err := <-p.ended; err != nil {
				t.Error(err)
			}
			if p.running.Status().Engine.TaskPieces == 0 {
				t.Error("a process that was not killed took no range")
			}
		}
		expectWrites(t, cfg, members, before)
	})
}

// killInTheMiddle kills a process when a quarter of the members is written, and another at the half. It puts them first
// in the fleet and returns how many they are.
func killInTheMiddle(fleet []*killable, before, members int64) (killed int) {
	for killed < 2 {
		time.Sleep(50 * time.Millisecond)
		children := childrenOf(fleet) - before
		for i := killed; i < len(fleet) && children*4 > members*int64(killed+1); i++ {
			if fleet[i].running.Status().FanOut != nil || children*4 > members*3 {
				fleet[killed], fleet[i] = fleet[i], fleet[killed]
				fleet[killed].kill()
				killed++
				break
			}
		}
	}
	return killed
}

// childrenOf counts the children that the fleet has written.
func childrenOf(fleet []*killable) (children int64) {
	for _, p := range fleet {
		children += p.running.Status().Engine.Children
	}
	return children
}

// expectWrites checks that every member carries the group's name, and by the stream that each was written once or twice.
func expectWrites(t *testing.T, cfg aws.Config, members int, before map[string]int) {
	client := dynamodb.NewFromConfig(cfg)
	named := 0
	for pages := dynamodb.NewScanPaginator(client, &dynamodb.ScanInput{TableName: aws.String("app")}); pages.HasMorePages(); {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range page.Items {
			if name, ok := item["groupName"].(*types.AttributeValueMemberS); ok && name.Value == "New" {
				named++
			}
		}
	}
	times := map[int]int{}
	for member, n := range writesOf(t, cfg) {
		times[n-before[member]]++
	}
	if named != members || times[1]+times[2] != members {
		t.Errorf("%d of %d members carry the name; members by how often they were written: %v", named, members, times)
	}
	t.Logf("members by how often they were written: %v", times)
}

// writesOf counts the writes to items that were there, by their sort keys.
func writesOf(t *testing.T, cfg aws.Config) map[string]int {
	table, err := dynamodb.NewFromConfig(cfg).DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("app")})
	if err != nil {
		t.Fatal(err)
	}
	client, writes := dynamodbstreams.NewFromConfig(cfg), map[string]int{}
	stream, err := client.DescribeStream(t.Context(), &dynamodbstreams.DescribeStreamInput{StreamArn: table.Table.LatestStreamArn})
	if err != nil {
		t.Fatal(err)
	}
	for _, shard := range stream.StreamDescription.Shards {
		at, err := client.GetShardIterator(t.Context(), &dynamodbstreams.GetShardIteratorInput{
			StreamArn: table.Table.LatestStreamArn, ShardId: shard.ShardId, ShardIteratorType: streams.ShardIteratorTypeTrimHorizon,
		})
		if err != nil {
			t.Fatal(err)
		}
		for next, empty := at.ShardIterator, false; next != nil && !empty; {
			out, err := client.GetRecords(t.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: next})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range out.Records {
				if r.EventName == streams.OperationTypeModify {
					writes[r.Dynamodb.Keys["sk"].(*streams.AttributeValueMemberS).Value]++
				}
			}
			next, empty = out.NextShardIterator, len(out.Records) == 0
		}
	}
	return writes
}
