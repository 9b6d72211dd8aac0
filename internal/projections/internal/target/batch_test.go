package target_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/awscall"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/projections/internal/target"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/internal/sim/dynamosim"
)

// world is a simulated table with items 0, 1, ... and a writer of them.
type world struct {
	sim    *dynamosim.Sim
	writer *target.Writer
	log    *strings.Builder
	rule   *plan.Binding
}

func newWorld(t *testing.T, items int, options dynamosim.Options) *world {
	t.Helper()
	rule := &plan.Binding{ID: "r", Stamp: "_dm_r", Rule: &rules.Rule{Name: "r"}}
	w := &world{sim: dynamosim.New(options), log: &strings.Builder{}, rule: rule}
	if _, err := w.sim.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("app"), BillingMode: ddb.BillingModePayPerRequest,
		AttributeDefinitions: []ddb.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: ddb.ScalarAttributeTypeS}},
		KeySchema:            []ddb.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: ddb.KeyTypeHash}},
	}); err != nil {
		t.Fatal(err)
	}
	for i := range items {
		if _, err := w.sim.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("app"), Item: table.Row{
			"pk": table.Text(fmt.Sprint(i)), "n": table.Number(int64(i))}}); err != nil {
			t.Fatal(err)
		}
	}
	tables := table.New(w.sim, "app", "app-dynamill")
	tables.Schema = table.Schema{PartitionKey: "pk", PartitionKind: change.KindString}
	tables.Logger, tables.BatchMin = slog.New(slog.NewTextHandler(w.log, nil)), 5
	w.writer = &target.Writer{Tables: tables, ParkRefused: func(context.Context, *plan.Binding, change.Key, error) error { return nil }}
	return w
}

// set is a write of an item on condition that it holds n.
func (w *world) set(item, n int) *target.Write {
	t := target.On(w.rule, "writing", change.Key{Partition: fmt.Sprint(item)})
	t.Put("seen", change.Bool(true))
	t.Condition = t.Format("%n = %v", "n", table.Number(int64(n)))
	return t
}

func (w *world) value(t *testing.T, item int, name string) ddb.AttributeValue {
	t.Helper()
	out, err := w.sim.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("app"), Key: table.Row{"pk": table.Text(fmt.Sprint(item))}})
	if err != nil {
		t.Fatal(err)
	}
	return out.Item[name]
}

