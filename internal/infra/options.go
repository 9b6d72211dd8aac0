package infra

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/dynamill/dynamill/internal/rules"
)

// Options are what a template needs beside the rules. The zero value of every
// field but Table stands for a default that works.
type Options struct {
	Table      string // the user's table; required
	StateTable string // "" for Table with "-dynamill" behind it
	// Code is, for SAM and Terraform, the path of the zip with the executable `bootstrap` and the rule file; "" for where
	// `make lambda` leaves it. CloudFormation's is a parameter.
	Code      string
	RulesFile string // name of the rule file in the zip; "" for dynamill.yaml
	// RulesFrom is where the function reads its rules: s3://bucket/key, ssm:NAME, or the text of the rules, which has a line
	// break; "" for RulesFile in the zip.
	RulesFrom string

	Architecture    string        // arm64 or x86_64; "" for arm64
	MemoryMB        int           // 128 to 10240; 0 for 512
	Timeout         time.Duration // of one invocation: 1 s to 15 min; 0 for 2 min
	BatchSize       int           // records of one invocation: 1 to 10,000; 0 for 1000
	Window          time.Duration // how long a batch may wait to fill: up to 5 min; 0 for none
	Parallelization int           // invocations at once for each shard: 1 to 10; 0 for 1
	AlarmTopic      string        // ARN of the SNS topic that alarms go to; "" leaves it to a parameter
	RetentionDays   int           // of the function's logs, one of the periods that CloudWatch offers; 0 for 30

	Former *rules.Set // rules that these ones replace: the function takes back what they wrote; nil for none

	Replay            bool   // add a state machine that replays the table, and a function that it calls
	ReplayConcurrency int    // pieces of a replay that are worked off at once: 1 to 1000; 0 for 16
	ReplayExports     string // where the exports lie that replays may read, s3://bucket or s3://bucket/prefix; "" for nowhere

	BesideRun      bool // the function leaves out the rules that count by stream position: a process keeps them
	KeepStateTable bool // the state table exists and is left out of the template
	NoBackups      bool // no point-in-time recovery of the state table
}

// The defaults of Options.
const (
	DefaultArchitecture    = "arm64"
	DefaultMemoryMB        = 512
	DefaultTimeout         = 2 * time.Minute
	DefaultBatchSize       = 1000
	DefaultParallelization = 1
	DefaultRetentionDays   = 30
	DefaultRulesFile       = "dynamill.yaml"

	DefaultReplayConcurrency = 16
)

// Bounds (Lambda developer guide: "Lambda quotas" and "Parameters for DynamoDB
// event source mappings"; CloudWatch Logs API: PutRetentionPolicy).
const (
	memoryMBMin, memoryMBMax = 128, 10240
	timeoutMax               = 15 * time.Minute
	batchSizeMax             = 10_000
	windowMax                = 5 * time.Minute
	parallelizationMax       = 10
	functionNameMax          = 64
	replayConcurrencyMax     = 1000 // what an account's functions may take together, unless AWS was asked for more
)

var retentionPeriods = []int{1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653}

var topicARN = regexp.MustCompile(`^arn:[a-z-]+:sns:[a-z0-9-]+:[0-9]{12}:[a-zA-Z0-9_-]+(\.fifo)?$`)

