package main

import (
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/smithy-go/logging"
)

// connectionsMax is how many idle connections a client keeps; the SDK's default of 10 makes
// 16 requests at once open new ones all the time.
const connectionsMax = 128

// endpoint is a DynamoDB with an access key.
type endpoint struct{ URL, Key string }

// config returns the settings of a client.
func (e endpoint) config() aws.Config {
	return aws.Config{
		Region: "us-east-1", BaseEndpoint: &e.URL, Logger: logging.Nop{},
		Credentials: credentials.NewStaticCredentialsProvider(e.Key, "secret", ""),
		HTTPClient: awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
			t.MaxIdleConns, t.MaxIdleConnsPerHost = connectionsMax, connectionsMax
		}),
	}
}

// job is what the process of a contender is told to do.
type job struct {
	Endpoint  endpoint
	Table     string
	StreamARN string
	Workload  string
	Rules     string // of dynamill
	Contender string
	Gated     bool // GetRecords is held back until the parent process says "open"
	Oldest    bool // a handler begins with the oldest record; dynamill goes by its checkpoints
	Prepare   bool // dynamill seeds and applies everything, and ends
	Poll      time.Duration
	Quiet     time.Duration // without a write or a record, after which a contender has nothing to do
}

// The commands of the parent process, each in a line.
const (
	commandOpen   = "open"
	commandReport = "report"
	commandStop   = "stop"
)

// message is what the process of a contender says, in a line of JSON.
type message struct {
	Event     string // one of those below
	Usage     usage  // of eventUsage
	Error     string // of eventFailed
	NotServed bool   // the endpoint does not know an operation that the contender needs
}

const (
	eventReady   = "ready"
	eventUsage   = "usage"
	eventStopped = "stopped"
	eventFailed  = "failed"
)

// usage is what a contender used since its gate was opened.
type usage struct {
	CPU           time.Duration
	MemoryPeak    int64 // bytes, of the whole process
	WriteRequests int   // attempts, those at the lease table left out
	ReadRequests  int   // of tables
	LeaseRequests int
	Polls         int // GetRecords
	Records       int // that they brought
	WriteUnits    float64
	ReadUnits     float64
}

// since is the CPU time, and how many polls and requests to the lease table, there were in each second since an
// earlier report.
func (u usage) since(before usage, lasted time.Duration) usage {
	each := func(n int) int { return int(float64(n)/lasted.Seconds() + 0.5) }
	return usage{CPU: time.Duration(float64(u.CPU-before.CPU) / lasted.Seconds()), Polls: each(u.Polls - before.Polls),
		LeaseRequests: each(u.LeaseRequests - before.LeaseRequests)}
}
