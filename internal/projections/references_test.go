package projections

import (
	"context"
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

const authorRules = `
version: 1
table: { keys: [pk, sk] }
entities:
  User:    { key: { pk: "USER#${userId}",   sk: "PROFILE" } }
  Comment: { key: { pk: "POST#${postId}",   sk: "COMMENT#${commentId}" } }
rules:
  author: { copy: name as userName, from: User, to: Comment, by: userId }
`

// TestChildrenPutAgainCostTheSameInBatches has another program put 20 children whole, without what the rules wrote.
func TestChildrenPutAgainCostTheSameInBatches(t *testing.T) {
	units := map[int]float64{}
	for _, least := range []int{5, 1000} {
		w := newWorld(t, authorRules)
		e, err := Open(w.ctx, Config{Client: w.sim, Table: "app", Rules: loadRules(t, authorRules), BatchMin: least})
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Seed(w.ctx, nil); err != nil {
			t.Fatal(err)
		}
		w.rename("Ann")
		for i := range 20 {
			w.put(comment(fmt.Sprint(i), change.Item{"userId": s("u1")}))
		}
		from := w.drain(e, 0)
		for i := range 20 {
			w.put(comment(fmt.Sprint(i), change.Item{"userId": s("u1"), "text": s("edited")}))
		}
		before := w.sim.Usage()
		w.drain(e, from)
		units[least] = w.sim.Usage().Sub(before).WriteUnits
		w.expectNoDrift()
	}
	if units[5] != units[1000] {
		t.Errorf("%.0f write units in batches, %.0f alone", units[5], units[1000])
	}
}

// silent is an endpoint that refuses writes without the item.
type silent struct{ table.Client }

func (c silent) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput,
	error) {
	in.ReturnValuesOnConditionCheckFailure = ""
	return c.Client.UpdateItem(ctx, in)
}

func (c silent) BatchExecuteStatement(ctx context.Context, in *dynamodb.BatchExecuteStatementInput,
	_ ...func(*dynamodb.Options)) (*dynamodb.BatchExecuteStatementOutput, error) {
	for i := range in.Statements {
		in.Statements[i].ReturnValuesOnConditionCheckFailure = ""
	}
	return c.Client.BatchExecuteStatement(ctx, in)
}

// TestReferencesStayIfRefusalsBringNoItem has a parent's record come again, so that its children refuse what they hold.
func TestReferencesStayIfRefusalsBringNoItem(t *testing.T) {
	for _, least := range []int{5, 1000} {
		t.Run(fmt.Sprintf("batches from %d on", least), func(t *testing.T) {
			w := newWorld(t, authorRules)
			e, err := Open(w.ctx, Config{Client: silent{w.sim}, Table: "app", Rules: loadRules(t, authorRules), BatchMin: least})
			if err != nil {
				t.Fatal(err)
			}
			if err := e.Seed(w.ctx, nil); err != nil {
				t.Fatal(err)
			}
			for i := range 20 {
				w.put(comment(fmt.Sprint(i), change.Item{"userId": s("u1")}))
			}
			from := w.drain(e, 0)
			w.rename("Ann")
			w.drain(e, from)
			w.drain(e, from)
			w.rename("Bob")
			w.drain(e, from)
			for i := range 20 {
				w.expect(change.Key{Partition: "POST#p1", Sort: fmt.Sprintf("COMMENT#%d", i)}, "userName", s("Bob"))
			}
			w.expectNoDrift()
		})
	}
}