func TestWritesGoOutInBatchesAndAreJudgedOneByOne(t *testing.T) {
	w := newWorld(t, 60, dynamosim.Options{})
	before := w.sim.Usage()
	lost := 0
	ended := make([]target.Outcome, 60)
	errs := w.writer.Every(t.Context(), 60, func(ctx context.Context, to target.Sender, i int) (err error) {
		n := i
		if i%20 == 3 {
			n = -1 // not what the item holds
		}
		var current change.Image
		ended[i], current, err = to.Write(ctx, w.set(i, n))
		if ended[i] == target.RaceLost && !current.Lookup("n").Equal(change.Number(fmt.Sprint(i))) {
			t.Errorf("item %d: lost to %v, want the item", i, current)
		}
		return err
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for i, e := range ended {
		want := target.Written
		if i%20 == 3 {
			want, lost = target.RaceLost, lost+1
		}
		if e != want || (w.value(t, i, "seen") != nil) != (want == target.Written) {
			t.Errorf("item %d: outcome %d, want %d", i, e, want)
		}
	}
	used := w.sim.Usage().Sub(before).Requests
	if used["BatchExecuteStatement"] != 3 || used["UpdateItem"] != 0 || lost != 3 {
		t.Errorf("requests: %v, want 3 batches", used)
	}
}

func TestFewWritesAndSecondWritesOfOneItemGoOutAlone(t *testing.T) {
	w := newWorld(t, 10, dynamosim.Options{})
	write := func(n int, item func(i int) int) map[string]int {
		before := w.sim.Usage()
		if err := errors.Join(w.writer.Every(t.Context(), n, func(ctx context.Context, to target.Sender, i int) error {
			ended, _, err := to.Write(ctx, w.set(item(i), item(i)))
			if ended != target.Written {
				t.Errorf("write %d: outcome %d", i, ended)
			}
			return err
		})...); err != nil {
			t.Fatal(err)
		}
		return w.sim.Usage().Sub(before).Requests
	}
	if used := write(4, func(i int) int { return i }); used["UpdateItem"] != 4 || used["BatchExecuteStatement"] != 0 {
		t.Errorf("4 writes: %v", used)
	}
	if used := write(6, func(i int) int { return min(i, 4) }); used["BatchExecuteStatement"] != 1 || used["UpdateItem"] != 1 {
		t.Errorf("6 writes of 5 items: %v", used)
	}
}

// TestBatchesStopWhereTheyAreRefused: a missing permission, an endpoint that does not know them, and one that takes no such statement.
func TestBatchesStopWhereTheyAreRefused(t *testing.T) {
	for name, refuse := range map[string]func(in *dynamodb.BatchExecuteStatementInput) error{
		"denied": func(*dynamodb.BatchExecuteStatementInput) error {
			return &smithy.GenericAPIError{Code: "AccessDeniedException"}
		},
		"unknown": func(*dynamodb.BatchExecuteStatementInput) error {
			return &smithy.GenericAPIError{Code: "UnknownOperationException"}
		},
		"invalid": func(in *dynamodb.BatchExecuteStatementInput) error {
			for i := range in.Statements {
				in.Statements[i].Statement = aws.String("UPDATE what it cannot read")
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 30, dynamosim.Options{Before: func(_ string, in any) error {
				if batch, ok := in.(*dynamodb.BatchExecuteStatementInput); ok {
					return refuse(batch)
				}
				return nil
			}})
			for round := range 2 {
				before := w.sim.Usage()
				if err := errors.Join(w.writer.Every(t.Context(), 20, func(ctx context.Context, to target.Sender, i int) error {
					ended, _, err := to.Write(ctx, w.set(i, i))
					if ended != target.Written {
						t.Errorf("item %d: outcome %d", i, ended)
					}
					return err
				})...); err != nil {
					t.Fatal(err)
				}
				if used := w.sim.Usage().Sub(before).Requests; used["UpdateItem"] != 20 || round == 1 && used["BatchExecuteStatement"] != 0 {
					t.Errorf("round %d: %v", round, used)
				}
			}
			if n := strings.Count(w.log.String(), "dynamodb:PartiQLUpdate"); n != 1 || !strings.Contains(w.log.String(), "api error ") {
				t.Errorf("said %d times, want it once with the error:\n%s", n, w.log)
			}
		})
	}
}

func TestFullItemsDoNotEndBatches(t *testing.T) {
	w := newWorld(t, 40, dynamosim.Options{})
	for i := range 20 {
		if _, err := w.sim.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("app"), Item: table.Row{
			"pk": table.Text(fmt.Sprint(i)), "n": table.Number(int64(i)), "big": table.Text(strings.Repeat("x", 399<<10))}}); err != nil {
			t.Fatal(err)
		}
	}
	write := func(first int, want target.Outcome) map[string]int {
		before := w.sim.Usage()
		if err := errors.Join(w.writer.Every(t.Context(), 20, func(ctx context.Context, to target.Sender, i int) error {
			one := w.set(first+i, first+i)
			one.Put("name", change.String(strings.Repeat("y", 2<<10)))
			ended, _, err := to.Write(ctx, one)
			if ended != want {
				t.Errorf("item %d: outcome %d, want %d", first+i, ended, want)
			}
			return err
		})...); err != nil {
			t.Fatal(err)
		}
		return w.sim.Usage().Sub(before).Requests
	}
	if used := write(0, target.Refused); used["BatchExecuteStatement"] != 1 || used["UpdateItem"] != 20 {
		t.Errorf("full items: %v", used)
	}
	if used := write(20, target.Written); used["BatchExecuteStatement"] != 1 || used["UpdateItem"] != 0 {
		t.Errorf("small items afterwards: %v; log: %s", used, w.log)
	}
}

// TestNamesInStatements has rules write attributes with names of many forms: those that look like placeholders go out alone.
func TestNamesInStatements(t *testing.T) {
	for name, batches := range map[string]int{"größe": 1, `od"d ?`: 1, "a.b": 1, "#n0": 0, ":v0": 0} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 20, dynamosim.Options{})
			before := w.sim.Usage()
			if err := errors.Join(w.writer.Every(t.Context(), 20, func(ctx context.Context, to target.Sender, i int) error {
				one := w.set(i, i)
				one.Put(name, change.Bool(true))
				ended, _, err := to.Write(ctx, one)
				if ended != target.Written || w.value(t, i, name) == nil {
					t.Errorf("item %d: outcome %d", i, ended)
				}
				return err
			})...); err != nil {
				t.Fatal(err)
			}
			used := w.sim.Usage().Sub(before).Requests
			if used["BatchExecuteStatement"] != batches || used["UpdateItem"] != 20*(1-batches) || w.log.Len() > 0 {
				t.Errorf("%v; log: %s", used, w.log)
			}
		})
	}
}

// throttling throttles every second statement of its first batches, and notes how many requests are under way.
type throttling struct {
	*dynamosim.Sim
	batches, now, most atomic.Int64
}

func (c *throttling) underWay() (end func()) {
	c.most.Store(max(c.most.Load(), c.now.Add(1)))
	time.Sleep(5 * time.Millisecond)
	return func() { c.now.Add(-1) }
}

