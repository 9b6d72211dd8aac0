package table

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/awscall"
	"github.com/dynamill/dynamill/internal/pace"
	"github.com/dynamill/dynamill/projections"
)

// Client is what the engine needs of DynamoDB.
type Client = projections.Client

// InspectClient is what package inspect needs of DynamoDB: reading. *dynamodb.Client satisfies it.
type InspectClient interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
	BatchGetItem(context.Context, *dynamodb.BatchGetItemInput, ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error)
}

// Reader reads the user's table and the state table.
type Reader struct {
	reads      InspectClient
	Table      string // the user's; "" of a reader that reads the state table alone
	StateTable string
	Schema     // of the user's table
	Counters   Counters

	parallelism parallelism
}

// NewReader returns a reader of a state table. It knows no user's table, and takes that table's keys for texts.
func NewReader(client InspectClient, stateTable string) *Reader {
	texts := Schema{PartitionKind: change.KindString, SortKind: change.KindString}
	return &Reader{reads: client, StateTable: stateTable, Schema: texts}
}

// Tables write, too. They are safe for concurrent use.
type Tables struct {
	*Reader
	Client   Client
	Logger   *slog.Logger
	BatchMin int          // writes that wait at the same time go out in batches from this number on
	Budget   *pace.Budget // that pays what is written; nil for none
	Work     string       // the background work that writes; "" for what the stream's records need
	*writing
}

// writing is what all work that writes to the tables shares.
type writing struct {
	unserved    sync.Map // permissions for batches that DynamoDB has refused
	meter       meter
	streamLabel atomic.Pointer[string] // of the table's latest stream, when it was looked at; nil if it has none
}

// New returns a user's table, whose keys Describe learns, and its state table, by default Table and "-dynamill".
func New(client Client, table, stateTable string) *Tables {
	rd := &Reader{reads: client, Table: table, StateTable: cmp.Or(stateTable, table+"-dynamill")}
	return &Tables{Reader: rd, Client: client, Logger: slog.New(slog.DiscardHandler), writing: &writing{}}
}

// For returns the tables as background work writes to them.
func (ts *Tables) For(work string) *Tables {
	other := *ts
	other.Work = work
	return &other
}

// Counters count requests, and how they were answered.
type Counters struct {
	Transactions, Writes, Retries, Conflicts, Throttles atomic.Int64
}

// refused counts what an answer that is no success says about the load.
func (c *Counters) refused(err error) {
	conflict, throttled := awscall.ConflictOrThrottle(err)
	if conflict {
		c.Conflicts.Add(1)
	}
	if throttled {
		c.Throttles.Add(1)
	}
}

// KnowsStream reports whether a position can be of a stream of the table.
func (ts *Tables) KnowsStream(p change.Position) bool {
	latest := ts.streamLabel.Load()
	return latest == nil || *latest == "" || p.Epoch() <= *latest
}

// ReadStreamLabel reads the label of the table's latest stream.
func (ts *Tables) ReadStreamLabel(ctx context.Context) error {
	out, err := Attempt(ctx, ts.Reader, "describing table "+ts.Table, func() (*dynamodb.DescribeTableOutput, error) {
		return ts.Client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &ts.Table})
	})
	if err == nil {
		ts.streamLabel.Store(out.Table.LatestStreamLabel)
	}
	return err
}
