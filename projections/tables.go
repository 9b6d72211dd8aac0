package projections

import (
	"sync/atomic"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/awscall"
)

// reader reads the user's table and the state table.
type reader struct {
	reads        InspectClient
	table        string // the user's
	stateTable   string
	partitionKey string // of the user's table
	sortKey      string // "" if the table has none
	partitionN   bool   // the partition key is a number
	sortN        bool
	counters     requestCounters
}

// newReader returns a reader of a state table. It knows no user's table.
func newReader(client InspectClient, stateTable string) *reader {
	return &reader{reads: client, stateTable: stateTable}
}

// tables write, too. A tables is safe for concurrent use.
type tables struct {
	*reader
	client      Client
	limiter     Limiter // of what is written; nil for none
	meter       meter
	streamLabel atomic.Pointer[string] // of the table's latest stream, when it was looked at; nil if it has none
}

// newTables returns a user's table, of which describeTable learns the keys, and its state table.
func newTables(client Client, limiter Limiter, table, stateTable string) *tables {
	return &tables{reader: &reader{reads: client, table: table, stateTable: stateTable}, client: client, limiter: limiter}
}

// requestCounters count requests, and how they were answered.
type requestCounters struct {
	Transactions, Writes, Retries, Conflicts, Throttles atomic.Int64
}

// refused counts what an answer that is no success says about the load.
func (c *requestCounters) refused(err error) {
	conflict, throttled := awscall.Load(err)
	if conflict {
		c.Conflicts.Add(1)
	}
	if throttled {
		c.Throttles.Add(1)
	}
}

// itemKey is a key in the user's table as the SDK wants it.
func (rd *reader) itemKey(k change.Key) map[string]ddb.AttributeValue {
	key := map[string]ddb.AttributeValue{rd.partitionKey: keyValue(k.Partition, rd.partitionN)}
	if rd.sortKey != "" {
		key[rd.sortKey] = keyValue(k.Sort, rd.sortN)
	}
	return key
}

func keyValue(text string, number bool) ddb.AttributeValue {
	if number {
		return &ddb.AttributeValueMemberN{Value: text}
	}
	return textValue(text)
}

// keyOf reads an item's key.
func (rd *reader) keyOf(item map[string]ddb.AttributeValue) change.Key {
	k := change.Key{Partition: textOf(item[rd.partitionKey])}
	if rd.sortKey != "" {
		k.Sort = textOf(item[rd.sortKey])
	}
	return k
}