func (c *throttling) BatchExecuteStatement(ctx context.Context, in *dynamodb.BatchExecuteStatementInput,
	_ ...func(*dynamodb.Options)) (*dynamodb.BatchExecuteStatementOutput, error) {
	defer c.underWay()()
	if c.batches.Add(-1) < 0 {
		return c.Sim.BatchExecuteStatement(ctx, in)
	}
	out := &dynamodb.BatchExecuteStatementOutput{}
	for i, st := range in.Statements {
		if i%2 == 0 {
			out.Responses = append(out.Responses, ddb.BatchStatementResponse{
				Error: &ddb.BatchStatementError{Code: ddb.BatchStatementErrorCodeEnumThrottlingError}})
			continue
		}
		one, err := c.Sim.BatchExecuteStatement(ctx, &dynamodb.BatchExecuteStatementInput{Statements: []ddb.BatchStatementRequest{st}})
		if err != nil {
			return nil, err
		}
		out.Responses = append(out.Responses, one.Responses...)
	}
	return out, nil
}

func (c *throttling) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput,
	_ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	defer c.underWay()()
	return c.Sim.UpdateItem(ctx, in)
}

// TestThrottledStatementsGoOutAgainInBatches has the table throttle half of the statements of its first batches.
func TestThrottledStatementsGoOutAgainInBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 50, dynamosim.Options{})
		c := &throttling{Sim: w.sim}
		c.batches.Store(2)
		w.writer.Tables.Client = c
		bound, began, before := w.writer.Tables.AtOnce(), time.Now(), w.sim.Usage()
		if err := errors.Join(w.writer.Every(t.Context(), 50, func(ctx context.Context, to target.Sender, i int) error {
			ended, _, err := to.Write(ctx, w.set(i, i))
			if ended != target.Written {
				t.Errorf("item %d: outcome %d", i, ended)
			}
			return err
		})...); err != nil {
			t.Fatal(err)
		}
		if now := w.writer.Tables.AtOnce(); now != bound/4 {
			t.Errorf("%d requests may go side by side after two that were throttled, before %d", now, bound)
		}
		if used := w.sim.Usage().Sub(before).Requests; used["UpdateItem"] != 0 || time.Since(began) < 20*time.Millisecond {
			t.Errorf("%v in %v, want no single writes, and a pause", used, time.Since(began))
		}
		if got := w.writer.Tables.WrittenFor()["r"].Writes; got != 50 {
			t.Errorf("%d accepted writes, want 50", got)
		}
	})
}

func TestStatementsThatStayThrottledFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 10, dynamosim.Options{})
		c := &throttling{Sim: w.sim}
		c.batches.Store(1 << 30)
		w.writer.Tables.Client = c
		failed := 0
		for i, err := range w.writer.Every(t.Context(), 10, func(ctx context.Context, to target.Sender, i int) error {
			_, _, err := to.Write(ctx, w.set(i, i))
			return err
		}) {
			if err == nil {
				continue
			}
			failed++
			if awscall.Classify(err) != awscall.Retry || w.value(t, i, "seen") != nil {
				t.Errorf("item %d: %v", i, err)
			}
		}
		if failed != 1 { // of each batch, the first one
			t.Errorf("%d writes failed", failed)
		}
	})
}

// TestCallsAndTheirWritesAreBounded has each call send a request before its write, and has batches refused.
func TestCallsAndTheirWritesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 200, dynamosim.Options{Before: func(op string, _ any) error {
			if op == "BatchExecuteStatement" {
				return &smithy.GenericAPIError{Code: "AccessDeniedException"}
			}
			return nil
		}})
		c := &throttling{Sim: w.sim}
		w.writer.Tables.Client = c
		bound := w.writer.Tables.AtOnce()
		if err := errors.Join(w.writer.Every(t.Context(), 200, func(ctx context.Context, to target.Sender, i int) error {
			c.underWay()() // as a read would be
			_, _, err := to.Write(ctx, w.set(i, i))
			return err
		})...); err != nil {
			t.Fatal(err)
		}
		if most := int(c.most.Load()); most > w.writer.Tables.AtOnce() || most < bound/2 {
			t.Errorf("%d requests were under way together, first bound %d, now %d", most, bound, w.writer.Tables.AtOnce())
		}
	})
}

func TestABatchThatWroteNothingCountsNothing(t *testing.T) {
	w := newWorld(t, 10, dynamosim.Options{})
	if err := errors.Join(w.writer.Every(t.Context(), 10, func(ctx context.Context, to target.Sender, i int) error {
		_, _, err := to.Write(ctx, w.set(i, -1))
		return err
	})...); err != nil {
		t.Fatal(err)
	}
	if got := w.writer.Tables.WrittenFor(); len(got) > 0 {
		t.Errorf("accepted writes: %v, want none", got)
	}
}
