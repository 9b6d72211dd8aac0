package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/logging"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/handlers"
	"github.com/dynamill/dynamill/projections"
	"github.com/dynamill/dynamill/replay/objects"
	"github.com/dynamill/dynamill/rules"
)

// connectionsMax is how many connections are kept open; the engine writes in parallel.
const connectionsMax = 32

// batchMax is the most records that the engine is given at once. When time runs
// out, what is done of such a piece may not be known to be, and comes again; the
// pieces before it do not. It is as many as the engine reads items at once.
const batchMax = 100

// function answers the invocations of one execution environment.
type function struct {
	settings
	aws     aws.Config
	tables  projections.Client
	exports objects.S3Client // of a replay
	logger  *slog.Logger
	out     io.Writer // takes the metrics

	mu      sync.Mutex
	current *instance // nil until it is opened
}

// instance is an engine under the rules that it was opened with, and all that hangs on it.
type instance struct {
	*projections.Engine
	function *function
	set      *rules.Set
	table    string
	handler  *handlers.Handler
	meter    *meter
	stale    atomic.Bool // newer rules are registered: the engine does nothing any more
	agreed   bool        // it was opened for a replay that is to begin, and has changed rules
}

func newFunction(ctx context.Context, s settings, logger *slog.Logger, out io.Writer) (*function, error) {
	client := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConnsPerHost, t.MaxIdleConns = connectionsMax, connectionsMax
	})
	sdk := logging.LoggerFunc(func(class logging.Classification, format string, args ...any) {
		logger.Debug(fmt.Sprintf(format, args...), "from", "AWS SDK", "class", string(class)) // what matters comes as an error, too
	})
	cfg, err := config.LoadDefaultConfig(ctx, config.WithHTTPClient(client), config.WithLogger(sdk),
		config.WithEC2IMDSClientEnableState(imds.ClientDisabled)) // there is no instance whose role could be asked for
	if err != nil {
		return nil, fmt.Errorf("reading the AWS configuration: %w", err)
	}
	tables := dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
		if s.endpoint != "" {
			o.BaseEndpoint = &s.endpoint
		}
	})
	return &function{settings: s, aws: cfg, tables: tables, exports: s3.NewFromConfig(cfg), logger: logger, out: out}, nil
}

// ready returns the instance, and opens another one where newer rules have been
// registered since. Lambda keeps environments for hours: one whose rules come
// from a parameter would else fail until it is thrown away.
func (f *function) ready(ctx context.Context) (*instance, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.current != nil && !f.current.stale.Load() {
		return f.current, nil
	}
	return f.open(ctx, false)
}

// reopen opens another instance, under the rules as they are now.
func (f *function) reopen(ctx context.Context, changeRules bool) (*instance, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.open(ctx, changeRules)
}

func (f *function) open(ctx context.Context, changeRules bool) (*instance, error) {
	set, err := f.loadRules(ctx, f.aws)
	if err != nil {
		return nil, err
	}
	table := cmp.Or(f.table, set.Table.Name)
	if table == "" {
		return nil, errors.New("no table is named: set DYNAMILL_TABLE, or `name:` under `table:` in the rule file")
	}
	if strings.Contains(table, ":") { // records name their table, not its ARN
		return nil, fmt.Errorf("table %s: give the table's name, not its ARN", table)
	}
	cfg := projections.Config{
		Client: f.tables, Table: table, StateTable: cmp.Or(f.stateTable, table+"-dynamill"), Rules: set,
		Logger: slog.New(handlers.Traced(f.logger.Handler())), Worker: f.logStream, FanOutMax: f.fanOutMax,
	}
	if changeRules { // those that are in force now, and none that come into force meanwhile
		found, err := projections.Compare(ctx, f.tables, cfg.StateTable, set)
		if err != nil {
			return nil, fmt.Errorf("comparing the rules with those in force in table %s: %w", table, err)
		}
		cfg.ChangeRules, cfg.AgreedEpoch = found.Epoch > 0, found.Epoch
	}
	engine, err := projections.Open(ctx, cfg)
	if changed := new(projections.RulesChangedError); errors.As(err, &changed) {
		return nil, changed // a state machine knows it by its type
	}
	if err != nil {
		return nil, fmt.Errorf("starting on table %s: %w", table, remedied(err))
	}
	i := &instance{Engine: engine, function: f, set: set, table: table, meter: &meter{out: f.out, table: table}}
	i.handler, err = handlers.New(handlers.Config{
		Processor: i, Rederiver: i, Parker: parker{engine}, Tasks: i, Objects: lateBatches{f.aws}, Replays: replayer{i},
		Table: table, PartitionKey: set.Table.PartitionKey, SortKey: set.Table.SortKey, Logger: f.logger, BatchMax: batchMax,
	})
	if err != nil {
		return nil, err
	}
	if fresh := engine.Describe().NewRules; len(fresh) > 0 {
		f.logger.Warn("rules are not seeded yet: seed them by `dynamill replay`; until then they show no count or sum", "rules", fresh)
	}
	f.current = i
	return i, nil
}

// Invoke answers one invocation, and writes its metrics.
func (f *function) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	started := time.Now()
	current, err := f.ready(ctx)
	if changed := new(*projections.RulesChangedError); errors.As(err, changed) && handlers.ChangesRules(payload) {
		if current, err = f.reopen(ctx, true); err == nil {
			current.agreed = true
		}
	}
	if err != nil {
		return nil, err
	}
	answer, err := current.handler.Invoke(ctx, payload)
	requestID := ""
	if lc, ok := lambdacontext.FromContext(ctx); ok {
		requestID = lc.AwsRequestID
	}
	if failed := current.RecordMissing(ctx, false); failed != nil && ctx.Err() == nil { // for `status` alone
		f.logger.WarnContext(ctx, "which targets are missing could not be written down", "error", failed.Error())
	}
	if err := current.meter.report(requestID, current.Stats(), err != nil || leavesOpen(answer), time.Since(started)); err != nil {
		f.logger.ErrorContext(ctx, "writing the metrics failed", "error", err.Error())
	}
	return answer, err
}

// leavesOpen reports whether an answer names records that have to come again.
func leavesOpen(answer []byte) bool {
	var partial struct{ BatchItemFailures []json.RawMessage }
	return json.Unmarshal(answer, &partial) != nil || len(partial.BatchItemFailures) > 0
}

// Process, RederiveRecords and WorkTasks are the engine's; they notice when newer rules
// have been registered.

func (i *instance) Process(ctx context.Context, records []change.Record) (int, error) {
	done, err := i.Engine.Process(ctx, records)
	return done, i.noted(err)
}

func (i *instance) RederiveRecords(ctx context.Context, records []change.Record) error {
	return i.noted(i.Engine.RederiveRecords(ctx, records))
}

func (i *instance) WorkTasks(ctx context.Context) (int, error) {
	pieces, err := i.Engine.WorkTasks(ctx)
	return pieces, i.noted(err)
}

func (i *instance) noted(err error) error {
	if errors.Is(err, projections.ErrEpochMoved) {
		i.stale.Store(true)
	}
	return err
}

// parker gives the engine what a handler could not read.
type parker struct{ *projections.Engine }

func (p parker) ParkRecord(ctx context.Context, r handlers.ParkedRecord) error {
	return p.Engine.ParkRecord(ctx, r.ID, r.Code, r.Reason, r.Raw)
}
