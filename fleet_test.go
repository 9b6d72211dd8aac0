package dynamill

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/replay/objects"
	"github.com/dynamill/dynamill/internal/sim/dynamosim"
	"github.com/dynamill/dynamill/internal/sim/lambdatest"
	"github.com/dynamill/dynamill/rules"
)

// fleet is a function on Lambda, within a synctest bubble: environments that take
// one invocation at a time, on a simulated table whose answers take some time.
type fleet struct {
	testing.TB
	sim     *dynamosim.Sim
	config  HandlerConfig
	rules   string // the function's rule file
	exports objects.S3Client
	limit   time.Duration // of an invocation
	trouble bool          // things go wrong
	refuse  func(op string, input any) error

	mu          sync.Mutex
	dice        *rand.Rand
	idle        []*environment
	invocations int
	fates       map[string]int
}

// environment is one that is alive until it is killed: from then on nothing it does has an effect.
type environment struct {
	*fleet
	f    *Handler
	dead bool
	left int // calls until it is killed; 0 for never
}

var errKilled = errors.New("the environment was killed")

func newFleet(t testing.TB, sim *dynamosim.Sim, text string, seed uint64) *fleet {
	return &fleet{
		TB: t, sim: sim, config: HandlerConfig{Table: "app", StateTable: "app-dynamill"}, rules: text, limit: time.Minute,
		dice: rand.New(rand.NewPCG(seed, 0)), fates: map[string]int{},
	}
}

// fatesInTurn are what befalls invocations, one after the other. Beside them a request in 200 is throttled.
var fatesInTurn = []string{"", "throttled", "", "killed", "", "short of time", "killed", "answer lost"}

func (l *fleet) fate() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.invocations++
	if !l.trouble {
		return ""
	}
	return fatesInTurn[l.invocations%len(fatesInTurn)]
}

func (l *fleet) draw(n int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dice.IntN(n)
}

func (l *fleet) note(fate string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fates[fate]++
}

func (l *fleet) environment(ctx context.Context) *environment {
	l.mu.Lock()
	if n := len(l.idle); n > 0 {
		e := l.idle[n-1]
		l.idle = l.idle[:n-1]
		l.mu.Unlock()
		return e
	}
	l.mu.Unlock()
	e := &environment{fleet: l}
	cfg, text := l.config, l.rules
	cfg.Tables, cfg.S3, cfg.Logger = line{e}, l.exports, slog.New(slog.DiscardHandler)
	cfg.ReadRules = func(context.Context) (*rules.Set, error) {
		return rules.Load("dynamill.yaml", []byte(text))
	}
	if err := cfg.complete(); err != nil {
		l.Fatal(err)
	}
	e.f = &Handler{cfg: cfg} // which the first invocation opens, so that trouble may befall that
	return e
}

func lambdaError(name, cause string) error {
	return &lambdatest.ExecutionError{Name: name, Cause: cause}
}

// invoke is an invocation, and what may come between.
func (l *fleet) invoke(ctx context.Context, payload []byte) ([]byte, error) {
	fate := l.fate()
	if fate == "throttled" {
		l.note(fate)
		return nil, lambdaError("Lambda.TooManyRequestsException", "no concurrency left")
	}
	e := l.environment(ctx)
	limit := l.limit
	switch fate {
	case "killed":
		e.left = 1 + l.draw(300)
	case "short of time": // it is killed, or answers all the same
		limit = time.Duration(1+l.draw(40)) * time.Millisecond
	}
	working, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	timer := time.AfterFunc(limit, e.kill)
	answer, err := e.f.Invoke(working, payload)
	timer.Stop()
	if e.gone() {
		l.note(fate)
		return nil, lambdaError("Sandbox.Timedout", "killed")
	}
	e.mu.Lock()
	e.left = 0
	l.idle = append(l.idle, e)
	e.mu.Unlock()
	if err != nil {
		kind := reflect.TypeOf(err) // as aws-lambda-go names errors
		if kind.Kind() == reflect.Pointer {
			kind = kind.Elem()
		}
		return nil, lambdaError(kind.Name(), err.Error())
	}
	if fate == "answer lost" {
		l.note(fate)
		return nil, lambdaError("Lambda.SdkClientException", "the connection broke")
	}
	return answer, nil
}

