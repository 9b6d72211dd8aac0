package sources

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/dynamojson"
	"github.com/dynamill/dynamill/internal/pace"
	"github.com/dynamill/dynamill/internal/tablescan"
)

const (
	// A segment for so many bytes of the table: it is gone through in about 100 requests.
	scanSegmentBytes = 100 << 20
	scanSegmentsMin  = 8 // so that a small table's items are worked off in parallel, too
	// ScanSegmentsMax is the most segments that a table's size asks for. More may be given.
	ScanSegmentsMax = 1_000
	// ScanSegmentsLimit is DynamoDB's own (DynamoDB API reference, "Scan").
	ScanSegmentsLimit = 1_000_000
)

// ScanClient is what a scan needs of the SDK's dynamodb client.
type ScanClient interface {
	tablescan.Client
	DescribeTable(ctx context.Context, in *dynamodb.DescribeTableInput, options ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput,
		error)
}

var _ ScanClient = (*dynamodb.Client)(nil)

// ScanConfig says what to scan and how.
type ScanConfig struct {
	Client ScanClient
	Table  string
	Keys   KeyNames
	// Segments is how many pieces the scan has; 0: one for every 100 MB of the table, from 8 to ScanSegmentsMax. Another
	// number is another source: a caller that resumes a scan gives the number that it was begun with.
	Segments int
	// EventuallyConsistent halves the cost and may miss the latest items, for which the stream must be followed.
	EventuallyConsistent bool
	Pace                 *pace.Units // nil: as fast as asked
}

// Describe is that of a Scan with just these Segments, also with 0.
func (c ScanConfig) Describe() string {
	text := fmt.Sprintf("scan of %s, %d segments", c.Table, c.Segments)
	if c.EventuallyConsistent {
		text += ", eventually consistent"
	}
	return text
}

// Scan is the source of all keys in a table.
type Scan struct {
	config ScanConfig
	table  *tablescan.Table
	items  int64 // in the whole table, by the latest count of DynamoDB
}

// NewScan makes a Scan. It describes the table, for its size.
func NewScan(ctx context.Context, config ScanConfig) (*Scan, error) {
	if config.Segments < 0 || config.Segments > ScanSegmentsLimit {
		return nil, fmt.Errorf("a scan of %d segments: want 1 to %d, or 0 for as many as the table's size asks for", config.Segments,
			ScanSegmentsLimit)
	}
	out, err := config.Client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &config.Table})
	if err != nil {
		return nil, fmt.Errorf("describing table %s: %w", config.Table, err)
	}
	s := &Scan{config: config, items: aws.ToInt64(out.Table.ItemCount)}
	s.config.Segments = cmp.Or(config.Segments, segmentsFor(aws.ToInt64(out.Table.TableSizeBytes)))
	s.table = &tablescan.Table{
		Client: config.Client, TableName: config.Table, Segments: s.config.Segments, Attributes: []string{config.Keys.Partition},
		EventuallyConsistent: config.EventuallyConsistent, Pace: config.Pace,
	}
	if config.Keys.Sort != "" {
		s.table.Attributes = append(s.table.Attributes, config.Keys.Sort)
	}
	return s, nil
}

func segmentsFor(tableBytes int64) int {
	return int(min(max((tableBytes+scanSegmentBytes-1)/scanSegmentBytes, scanSegmentsMin), ScanSegmentsMax))
}

// Segments is how many pieces the scan has.
func (s *Scan) Segments() int { return s.config.Segments }

// Describe names the table, the number of segments, and whether the scan may miss something.
func (s *Scan) Describe() string { return s.config.Describe() }

const segmentForm = "segment %d of %d" // counted from 1

// Pieces lists the segments. DynamoDB counts items every six hours, so how many one has is an estimate.
func (s *Scan) Pieces(context.Context) ([]Piece, error) {
	pieces := make([]Piece, s.config.Segments)
	each := int64(math.Ceil(float64(s.items) / float64(len(pieces))))
	for i := range pieces {
		pieces[i] = Piece{Name: fmt.Sprintf(segmentForm, i+1, len(pieces)), Items: each}
	}
	return pieces, nil
}

func (s *Scan) segment(piece Piece) (int, error) {
	var number, of int
	if n, err := fmt.Sscanf(piece.Name, segmentForm, &number, &of); n != 2 || err != nil ||
		piece.Name != fmt.Sprintf(segmentForm, number, of) || of != s.config.Segments || number < 1 || number > of {
		return 0, fmt.Errorf("%q is no piece of the %s", piece.Name, s.Describe())
	}
	return number - 1, nil
}

// Read scans one page of a segment, of at most 1 MB (DynamoDB developer guide, "Scanning tables").
func (s *Scan) Read(ctx context.Context, piece Piece, cursor string) (Page, error) {
	segment, err := s.segment(piece)
	if err != nil {
		return Page{}, err
	}
	start, err := s.startKey(cursor)
	if err != nil {
		return Page{}, fmt.Errorf("%s of table %s: %w", piece.Name, s.config.Table, err)
	}
	scanned, err := s.table.Read(ctx, segment, start, piece.pageMax())
	if err != nil {
		return Page{}, fmt.Errorf("scanning %s of table %s: %w", piece.Name, s.config.Table, err)
	}
	page := Page{Items: scanned.Scanned, ReadUnits: scanned.ReadUnits, Next: cursor, Last: scanned.Next == nil}
	for _, item := range scanned.Items {
		key, err := attributes.KeyOf(attributes.ItemFromTable(item), s.config.Keys.Partition, s.config.Keys.Sort)
		if err != nil {
			return Page{}, fmt.Errorf("an item of table %s: %w", s.config.Table, err)
		}
		page.Keys = append(page.Keys, key)
	}
	if !page.Last {
		page.Next, err = s.cursor(scanned.Next)
	}
	return page, err
}

// cursor writes the key behind which the next page begins with its types: {"pk": {"S": "USER#1"}, ...}.
func (s *Scan) cursor(last tablescan.Key) (string, error) {
	text, err := json.Marshal(dynamojson.EncodeImage(attributes.ItemFromTable(last)))
	return string(text), err
}

func (s *Scan) startKey(cursor string) (tablescan.Key, error) {
	if cursor == "" {
		return nil, nil
	}
	key, err := dynamojson.Decode("cursor", []byte(`{"M":`+cursor+`}`))
	if err != nil {
		return nil, fmt.Errorf("cursor %q is no key: %w", cursor, err)
	}
	start := change.Item(key.Map())
	if _, err := attributes.KeyOf(start, s.config.Keys.Partition, s.config.Keys.Sort); err != nil {
		return nil, fmt.Errorf("cursor %q has not the table's key attributes: %w", cursor, err)
	}
	return attributes.ItemToTable(start), nil
}
