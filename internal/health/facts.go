package health

import (
	"strings"
	"time"
)

// Facts are what one look at a table found.
type Facts struct {
	Now    time.Time
	LagMax time.Duration // a greater lag is unhealthy; 0: no lag is

	StateTable Existence
	LeaseTable Existence
	Followed   bool // there is a lease row of a shard
	Stream     Stream
	Owners     []Owner
	Shards     []Shard // that are not finished

	Functions Functions
	// BesideFunction says that the processes leave some rules to a function.
	BesideFunction bool
	Remedies       Remedies

	otherFunctions []Function // that are not dynamill's
}

// Existence says whether one of dynamill's tables is there.
type Existence struct {
	Name    string
	There   bool
	Created time.Time // zero if it is not known
}

// Stream is the table's stream.
type Stream struct {
	On      bool
	Former  string // a stream that the lease rows name and the table has not any more; "" if there is none
	Unknown string // the reason why the stream could not be looked at; "" if it could
}

// Owner is a process that lease rows name.
type Owner struct {
	Name string
	// Silent says that it wrote none of its rows while the caller watched for longer than its term.
	Silent bool
	// Unsure says that the caller did not watch for long enough to tell.
	Unsure bool
	Term   time.Duration
}

// Shard is one shard of the stream that is not finished.
type Shard struct {
	ID      string
	Records int       // behind the checkpoint
	AtLeast bool      // there may be more
	Oldest  time.Time // creation of the oldest record behind the checkpoint; zero if there is none
	Done    time.Time // creation of the newest record that was applied; zero if it is not known
	Lost    bool      // the stream dropped records behind the checkpoint
	Skipped bool      // the shard is open, and its lease says that it is finished
	Unknown string    // the reason why the shard could not be read; "" if it could
	NoOlder time.Time // of a shard that could not be read: no record that waits was created earlier; zero if that is not known

	// Rate is how fast the applied records grow younger: seconds of records in a second.
	// 0 if it is not known.
	Rate float64
}

// Functions are the event source mappings of the table's stream.
type Functions struct {
	Unknown string // the reason why they could not be listed; "" if they could
	List    []Function
}

// Function is a Lambda function that is mapped to the stream.
type Function struct {
	Name       string `json:"name"`
	State      string `json:"state"`      // as Lambda says it: Enabled, Disabled, Creating ...
	LastResult string `json:"lastResult"` // as Lambda says it; "" if it says nothing
	// OfTemplate says that it has the name that a template of dynamill gives the function of the table.
	OfTemplate bool `json:"-"`
	// ReportsItemFailures says that the mapping has ReportBatchItemFailures. Without it, Lambda treats a partly done batch as done.
	ReportsItemFailures bool `json:"-"`
}

// Remedies are sentences that name the table's own commands.
type Remedies struct {
	Run          string // starts a worker
	RunBeside    string // starts one that leaves some rules to a function
	EnableStream string
	Replay       string // after lost records
	StartOver    string // after a lost state table
	Skipped      string // for the row of a skipped shard
}

func (f Function) enabled() bool {
	return f.State == "Enabled" || f.State == "Enabling" || f.State == "Updating" || f.State == "Creating"
}

func (f Function) reportsItemFailures() bool { return f.enabled() && f.ReportsItemFailures }

func (f Function) fails() bool {
	return f.enabled() && strings.HasPrefix(f.LastResult, problem)
}

// problem begins a result that Lambda calls a failure (API reference of Lambda,
// EventSourceMappingConfiguration, LastProcessingResult).
const problem = "PROBLEM"
