package dynamill_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill"
	"github.com/dynamill/dynamill/internal/pace"
	"github.com/dynamill/dynamill/internal/projections/inspect"
	"github.com/dynamill/dynamill/internal/sim/dynamosim"
	"github.com/dynamill/dynamill/internal/sim/worldsize"
)

// streamed is a simulated table with a stream.
func streamed(t *testing.T) *dynamosim.Sim {
	t.Helper()
	sim := dynamosim.New(dynamosim.Options{})
	name := func(attribute string, role types.KeyType) types.KeySchemaElement {
		return types.KeySchemaElement{AttributeName: &attribute, KeyType: role}
	}
	_, err := sim.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("app"), BillingMode: types.BillingModePayPerRequest,
		KeySchema: []types.KeySchemaElement{name("pk", types.KeyTypeHash), name("sk", types.KeyTypeRange)},
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String("pk"), AttributeType: "S"}, {AttributeName: aws.String("sk"), AttributeType: "S"},
		},
		StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages},
	})
	if err != nil {
		t.Fatal(err)
	}
	return sim
}

// group is a simulated group, and its members.
type group struct {
	t   *testing.T
	sim *dynamosim.Sim
}

func (g group) put(sk, name string) {
	g.t.Helper()
	item := map[string]types.AttributeValue{"pk": text("GROUP#g"), "sk": text(sk), "name": text(name)}
	if _, err := g.sim.PutItem(g.t.Context(), &dynamodb.PutItemInput{TableName: aws.String("app"), Item: item}); err != nil {
		g.t.Fatal(err)
	}
}

// carrying counts the items with a group name.
func (g group) carrying(name string) (n int) {
	g.t.Helper()
	for in := (&dynamodb.ScanInput{TableName: aws.String("app")}); ; {
		out, err := g.sim.Scan(g.t.Context(), in)
		if err != nil {
			g.t.Fatal(err)
		}
		for _, item := range out.Items {
			if v, _ := item["groupName"].(*types.AttributeValueMemberS); v != nil && v.Value == name {
				n++
			}
		}
		if in.ExclusiveStartKey = out.LastEvaluatedKey; len(in.ExclusiveStartKey) == 0 {
			return n
		}
	}
}

// unitsBySecond notes, each second, how many write units were used so far.
func (g group) unitsBySecond(ctx context.Context, took *[]float64) {
	for {
		*took = append(*took, g.sim.Usage().WriteUnits)
		if pace.Sleep(ctx, time.Second) != nil {
			return
		}
	}
}

// expectPaced refuses more units in any ten seconds than those of the budget, of one second's burst, and some others.
func expectPaced(t *testing.T, took []float64, budget, others float64) {
	t.Helper()
	for i := range took {
		if end := i + 10; end < len(took) && took[end]-took[i] > 11*budget+others {
			t.Errorf("%.0f write units in the ten seconds from second %d on, want at most %.0f", took[end]-took[i], i, 11*budget+others)
		}
	}
}