// complete fills in the defaults and reports every option that AWS would refuse.
func (o Options) complete() (Options, error) {
	o.StateTable = cmp.Or(o.StateTable, o.Table+"-dynamill")
	o.Architecture, o.MemoryMB = cmp.Or(o.Architecture, DefaultArchitecture), cmp.Or(o.MemoryMB, DefaultMemoryMB)
	o.Code, o.RulesFile = cmp.Or(o.Code, zipOf(o.Architecture)), cmp.Or(o.RulesFile, DefaultRulesFile)
	o.Timeout, o.BatchSize = cmp.Or(o.Timeout, DefaultTimeout), cmp.Or(o.BatchSize, DefaultBatchSize)
	o.Parallelization, o.RetentionDays = cmp.Or(o.Parallelization, DefaultParallelization), cmp.Or(o.RetentionDays, DefaultRetentionDays)
	o.ReplayConcurrency = cmp.Or(o.ReplayConcurrency, DefaultReplayConcurrency)
	var found []error
	require := func(ok bool, message string, args ...any) {
		if !ok {
			found = append(found, fmt.Errorf(message, args...))
		}
	}
	require(rules.IsTableName(o.Table), "the table's name %q is not one that DynamoDB allows", o.Table)
	require(rules.IsTableName(o.StateTable) || !rules.IsTableName(o.Table),
		"the state table's name %q is not one that DynamoDB allows", o.StateTable)
	require(o.StateTable != o.Table, "the state table cannot be the table itself, %s", o.Table)
	require(o.Architecture == "arm64" || o.Architecture == "x86_64", "the architecture %q is neither arm64 nor x86_64", o.Architecture)
	require(o.MemoryMB >= memoryMBMin && o.MemoryMB <= memoryMBMax, "%d MB of memory: Lambda offers %d to %d", o.MemoryMB, memoryMBMin,
		memoryMBMax)
	require(wholeSeconds(o.Timeout, time.Second, timeoutMax), "a timeout of %v: Lambda takes whole seconds, up to %v", o.Timeout, timeoutMax)
	require(o.BatchSize >= 1 && o.BatchSize <= batchSizeMax, "a batch size of %d: Lambda takes 1 to %d", o.BatchSize, batchSizeMax)
	require(wholeSeconds(o.Window, 0, windowMax), "a batching window of %v: Lambda takes whole seconds, up to %v", o.Window, windowMax)
	require(o.Parallelization >= 1 && o.Parallelization <= parallelizationMax,
		"a parallelization of %d: Lambda takes 1 to %d", o.Parallelization, parallelizationMax)
	require(slices.Contains(retentionPeriods, o.RetentionDays), "a retention of %d days: CloudWatch offers %v", o.RetentionDays,
		retentionPeriods)
	require(o.AlarmTopic == "" || topicARN.MatchString(o.AlarmTopic), "the alarm topic %q is not the ARN of an SNS topic", o.AlarmTopic)
	require(o.ReplayConcurrency >= 1 && o.ReplayConcurrency <= replayConcurrencyMax,
		"a replay of %d pieces at once: want 1 to %d", o.ReplayConcurrency, replayConcurrencyMax)
	require(o.Replay || o.ReplayExports == "", "the exports %s are for a replay, which is not asked for", o.ReplayExports)
	found = append(found, o.checkRuleSource(), o.checkExports())
	return o, errors.Join(found...)
}

// zipOf is where `make lambda` leaves the zip for an architecture, under Go's name of it.
func zipOf(architecture string) string {
	if architecture == "x86_64" {
		architecture = "amd64"
	}
	return "bin/lambda/dynamill-" + architecture + ".zip"
}

func wholeSeconds(d, least, most time.Duration) bool {
	return d >= least && d <= most && d%time.Second == 0
}

// FunctionName is the state table's name as far as Lambda allows it: a function's name has no dots, and at most 64 characters.
// What is cut or replaced is made up for by a digest, so that two tables never share a function.
func (o Options) FunctionName() string { return functionNameOf(o.StateTable) }

// ReplayName is the name of the function that replays, and of the state machine that calls it.
func (o Options) ReplayName() string { return functionNameOf(o.StateTable + "-replay") }

func functionNameOf(text string) string {
	name := strings.ReplaceAll(text, ".", "-")
	if name == text && len(name) <= functionNameMax {
		return name
	}
	sum := sha256.Sum256([]byte(text))
	digest := "-" + hex.EncodeToString(sum[:4])
	return name[:min(len(name), functionNameMax-len(digest))] + digest
}
