package verify_test

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

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