func (e *environment) kill() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.dead = true
}

func (e *environment) gone() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.dead
}

// line is an environment's line to the tables.
type line struct{ *environment }

// through carries a call out, unless the environment is killed before it or its answer is thrown away after it.
func through[I, O any](ctx context.Context, l line, op string, in *I,
	call func(context.Context, *I, ...func(*dynamodb.Options)) (*O, error)) (*O, error) {
	l.mu.Lock()
	dead, took := l.dead, time.Duration(2+l.dice.IntN(8))*time.Millisecond
	throttled := l.trouble && l.dice.IntN(200) == 0
	last := false
	if l.left > 0 {
		l.left--
		last = l.left == 0
	}
	l.mu.Unlock()
	if dead {
		return nil, errKilled
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(took):
	}
	switch {
	case l.gone():
		return nil, errKilled
	case throttled:
		return nil, &ddb.ProvisionedThroughputExceededException{}
	case l.refuse != nil:
		if err := l.refuse(op, in); err != nil {
			return nil, err
		}
	}
	out, err := call(ctx, in)
	if last {
		l.kill()
		return nil, errKilled
	}
	return out, err
}

var _ projections.Client = line{}

func (l line) DescribeTable(ctx context.Context, in *dynamodb.DescribeTableInput,
	_ ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	return through(ctx, l, "DescribeTable", in, l.sim.DescribeTable)
}

func (l line) CreateTable(ctx context.Context, in *dynamodb.CreateTableInput, _ ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput,
	error) {
	return through(ctx, l, "CreateTable", in, l.sim.CreateTable)
}

func (l line) DescribeTimeToLive(ctx context.Context, in *dynamodb.DescribeTimeToLiveInput,
	_ ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error) {
	return through(ctx, l, "DescribeTimeToLive", in, l.sim.DescribeTimeToLive)
}

func (l line) UpdateTimeToLive(ctx context.Context, in *dynamodb.UpdateTimeToLiveInput,
	_ ...func(*dynamodb.Options)) (*dynamodb.UpdateTimeToLiveOutput, error) {
	return through(ctx, l, "UpdateTimeToLive", in, l.sim.UpdateTimeToLive)
}

func (l line) GetItem(ctx context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return through(ctx, l, "GetItem", in, l.sim.GetItem)
}

func (l line) PutItem(ctx context.Context, in *dynamodb.PutItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	return through(ctx, l, "PutItem", in, l.sim.PutItem)
}

func (l line) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput,
	error) {
	return through(ctx, l, "UpdateItem", in, l.sim.UpdateItem)
}

func (l line) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput,
	error) {
	return through(ctx, l, "DeleteItem", in, l.sim.DeleteItem)
}

func (l line) Query(ctx context.Context, in *dynamodb.QueryInput, _ ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	return through(ctx, l, "Query", in, l.sim.Query)
}

func (l line) Scan(ctx context.Context, in *dynamodb.ScanInput, _ ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	return through(ctx, l, "Scan", in, l.sim.Scan)
}

func (l line) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput,
	error) {
	return through(ctx, l, "BatchGetItem", in, l.sim.BatchGetItem)
}

func (l line) BatchExecuteStatement(ctx context.Context, in *dynamodb.BatchExecuteStatementInput,
	_ ...func(*dynamodb.Options)) (*dynamodb.BatchExecuteStatementOutput, error) {
	return through(ctx, l, "BatchExecuteStatement", in, l.sim.BatchExecuteStatement)
}

func (l line) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput,
	_ ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	return through(ctx, l, "TransactWriteItems", in, l.sim.TransactWriteItems)
}
