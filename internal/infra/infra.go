package infra

import (
	"fmt"
	"regexp"
	"time"

	"github.com/dynamill/dynamill/internal/rules"
)

// Format is a language of deployment templates.
type Format string

// The formats.
const (
	SAM            Format = "sam"
	CloudFormation Format = "cloudformation"
	Terraform      Format = "terraform"
)

// Formats lists them.
func Formats() []Format { return []Format{SAM, CloudFormation, Terraform} }

// How a failing batch is treated. A record that can never be applied is parked
// by the engine, so what fails is an outage: retrying for long is right, and
// giving up must come before the stream drops the records (after 24 hours). A
// record's age is the only limit, and cutting batches in two does not count as an
// attempt (Lambda developer guide, "Retain discarded records for a DynamoDB event source").
const (
	retriesMax    = -1 // without end: a bound would be spent before the age where attempts fail fast
	recordAgeMax  = 22 * time.Hour
	lateBatchDays = 90 // that the bucket keeps a late batch
	taskRetries   = 0  // the next minute's invocation is the retry
	taskAgeMax    = time.Minute
)

// tasksPayload is what the schedule invokes the function with.
const tasksPayload = `{"dynamill":"tasks"}`

// Generate writes a template that deploys dynamill with these rules. The error
// says what is wrong with the options, all of it at once.
func Generate(format Format, set *rules.Set, o Options) ([]byte, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	filters, err := Filters(set)
	if err != nil {
		return nil, err
	}
	d := deployment{Options: o, statements: statements(set, o), filters: filters}
	switch format {
	case SAM:
		return []byte(d.cloudFormation(true)), nil
	case CloudFormation:
		return []byte(d.cloudFormation(false)), nil
	case Terraform:
		return []byte(d.terraform()), nil
	}
	return nil, fmt.Errorf("there is no format %q, only %v", format, Formats())
}

// deployment is what every format says in its own language.
type deployment struct {
	Options
	statements []statement
	filters    []string
}

// streamPattern is what an ARN of the table's stream looks like.
func (d deployment) streamPattern() string {
	return `^arn:[a-z-]+:dynamodb:[a-z0-9-]+:[0-9]{12}:table/` + regexp.QuoteMeta(d.Table) + `/stream/.+$`
}

func (d deployment) head(command string) string {
	return "dynamill for table " + d.Table + ", made by `dynamill infra " + command + "` from the rule file. Change the rules or the\n" +
		"command's flags and make it anew rather than editing it: filters and permissions follow from the rules."
}

// Why each part is there, said once for all formats.
const (
	whyStateTable = "dynamill's memory: ledger, accumulators, references, tasks, parked records (docs/state-table.md). Losing it means " +
		"seeding anew, so it is protected."
	whyBucket = "Late batches: those that Lambda gave up, with their records. Objects mean changes that are not derived: an alarm " +
		"watches for them."
	whyLogs     = "The function's log; its metrics are in it, too."
	whyRole     = "Just what these rules need."
	whyFunction = "The engine."
	whyMapping  = "The table's stream to the function. A batch that fails is cut in two, retried from its first failed record on, and " +
		"kept in the bucket when it is too old, before the stream would drop it."
	whyFilters = "Derived from the keys of every entity that a rule reads or writes: other records do not invoke the function and cost " +
		"nothing."
	whyNoFilters = "No filter: the entities' keys have too little fixed text to tell records that concern no rule."
	whySchedule  = "Every minute: what is due without a record, such as the rest of a large fan-out."
	whyInvoke    = "The next minute's invocation is the retry."
	whyMetrics   = "Counts of records read, filtered out and failed, for the alarms and the dashboard."
)

func (d deployment) whyMapping() string {
	if len(d.filters) == 0 {
		return whyMapping + "\n" + whyNoFilters
	}
	return whyMapping
}