// A group of 5,000 members is renamed under a budget of 100 units. Records that come meanwhile are applied at once.
func TestRecordsDoNotWaitBehindFanOutUnderBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const members, budget = 5000, 100
		g := group{t, streamed(t)}
		ctx, stop := context.WithCancel(t.Context())
		started, ended := make(chan *dynamill.Running, 1), make(chan error, 1)
		go func() {
			ended <- dynamill.Follow(ctx, dynamill.Config{
				Tables: g.sim, Streams: g.sim, Table: "app", Rules: loaded(t, ruleFile), Budget: budget, Logger: slog.New(slog.DiscardHandler),
				Started: func(r *dynamill.Running) { started <- r },
			})
		}()
		running := <-started
		time.Sleep(time.Minute)
		g.put("METADATA", "Old")
		for i := range members {
			g.put(fmt.Sprintf("USER#%04d", i), "U")
		}
		time.Sleep(time.Minute) // every record is applied, and what they overdrew is forgotten
		if n := g.carrying("Old"); n != members {
			t.Fatalf("%d of %d members carry the name before the rename", n, members)
		}
		if waits := running.Status().Budget.Waits; len(waits) > 0 {
			t.Errorf("%v waits although nothing is to be done", waits)
		}

		g.put("METADATA", "New")
		renamed := time.Now()
		counting, stopCounting := context.WithCancel(t.Context())
		var took []float64
		go g.unitsBySecond(counting, &took)
		time.Sleep(1500 * time.Millisecond)
		if n := g.carrying("New"); n == 0 || n > 3*budget {
			t.Errorf("%d members carry the new name in the second of the rename, want at most those of a second and its burst", n)
		}
		for i := range 10 {
			time.Sleep(2 * time.Second)
			late := fmt.Sprintf("USER#late-%d", i)
			g.put(late, "U")
			time.Sleep(500 * time.Millisecond) // the shard with traffic is read every 250 ms
			out, err := g.sim.GetItem(t.Context(), &dynamodb.GetItemInput{
				TableName: aws.String("app"), Key: map[string]types.AttributeValue{"pk": text("GROUP#g"), "sk": text(late)},
			})
			if err != nil || out.Item["groupName"] == nil {
				t.Errorf("after %s, a member's record waits behind the fan-out: %v, %v", time.Since(renamed), out.Item, err)
			}
		}

		now := running.Status().Budget
		if since := now.Waits["fan-outs"]; len(now.Waits) != 1 || since.Before(renamed) || since.After(renamed.Add(5*time.Second)) ||
			now.UnitsPerSecond != budget || now.Spending < 0.7*budget || now.Spending > 1.3*budget {
			t.Errorf("the process says %+v, want fan-outs that wait since %s", now, renamed)
		}
		found, err := inspect.Read(t.Context(), g.sim, "app-dynamill")
		if err != nil || len(found.Budgets) != 1 || found.Budgets[0].Waits["fan-outs"].Unix() != now.Waits["fan-outs"].Unix() ||
			found.Budgets[0].UnitsPerSecond != budget || found.Budgets[0].Spending < 0.7*budget {
			t.Errorf("the state table says %+v, %v", found.Budgets, err)
		}

		for g.carrying("New") < members+10 && time.Since(renamed) < 2*time.Minute {
			time.Sleep(time.Second)
		}
		whole := time.Since(renamed)
		stopCounting()
		synctest.Wait()
		if whole < 35*time.Second || whole > 80*time.Second {
			t.Errorf("%d members took %s at %d units a second", members, whole, budget)
		}
		expectPaced(t, took, budget, 40) // ten puts and their copies
		time.Sleep(2 * time.Minute)
		found, err = inspect.Read(t.Context(), g.sim, "app-dynamill")
		if waits := running.Status().Budget.Waits; err != nil || len(found.Budgets) > 0 || len(waits) > 0 {
			t.Errorf("behind the fan-out the process says %v, the state table %+v, %v", waits, found.Budgets, err)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// The stream's records take more than the budget for minutes. A fan-out still goes on with a tenth of it.
func TestFanOutGetsATenthBesideBusyStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const members = 300
		budget := worldsize.Of(50, 20)
		g := group{t, streamed(t)}
		g.put("METADATA", "Old")
		for i := range members {
			g.put(fmt.Sprintf("USER#%04d", i), "U")
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- dynamill.Follow(ctx, dynamill.Config{
				Tables: g.sim, Streams: g.sim, Table: "app", Rules: loaded(t, ruleFile), Budget: budget, Logger: slog.New(slog.DiscardHandler),
			})
		}()
		time.Sleep(time.Minute)
		busy := func(seconds int) {
			for range seconds {
				for i := range 4 * budget {
					g.put(fmt.Sprintf("USER#busy-%d", i), "U") // which takes its copy off
				}
				time.Sleep(time.Second)
			}
		}
		busy(15)
		g.put("METADATA", "New")
		busy(30)
		before := g.carrying("New")
		busy(30)
		// The busy members are written all the time, and carry the new name, too.
		if n := g.carrying("New") - before; n < 30*budget/10/2 || n > 30*budget/10*2 {
			t.Errorf("%d members were renamed in 30 s beside a busy stream, want about %d", n, 30*budget/10)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
