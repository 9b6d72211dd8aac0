// Package tablescan reads tables page by page: whole in parallel segments, or one page of a segment behind a key.
// It imports change, internal/attributes, internal/awscall and internal/pace.
package tablescan

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/awscall"
	"github.com/dynamill/dynamill/internal/pace"
)

// Client is the part of *dynamodb.Client that scans need.
type Client interface {
	Scan(context.Context, *dynamodb.ScanInput, ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error)
}

const (
	segmentsDefault = 4
	pageItemsMax    = 1000            // a page is at most 1 MB (DynamoDB API), and is held in memory
	pageRetryMax    = 5 * time.Minute // of Each
)

// Table is a table that is scanned, consistently unless it says otherwise.
type Table struct {
	Client               Client
	TableName            string
	Segments             int      // default 4
	Attributes           []string // those to read; nil: all
	EventuallyConsistent bool
	Pace                 *pace.Units // nil: no bound

	units atomic.Int64 // consumed, in thousandths
}

// Key is where a scan resumes; nil is the beginning, and after a page the end.
type Key = map[string]ddb.AttributeValue

// Page is what one request answers.
type Page struct {
	Items     []map[string]ddb.AttributeValue
	Scanned   int64
	ReadUnits float64
	Next      Key // nil: this page is the last of its segment
}

// ReadUnits are the units consumed so far.
func (t *Table) ReadUnits() float64 { return float64(t.units.Load()) / 1000 }

// Read reads one page of a segment, counted from 0: at most itemsMax items behind a key.
func (t *Table) Read(ctx context.Context, segment int, behind Key, itemsMax int) (Page, error) {
	if t.Pace != nil {
		if err := t.Pace.Wait(ctx, 1); err != nil {
			return Page{}, err
		}
	}
	out, err := t.Client.Scan(ctx, t.request(segment, behind, itemsMax))
	if err != nil {
		return Page{}, err
	}
	page := Page{Items: out.Items, Scanned: int64(out.ScannedCount)}
	if len(out.LastEvaluatedKey) > 0 {
		page.Next = out.LastEvaluatedKey
	}
	if used := out.ConsumedCapacity; used != nil {
		page.ReadUnits = aws.ToFloat64(used.CapacityUnits)
	}
	if t.Pace != nil { // only the answer says how many units the page took
		t.Pace.Pay(int(math.Ceil(page.ReadUnits)) - 1)
	}
	t.units.Add(int64(page.ReadUnits * 1000))
	return page, nil
}

func (t *Table) request(segment int, behind Key, itemsMax int) *dynamodb.ScanInput {
	in := &dynamodb.ScanInput{
		TableName: &t.TableName, ConsistentRead: aws.Bool(!t.EventuallyConsistent), ExclusiveStartKey: behind,
		Limit: aws.Int32(int32(itemsMax)), ReturnConsumedCapacity: ddb.ReturnConsumedCapacityTotal, //nolint:gosec // a page has fewer items
	}
	if segments := cmp.Or(t.Segments, segmentsDefault); segments > 1 {
		in.Segment, in.TotalSegments = aws.Int32(int32(segment)), aws.Int32(int32(segments)) //nolint:gosec // DynamoDB allows 1,000,000
	}
	if len(t.Attributes) > 0 {
		places := make([]string, len(t.Attributes))
		in.ExpressionAttributeNames = map[string]string{}
		for i, name := range t.Attributes {
			places[i] = fmt.Sprintf("#a%d", i)
			in.ExpressionAttributeNames[places[i]] = name
		}
		in.ProjectionExpression = aws.String(strings.Join(places, ", "))
	}
	return in
}

// Each gives every item to f, several at a time. It retries a failed page for up to five minutes.
func (t *Table) Each(ctx context.Context, f func(change.Item) error) error {
	if t.Segments < 0 {
		return fmt.Errorf("scanning %s: %d segments would read nothing", t.TableName, t.Segments)
	}
	g, ctx := errgroup.WithContext(ctx)
	for segment := range cmp.Or(t.Segments, segmentsDefault) {
		g.Go(func() error { return t.segment(ctx, segment, f) })
	}
	return g.Wait()
}

func (t *Table) segment(ctx context.Context, segment int, f func(change.Item) error) error {
	for behind := Key(nil); ; {
		page, err := awscall.Persist(ctx, pageRetryMax, func() (Page, error) { return t.Read(ctx, segment, behind, pageItemsMax) })
		if err != nil {
			return fmt.Errorf("scanning %s: %w", t.TableName, err)
		}
		for _, item := range page.Items {
			if err := f(attributes.ItemFromTable(item)); err != nil {
				return err
			}
		}
		if behind = page.Next; behind == nil {
			return nil
		}
	}
}
