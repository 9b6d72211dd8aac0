package infra

import (
	"regexp"
	"strings"
	"time"
	"unicode"
)

// deployment is what the templates are made of. What it embeds and what its methods
// return, every format says in its own language.
type deployment struct {
	Options
	limits

	SAM        bool // a template of SAM, which differs from CloudFormation's in how the function's code is found
	Filters    []string
	Statements []statement // of the stream's function
}

// limits say how a failing batch is treated. A record that can never be applied is parked
// by the engine, so what fails is an outage: retrying for long is right, and
// giving up must come before the stream drops the records (after 24 hours). A
// record's age is the only limit, and cutting batches in two does not count as an
// attempt (Lambda developer guide, "Retain discarded records for a DynamoDB event source").
type limits struct {
	RetriesMax    int
	RecordAgeMax  time.Duration
	LateBatchDays int // that the bucket keeps a late batch
	TaskRetries   int
	TaskAgeMax    time.Duration
}

var theLimits = limits{
	RetriesMax:    -1, // without end: a bound would be spent before the age where attempts fail fast
	RecordAgeMax:  22 * time.Hour,
	LateBatchDays: 90,
	TaskRetries:   0, // the next minute's invocation is the retry
	TaskAgeMax:    time.Minute,
}

// role is a role with just the permissions of some statements.
type role struct {
	Why        string // a part of why
	ID, TFName string // in CloudFormation and in Terraform
	Service    string // that takes the role
	Statements []statement
}

// function is what differs between a deployment's functions, with a role and a log
// group for each. They have the same zip and the same environment.
type function struct {
	deployment
	Why, WhyLogs      string // parts of why
	Prefix            string // of ids in CloudFormation
	TFName            string
	Name, Description string
	Limit             time.Duration // of one invocation
	Role              role
}

// LogGroup is the name that Lambda gives a function's log group.
func (f function) LogGroup() string { return "/aws/lambda/" + f.Name }

// StreamFunction is the function that applies the stream.
func (d deployment) StreamFunction() function {
	return function{d, "function", "logs", "", "dynamill", d.FunctionName(), "dynamill for table " + d.Table, d.Timeout,
		role{"role", "Role", "function", "lambda", d.Statements}}
}

// ReplayFunction is the function that replays.
func (d deployment) ReplayFunction() function {
	return function{d, "replay function", "replay logs", "Replay", "replay", d.ReplayName(),
		"replays table " + d.Table + " with dynamill", replayTimeout,
		role{"replay role", "ReplayRole", "replay", "lambda", d.replayStatements()}}
}

// MachineRole is that of the state machine.
func (d deployment) MachineRole() role {
	return role{"machine role", "ReplayMachineRole", "replay_machine", "states", d.machineStatements()}
}

// StreamPattern is what an ARN of the table's stream looks like.
func (d deployment) StreamPattern() string {
	return `^arn:[a-z-]+:dynamodb:[a-z0-9-]+:[0-9]{12}:table/` + regexp.QuoteMeta(d.Table) + `/stream/.+$`
}

// HowToFindStream is the command that says the ARN.
func (d deployment) HowToFindStream() string {
	return "aws dynamodb describe-table --table-name " + d.Table + " --query Table.LatestStreamArn --output text"
}

// Head begins a template that a command makes.
func (d deployment) Head(command string) string {
	return "dynamill for table " + d.Table + ", made by `dynamill infra " + command + "` from the rule file. Change the rules or the\n" +
		"command's flags and make it anew rather than editing it: filters and permissions follow from the rules."
}

// bucketPrefixMax is Terraform's: it adds 26 characters to make a name of at most 63.
const bucketPrefixMax = 37

// BucketPrefix is the beginning of the bucket's name.
func (d deployment) BucketPrefix() string { return bucketPrefix(d.FunctionName()) }

// bucketPrefix makes the beginning of a bucket's name from that of a function.
func bucketPrefix(function string) string {
	name := strings.Map(func(r rune) rune {
		if r == '_' {
			return '-'
		}
		return unicode.ToLower(r)
	}, function)
	name = strings.Trim(name[:min(len(name), bucketPrefixMax-len("-failed-"))], "-")
	return name + "-failed-"
}

// WhyMapping says why there is a mapping, and why it may have no filter.
func (d deployment) WhyMapping() string {
	if len(d.Filters) == 0 {
		return why["mapping"] + "\n" + why["no filters"]
	}
	return why["mapping"]
}

// why says why each part is there, once for all formats.
var why = map[string]string{
	"state table": "dynamill's memory: ledger, accumulators, references, tasks, parked records (docs/state-table.md). Losing it means " +
		"seeding anew, so it is protected.",
	"bucket": "Late batches: those that Lambda gave up, with their records. Objects mean changes that are not derived: an alarm " +
		"watches for them.",
	"logs":     "The function's log; its metrics are in it, too.",
	"role":     "Just what these rules need.",
	"function": "The engine.",
	"mapping": "The table's stream to the function. A batch that fails is cut in two, retried from its first failed record on, and " +
		"kept in the bucket when it is too old, before the stream would drop it.",
	"filters": "Derived from the keys of every entity that a rule reads or writes: other records do not invoke the function and cost " +
		"nothing.",
	"no filters":  "No filter: the entities' keys have too little fixed text to tell records that concern no rule.",
	"schedule":    "Every minute: what is due without a record, such as the rest of a large fan-out.",
	"invocations": "The next minute's invocation is the retry.",
	"metrics":     "Counts of records read, filtered out and failed, for the alarms and the dashboard.",
	"replay logs": "The log of the function that replays.",
	"replay role": "What a replay does to the tables, and nothing of the stream.",
	"replay function": "The engine once more, for replays: with more time for an invocation, and apart from the stream's, whose " +
		"concurrency it leaves alone.",
	"machine role": "Calls that function, and starts an execution of its own for each piece.",
	"machine":      "A replay: pieces of the table or of an export, many at once, until nothing is left (docs/replay.md).",
}
