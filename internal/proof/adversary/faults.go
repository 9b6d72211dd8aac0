package adversary

import (
	"net"
	"os"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/aws/smithy-go"
)

// Fault is one way in which things go wrong.
type Fault uint8

// The faults. Those up to LateRecords, and StaleRead, strike single calls, those
// from Again to AtOnce, and GivenUp, single deliveries, and Unreadable single
// records, as the seed has it. The others befall whom the conductor's owner says;
// now and then a worker wakes, or is handed a late batch, by itself.
const (
	FailedBefore    Fault = iota // a call fails and has no effect
	LostReply                    // a call has its effect and then fails
	Throttled                    // a call is throttled
	Outage                       // all calls of a worker to its tables are throttled for minutes
	Conflict                     // a write meets another transaction
	Unprocessed                  // a page is short, or a part of a batch of reads is not worked off
	CrashedBefore                // a worker crashes at a call that has no effect any more
	CrashedAfter                 // a worker crashes at a call that still has its effect
	LateEffect                   // a call of a worker that crashed takes effect much later
	Froze                        // a worker freezes in a call
	ExpiredIterator              // an iterator is too old
	LateRecords                  // a shard's records are delayed behind another's
	Again                        // a batch that was delivered before is delivered again
	Cut                          // a batch is cut in two
	OutOfOrder                   // the halves of a batch are applied in the wrong order
	AtOnce                       // several invocations work on different items of one batch
	Woke                         // a frozen worker goes on
	Takeover                     // a worker starts while another is at work
	Restart                      // a worker stops in good order, and another starts
	Rewound                      // reading starts again with the oldest records
	Split                        // a shard splits
	RolledOver                   // a shard rolls over
	Slept                        // all workers sleep for longer than an iterator lives
	Skipped                      // records are lost for good
	Replaced                     // the stream is disabled and enabled again
	StateLost                    // the state table and the checkpoints are deleted
	Recreated                    // the table is deleted and made again from a backup, stamps included
	RulesAdded                   // workers that start from now on know more rules
	StaleRead                    // a read that does not ask for consistency finds an item as it was
	GivenUp                      // time runs out while a batch is worked off, and it is given up
	HandedOver                   // a batch that was given up is handed over, late
	Unreadable                   // of a record nothing can be read but its key and its position
	Aged                         // so much time passes that the stream drops what it holds now
	Drained                      // a worker reads the stream to its end, beside the others, and is gone
	Replayed                     // a replay is started, or taken up again
	Verifying                    // verify compares what is derived with what should be
	RulesChanged                 // the rule file is changed: a replay brings it into force
	Recounted                    // an operator has rules counted anew that count by stream position
	SetBack                      // a person sets the checkpoint of a shard back
	faultCount
)

var faultNames = [faultCount]string{
	"failed before", "lost reply", "throttled", "outage", "conflict", "unprocessed", "crashed before", "crashed after", "late effect", "froze",
	"expired iterator", "late records", "delivered again", "cut", "out of order", "at once", "woke", "takeover", "restart", "rewound",
	"split", "rolled over", "slept", "skipped", "replaced", "state lost", "recreated", "rules added", "stale read",
	"given up", "handed over", "unreadable", "aged", "drained", "replayed", "verified", "rules changed", "recounted", "set back",
}

// String is the fault's name in reports.
func (f Fault) String() string { return faultNames[f] }

// Faults is a set of faults.
type Faults uint64

// AllFaults are all of them.
const AllFaults Faults = 1<<faultCount - 1

// OfFunctions are what befalls batches of a function, whose order along a shard does not count. A process that reads shards has none of it.
const OfFunctions Faults = 1<<OutOfOrder | 1<<AtOnce | 1<<GivenUp | 1<<HandedOver | 1<<Unreadable

// Losing are the faults by which a stream loses records.
const Losing Faults = 1<<Skipped | 1<<Replaced | 1<<Aged

