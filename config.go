package dynamill

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/dynamill/dynamill/internal/awscall"
	"github.com/dynamill/dynamill/internal/awserror"
	"github.com/dynamill/dynamill/internal/following"
	engine "github.com/dynamill/dynamill/internal/projections"
	compiled "github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/projections"
	"github.com/dynamill/dynamill/rules"
	"github.com/dynamill/dynamill/streamreader"
)

// Config says what Follow follows and how. Table and Rules are required, and AWS or both clients;
// the zero value of every other field stands for its default.
type Config struct {
	// AWS is the configuration that clients are made of: region, credentials, endpoint.
	AWS aws.Config
	// Tables and Streams are used instead of AWS, such as clients that a program has already.
	Tables  projections.Client
	Streams streamreader.Streams

	Table      string     // 3 to 255 characters; its stream must carry both images
	Rules      *rules.Set // of rules.Load
	StateTable string     // of dynamill's own; created if missing; default: Table and "-dynamill"
	LeaseTable string     // of leases and checkpoints; created if missing; default: StateTable and "-leases"

	// BesideFunction applies records only to the rules that count by stream position: a function keeps the others. A Follow without it
	// refuses the checkpoints of one with it.
	BesideFunction bool
	// Drain has Follow return nil once new rules are seeded and every change up to then is applied.
	Drain bool
	// Worker names this process. No other process that follows the table may have the same name at
	// the same time. Default: the host's name and a random part.
	Worker string
	// LeaseTerm is the time after which other processes take over the shards of this one if it is
	// not heard of. From LeaseTermMin to LeaseTermMax; default LeaseTermDefault.
	LeaseTerm time.Duration
	// PollInterval is the longest pause between two reads of a shard that has no records. A shard that had one in the
	// last 5 s pauses 250 ms at most. From PollIntervalMin to PollIntervalMax; default PollIntervalDefault. A
	// Drain keeps to the default.
	PollInterval time.Duration
	// Budget is how many write units per second this process takes, of the table and the state table together; 0: no bound.
	// What the stream's records need is written at once, and counts. Seeding and large fan-outs get the units that
	// are left, and at least a tenth. Up to a second's units may go at once.
	Budget int
	// FanOutMax is how many children of a parent are written together with its record; fewer if Budget has
	// fewer units left. The others follow beside the stream. Default 1,000.
	FanOutMax int
	// Archive is a folder that takes every record in files, for replays; default: none.
	Archive     string
	ArchiveGzip bool // packs the files of Archive

	// Logger takes what an operator should know; default slog.Default().
	Logger *slog.Logger
	// Started is called once, before the first record is read. The Running tells of the progress,
	// for metrics and displays, for as long as it is kept.
	Started func(*Running)
}

// The default and the bounds of LeaseTerm. A lease is renewed three times in a term: below a second a slow answer would end
// it. The shards of a dead process are not read for a term: an hour leaves 23 of the 24 hours that the stream keeps records.
const (
	LeaseTermDefault = 10 * time.Second
	LeaseTermMin     = time.Second
	LeaseTermMax     = time.Hour
)

// The default and the bounds of PollInterval. GetRecords takes some milliseconds. A shard that is not read for minutes
// looks silent to those who watch the process.
const (
	PollIntervalDefault = time.Second
	PollIntervalMin     = 10 * time.Millisecond
	PollIntervalMax     = time.Minute
)

// complete checks a configuration and fills in the defaults.
func (c *Config) complete() error {
	if c.Rules != nil {
		c.Table = cmp.Or(c.Table, c.Rules.Table)
	}
	err := errors.Join(
		require(c.Rules != nil, "Rules is missing: rules.Load reads a rule file"),
		require(c.Table != "", "Table is missing"),
		require(c.Tables != nil && c.Streams != nil || c.AWS.Region != "", "AWS has no region, and Tables or Streams is missing"),
		require(c.LeaseTerm == 0 || c.LeaseTerm >= LeaseTermMin && c.LeaseTerm <= LeaseTermMax, "LeaseTerm is not between 1 s and 1 h"),
		require(c.PollInterval == 0 || c.PollInterval >= PollIntervalMin && c.PollInterval <= PollIntervalMax,
			"PollInterval is not between 10 ms and 1 min"),
		require(c.Budget >= 0 && c.FanOutMax >= 0, "Budget and FanOutMax must not be negative"),
		require(!c.ArchiveGzip || c.Archive != "", "ArchiveGzip has no meaning without Archive"),
	)
	if err != nil {
		return fmt.Errorf("config of Follow: %w", err)
	}
	c.LeaseTerm = cmp.Or(c.LeaseTerm, LeaseTermDefault)
	c.PollInterval = cmp.Or(c.PollInterval, PollIntervalDefault)
	if c.Drain { // a drain counts empty polls, and must leave DynamoDB time to show the last records
		c.PollInterval = PollIntervalDefault
	}
	c.StateTable = cmp.Or(c.StateTable, c.Table+following.StateSuffix)
	c.LeaseTable = cmp.Or(c.LeaseTable, c.StateTable+following.LeaseSuffix)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	c.connect()
	return nil
}

// require returns a problem, unless all is well.
func require(ok bool, problem string) error {
	if ok {
		return nil
	}
	return errors.New(problem)
}

// compile gives the engine a rule set of its own, which the engine completes with the types of the table's keys.
func compile(set *rules.Set) (*compiled.Set, error) {
	return compiled.Load(set.Filename(), []byte(set.Text()), engine.Kinds)
}

// connect makes the clients that are not given.
func (c *Config) connect() {
	if c.Tables != nil && c.Streams != nil {
		return
	}
	from := c.AWS.Copy()
	awserror.Attach(&from, awserror.Place{Table: c.Table, Where: from.Region, Region: from.Region, Endpoint: aws.ToString(from.BaseEndpoint)})
	if c.Tables == nil {
		c.Tables = dynamodb.NewFromConfig(from, awscall.BoundRequests)
	}
	if c.Streams == nil {
		c.Streams = dynamodbstreams.NewFromConfig(from)
	}
}

// placeOf is where the calls of a client go.
func placeOf(client projections.Client, table string) awserror.Place {
	p := awserror.Place{Table: table, Where: "its region"}
	if c, ok := client.(*dynamodb.Client); ok {
		options := c.Options()
		p.Region, p.Endpoint, p.Where = options.Region, aws.ToString(options.BaseEndpoint), options.Region
		if p.Endpoint != "" {
			p.Where += " (endpoint " + p.Endpoint + ")"
		}
	}
	return p
}

// asFields says for a program what the engine's remedies name by the command line's flags.
var asFields = strings.NewReplacer(
	"--table", "Config.Table", "--state-table", "Config.StateTable", "--region", "Config.AWS.Region", "--endpoint", "Config.AWS.BaseEndpoint",
)

// inProgram returns an error of the engine as a program meets it: the remedy of a *projections.SetupError
// names fields of Config, and problems of the rule file are a *rules.Problems.
func inProgram(err error) error {
	var setup *projections.SetupError
	if !errors.As(err, &setup) {
		return rules.AsProblems(err)
	}
	here := *setup
	here.Remedy = asFields.Replace(setup.Remedy)
	return &here
}
