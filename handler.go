package dynamill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/dynamill/dynamill/internal/awscall"
	"github.com/dynamill/dynamill/internal/handlers"
	"github.com/dynamill/dynamill/projections"
	"github.com/dynamill/dynamill/rules"
)

// S3Client is what a Handler needs of S3; *s3.Client satisfies it.
type S3Client interface {
	GetObject(ctx context.Context, in *s3.GetObjectInput, options ...func(*s3.Options)) (*s3.GetObjectOutput, error)
	ListObjectsV2(ctx context.Context, in *s3.ListObjectsV2Input, options ...func(*s3.Options)) (*s3.ListObjectsV2Output, error)
}

// HandlerConfig says what a Handler works on. Rules or ReadRules, and AWS or Tables are required;
// the zero value of every other field stands for its default.
type HandlerConfig struct {
	// AWS is the configuration that clients are made of: region, credentials, endpoint.
	AWS aws.Config
	// Tables and S3 are used instead of AWS, such as clients that a program has already. S3 is for
	// late batches and for replays of exports, which a Handler without it refuses.
	Tables projections.Client
	S3     S3Client

	Table      string // default: the name in the rules
	StateTable string // of dynamill's own; created if missing; default: Table and "-dynamill"
	Rules      *rules.Set
	// ReadRules is used instead of Rules. It is called again after newer rules were registered: Lambda
	// keeps an environment for hours, and one with old rules refuses every record.
	ReadRules func(context.Context) (*rules.Set, error)
	// FanOutMax is how many children of a parent are written together with its record. The others
	// wait for an invocation with the payload {"dynamill":"tasks"}. Default 1,000.
	FanOutMax int
	// BesideRun leaves out the rules that count by stream position: Lambda does not tell of which shard a record is. A process with
	// Config.BesideFunction keeps them. Without it, such rules are refused.
	BesideRun bool
	// Worker names the execution environment, such as AWS_LAMBDA_LOG_STREAM_NAME; default: random.
	Worker string

	Logger *slog.Logger // default slog.Default(); each line of an invocation has its requestId
	// Metrics takes a line for each invocation in CloudWatch's embedded metric format. On Lambda,
	// os.Stdout makes metrics of them. Default: none.
	Metrics io.Writer
}

// complete checks a configuration and fills in the defaults.
func (c *HandlerConfig) complete() error {
	err := errors.Join(
		require(c.Rules != nil || c.ReadRules != nil, "Rules is missing: rules.Load reads a rule file"),
		require(c.Tables != nil || c.AWS.Region != "", "AWS has no region, and Tables is missing"),
		require(c.FanOutMax >= 0, "FanOutMax must not be negative"),
	)
	if err != nil {
		return fmt.Errorf("config of NewHandler: %w", err)
	}
	if c.ReadRules == nil {
		set := c.Rules
		c.ReadRules = func(context.Context) (*rules.Set, error) { return set, nil }
	}
	if c.Tables == nil {
		c.Tables = dynamodb.NewFromConfig(c.AWS, awscall.BoundRequests)
	}
	if c.S3 == nil && c.AWS.Region != "" {
		c.S3 = s3.NewFromConfig(c.AWS)
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Metrics == nil {
		c.Metrics = io.Discard
	}
	return nil
}

// pieceFirst is how many records of a batch the engine is given first: as many as it reads items at once.
const pieceFirst = 100

// Handler answers the invocations of one execution environment of a Lambda function. It has the form
// of lambda.Handler of aws-lambda-go, and is safe for concurrent use.
type Handler struct {
	cfg HandlerConfig

	mu      sync.Mutex
	current *instance // nil until it is opened
}

// NewHandler makes a Handler ready for its first invocation. Its errors are those of Follow that have
// to do with the table and the rules. If the rules differ from those in force it returns a Handler that
// waits: invocations fail with a *projections.RulesChangedError until one begins a replay that may
// change the rules.
//
// The event source mapping of a stream needs ReportBatchItemFailures among its function response types: without it, Lambda treats a
// partly done batch as done.
//
// New rules are not seeded by the invocations of a stream: `dynamill replay`, or a state machine that
// invokes the Handler, seeds them (docs/lambda.md).
func NewHandler(ctx context.Context, cfg HandlerConfig) (*Handler, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	h := &Handler{cfg: cfg}
	_, err := h.ready(ctx)
	if changed := new(*projections.RulesChangedError); errors.As(err, changed) {
		cfg.Logger.Error("the rules differ from those in force: the function waits for a replay that may change them", "error", err.Error())
		return h, nil
	}
	if err != nil {
		return nil, err
	}
	return h, nil
}

// Invoke answers one invocation and writes its metrics. docs/lambda.md lists the payloads: events of the
// table's stream, late batches, tasks, and steps of a replay.
func (h *Handler) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	started := time.Now()
	current, err := h.ready(ctx)
	if changed := new(*projections.RulesChangedError); errors.As(err, changed) && handlers.ChangesRules(payload) {
		current, err = h.openAgreed(ctx)
	}
	if err != nil {
		return nil, err
	}
	answer, err := current.handler.Invoke(ctx, payload)
	requestID := ""
	if lc, ok := lambdacontext.FromContext(ctx); ok {
		requestID = lc.AwsRequestID
	}
	if failed := current.noteMissing(ctx); failed != nil && ctx.Err() == nil { // for `status` alone
		h.cfg.Logger.WarnContext(ctx, "recording the missing targets failed", "error", failed.Error())
	}
	failed := (err != nil || handlers.LeavesOpen(answer)) && !handlers.IsReplay(payload) // a state machine reports its own failures
	if err := current.meter.Report(requestID, current.Stats(), failed, time.Since(started)); err != nil {
		h.cfg.Logger.ErrorContext(ctx, "writing the metrics failed", "error", err.Error())
	}
	return answer, err
}
