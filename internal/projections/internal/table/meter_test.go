package table

import (
	"testing"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
)

func TestATransactionIsSharedByTheNumberOfActions(t *testing.T) {
	ts := New(nil, "", "")
	ts.meter.add([]string{"", "a", "a", "b", ""}, 12)
	ts.meter.add([]string{"b"}, 1.5)
	ts.meter.add([]string{"", ""}, 4)
	ts.meter.add([]string{""}, 1)
	ts.meter.add(nil, 0) // a batch in which no statement took effect
	want := map[string]Written{"": {3, 5}, "a": {2, 8}, "b": {2, 5.5}}
	if diff := cmp.Diff(want, ts.WrittenFor(), cmp.AllowUnexported(Written{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestARefusedConditionIsNoConflict(t *testing.T) {
	var c Counters
	condition := "ConditionalCheckFailed"
	c.refused(&ddb.TransactionCanceledException{CancellationReasons: []ddb.CancellationReason{{Code: &condition}}})
	if c.Conflicts.Load() != 0 || c.Throttles.Load() != 0 {
		t.Error("a refused condition counts as a conflict, or as a throttled request")
	}
}
