// Package emf writes what a Lambda function did in CloudWatch's embedded metric format (Amazon CloudWatch user guide,
// "Specification: Embedded metric format"). It imports the public package projections
// only.
package emf

import (
	"encoding/json"
	"io"
	"sync"
	"time"

	"github.com/dynamill/dynamill/projections"
)

// namespace and dimension are those that infra's alarms look at.
const (
	namespace = "dynamill"
	dimension = "Table"
)

// Meter writes what each invocation did as one line. CloudWatch makes metrics of what definitions names; the rest stays in
// the log. Several goroutines may use it.
type Meter struct {
	Out   io.Writer
	Table string

	mu   sync.Mutex
	last projections.Stats // as of the line before
}

type metricLine struct {
	AWS          metadata `json:"_aws"`
	Table        string
	RequestID    string `json:"requestId,omitempty"`
	Records      int64
	Relevant     int64
	Unmatched    int64
	Transactions int64
	Writes       int64
	Rollups      int64
	Children     int64 `json:"Copies"`
	Made         int64 `json:"Mirrors"`
	Deleted      int64
	Parked       int64
	Heals        int64
	Failed       int64 // 1 if something has to come again, else 0
	DurationMs   float64
}

type metadata struct {
	Timestamp int64       // ms since 1970
	Metrics   []directive `json:"CloudWatchMetrics"`
}

type directive struct {
	Namespace  string
	Dimensions [][]string
	Metrics    []definition
}

type definition struct{ Name, Unit string }

var definitions = []definition{
	{"Records", "Count"}, {"Relevant", "Count"}, {"Writes", "Count"}, {"Parked", "Count"}, {"Heals", "Count"}, {"Failed", "Count"},
	{"DurationMs", "Milliseconds"},
}

// Report writes the line of an invocation: what was done since the last line, so that nothing is counted twice.
func (m *Meter) Report(requestID string, now projections.Stats, failed bool, took time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	last := m.last
	m.last = now
	line := metricLine{
		AWS: metadata{time.Now().UnixMilli(), []directive{{namespace, [][]string{{dimension}}, definitions}}}, Table: m.Table,
		RequestID: requestID,
		Records:   now.Records - last.Records, Relevant: now.Relevant - last.Relevant, Unmatched: now.Unmatched - last.Unmatched,
		Transactions: now.Transactions - last.Transactions, Writes: now.Writes - last.Writes, Rollups: now.Rollups - last.Rollups,
		Children: now.Children - last.Children, Made: now.Made - last.Made,
		Deleted: now.Deleted - last.Deleted, Parked: now.Parked - last.Parked, Heals: now.Heals - last.Heals,
		DurationMs: float64(took.Microseconds()) / 1000,
	}
	if failed {
		line.Failed = 1
	}
	return json.NewEncoder(m.Out).Encode(line)
}
