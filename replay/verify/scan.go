package verify

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/awscall"
)

// ScanClient is what scanning needs of DynamoDB; *dynamodb.Client satisfies it.
type ScanClient interface {
	Scan(context.Context, *dynamodb.ScanInput, ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error)
}

const (
	segmentsDefault = 4
	pageItemsMax    = 1000            // a page is at most 1 MB (DynamoDB API), and is held in memory
	scanRetryTotal  = 5 * time.Minute // of one page
)

// Scan is a table that is scanned in parallel segments, consistently.
type Scan struct {
	Client    ScanClient
	TableName string
	Segments  int     // default 4
	Rate      float64 // most read units a second, of all segments; 0: no bound

	units atomic.Int64 // consumed, in thousandths
}

// ReadUnits are what was consumed so far.
func (s *Scan) ReadUnits() float64 { return float64(s.units.Load()) / 1000 }

// Each gives every item to f, several at a time.
func (s *Scan) Each(ctx context.Context, f func(change.Item) error) error {
	segments := s.Segments
	if segments <= 0 {
		segments = segmentsDefault
	}
	g, ctx := errgroup.WithContext(ctx)
	for segment := range segments {
		g.Go(func() error { return s.segment(ctx, segment, segments, f) })
	}
	return g.Wait()
}

func (s *Scan) segment(ctx context.Context, segment, segments int, f func(change.Item) error) error {
	in := &dynamodb.ScanInput{
		TableName: &s.TableName, ConsistentRead: aws.Bool(true), ReturnConsumedCapacity: ddb.ReturnConsumedCapacityTotal,
		Limit: aws.Int32(pageItemsMax),
	}
	if segments > 1 {
		in.Segment, in.TotalSegments = aws.Int32(int32(segment)), aws.Int32(int32(segments))
	}
	for {
		out, err := s.page(ctx, in)
		if err != nil {
			return fmt.Errorf("scanning %s: %w", s.TableName, err)
		}
		for _, item := range out.Items {
			if err := f(attributes.ItemFromTable(item)); err != nil {
				return err
			}
		}
		if in.ExclusiveStartKey = out.LastEvaluatedKey; len(in.ExclusiveStartKey) == 0 {
			return nil
		}
		if out.ConsumedCapacity == nil {
			continue
		}
		units := aws.ToFloat64(out.ConsumedCapacity.CapacityUnits)
		if s.Rate > 0 {
			if err := pause(ctx, time.Duration(units*float64(segments)/s.Rate*float64(time.Second))); err != nil {
				return err
			}
		}
	}
}

// page reads a page, and tries again where that may help.
func (s *Scan) page(ctx context.Context, in *dynamodb.ScanInput) (*dynamodb.ScanOutput, error) {
	return awscall.Persist(ctx, scanRetryTotal, func() (*dynamodb.ScanOutput, error) {
		out, err := s.Client.Scan(ctx, in)
		if err == nil && out.ConsumedCapacity != nil {
			s.units.Add(int64(aws.ToFloat64(out.ConsumedCapacity.CapacityUnits) * 1000))
		}
		return out, err
	})
}
