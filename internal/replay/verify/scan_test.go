package verify_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/tablescan"
)

// refusing refuses its first pages.
type refusing struct {
	tablescan.Client
	refusals []error
}

func (s *refusing) Scan(ctx context.Context, in *dynamodb.ScanInput, o ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	if len(s.refusals) > 0 {
		err := s.refusals[0]
		s.refusals = s.refusals[1:]
		return nil, err
	}
	return s.Client.Scan(ctx, in, o...)
}

func TestAScanOutlastsRefusalsThatPass(t *testing.T) {
	w := newClub(t)
	items := 0
	count := func(change.Item) error { items++; return nil }
	client := &refusing{w.sim, []error{&ddb.ProvisionedThroughputExceededException{}, &ddb.InternalServerError{}}}
	w.must((&tablescan.Table{Client: client, TableName: "app", Segments: 1}).Each(w.ctx, count))
	if items != 7 {
		t.Errorf("%d items", items)
	}
	client.refusals = []error{&ddb.ResourceNotFoundException{}}
	if err := (&tablescan.Table{Client: client, TableName: "app", Segments: 1}).Each(w.ctx, count); err == nil {
		t.Error("a table that is gone was scanned")
	}
}

// refused refuses a scan's first calls.
type refused struct {
	tablescan.Client
	with  error
	calls atomic.Int64
}

var errThrottled = &smithy.GenericAPIError{Code: "ThrottlingException", Message: "too fast"}

func (c *refused) Scan(ctx context.Context, in *dynamodb.ScanInput, opts ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	if c.calls.Add(1) <= 3 {
		return nil, c.with
	}
	return c.Client.Scan(ctx, in, opts...)
}

func TestAScanGivesEveryItemOnceAndIsTriedAgain(t *testing.T) {
	w := newClub(t)
	for i := range 50 {
		w.put("app", texts("pk", fmt.Sprint("USER#x", i), "sk", "PROFILE"))
	}
	for _, segments := range []int{0, 1, 7} {
		var n atomic.Int64
		client := &refused{Client: w.sim, with: errThrottled}
		s := &tablescan.Table{Client: client, TableName: "app", Segments: segments}
		w.must(s.Each(t.Context(), func(change.Item) error { n.Add(1); return nil }))
		if n.Load() != 57 || s.ReadUnits() == 0 {
			t.Errorf("%d segments: %d items, %v read units", segments, n.Load(), s.ReadUnits())
		}
	}
	denied := &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "not this table", Fault: smithy.FaultClient}
	s := &tablescan.Table{Client: &refused{Client: w.sim, with: denied}, TableName: "app"}
	if err := s.Each(t.Context(), func(change.Item) error { return nil }); !errors.Is(err, denied) {
		t.Errorf("an error that does not pass: %v", err)
	}
}