// Has reports whether the set has the fault.
func (s Faults) Has(f Fault) bool { return s&(1<<f) != 0 }

// Without returns the set without a fault.
func (s Faults) Without(f Fault) Faults { return s &^ (1 << f) }

// Less returns the set without those of another.
func (s Faults) Less(other Faults) Faults { return s &^ other }

// List returns the faults in the set, in order.
func (s Faults) List() []Fault {
	var all []Fault
	for f := range faultCount {
		if s.Has(f) {
			all = append(all, f)
		}
	}
	return all
}

// Counts say how often each fault has struck.
type Counts [faultCount]int

// Add adds other counts.
func (c *Counts) Add(d Counts) {
	for i := range c {
		c[i] += d[i]
	}
}

// The delivery of a batch, that of each of its parts to the engine, and the end
// of those that are given up, pass the gate like calls.
const (
	opProcess = "Process"
	opApply   = "Apply"
	opGiveUp  = "Give up"
)

func isDelivery(op string) bool { return op == opProcess || op == opApply || op == opGiveUp }

func isStreamCall(op string) bool {
	return op == "DescribeStream" || op == "GetShardIterator" || op == "GetRecords"
}

func isWrite(op string) bool {
	switch op {
	case "PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems", "BatchExecuteStatement":
		return true
	}
	return false
}

// striking are the faults that can strike a call, each with its weight out of a
// thousand calls.
func striking(op string) []struct {
	fault  Fault
	weight int
} {
	type weighted = struct {
		fault  Fault
		weight int
	}
	switch {
	case op == opProcess || op == opGiveUp:
		return nil
	case op == opApply:
		return []weighted{{FailedBefore, 25}, {CrashedBefore, 5}}
	case op == "GetRecords":
		return []weighted{{FailedBefore, 8}, {Throttled, 4}, {ExpiredIterator, 15}, {LateRecords, 60}, {CrashedBefore, 3}, {Froze, 3}}
	case isStreamCall(op):
		return []weighted{{FailedBefore, 8}, {Throttled, 4}, {CrashedBefore, 2}, {Froze, 2}}
	case isWrite(op):
		return []weighted{{FailedBefore, 10}, {LostReply, 20}, {Throttled, 5}, {Outage, 2}, {Conflict, 15}, {CrashedBefore, 8},
			{CrashedAfter, 12}, {Froze, 12}}
	case op == "Query" || op == "Scan":
		return []weighted{{FailedBefore, 5}, {Throttled, 5}, {Outage, 1}, {Unprocessed, 150}, {CrashedBefore, 5}, {Froze, 12}}
	case op == "BatchGetItem":
		return []weighted{{FailedBefore, 5}, {Throttled, 5}, {Unprocessed, 25}, {CrashedBefore, 5}, {Froze, 12}}
	}
	return []weighted{{FailedBefore, 5}, {Throttled, 5}, {CrashedBefore, 5}, {Froze, 12}}
}

var (
	errServer     error = &smithy.GenericAPIError{Code: "InternalServerError", Message: "simulated", Fault: smithy.FaultServer}
	errConnection error = &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
	errThrottled        = &ddb.ProvisionedThroughputExceededException{}
	errExpired    error = &streams.ExpiredIteratorException{}
	errStreamBusy       = &streams.LimitExceededException{}
)

// conflictOf is what a write is told that meets another transaction.
func conflictOf(input any) error {
	in, ok := input.(*dynamodb.TransactWriteItemsInput)
	if !ok {
		return &ddb.TransactionConflictException{}
	}
	none, code := "None", "TransactionConflict"
	reasons := make([]ddb.CancellationReason, len(in.TransactItems))
	for i := range reasons {
		reasons[i].Code = &none
	}
	reasons[len(reasons)-1].Code = &code
	return &ddb.TransactionCanceledException{CancellationReasons: reasons}
}
