package preview

import (
	"context"
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/sim/dynamosim"
)

// scanCounter counts the calls of each segment.
type scanCounter struct {
	*dynamosim.Sim
	calls map[int32]int
	empty bool // every page is empty and another one follows
}

func (c *scanCounter) Scan(ctx context.Context, in *dynamodb.ScanInput, options ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	c.calls[*in.Segment]++
	if c.empty {
		return &dynamodb.ScanOutput{LastEvaluatedKey: keyOf("a", "b")}, nil
	}
	return c.Sim.Scan(ctx, in, options...)
}

func sampledTable(t *testing.T, items int) *scanCounter {
	t.Helper()
	sim := plannedTable(t)
	for i := range items {
		_, err := sim.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: new("app"),
			Item: attributes.ItemToTable(item(fmt.Sprintf("USER#%d", i), "PROFILE"))})
		if err != nil {
			t.Fatal(err)
		}
	}
	return &scanCounter{Sim: sim, calls: map[int32]int{}}
}

func TestSampleIsBoundedAndSpread(t *testing.T) {
	for _, tt := range []struct {
		items, want int
		whole       bool
	}{{0, 0, true}, {7, 7, true}, {900, 900, true}, {1500, checkSample.itemsMax, false}} {
		client := sampledTable(t, tt.items)
		seen := map[string]bool{}
		sample, err := sampleTable(t.Context(), client, "app", checkSample, func(it change.Item) error {
			seen[it.Lookup("pk").Text()] = true
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if sample.items != tt.want || len(seen) != tt.want || sample.whole != tt.whole {
			t.Errorf("of %d items: %+v, %d different ones; want %d", tt.items, sample, len(seen), tt.want)
		}
		if len(client.calls) != sampleSegments {
			t.Errorf("of %d items: %d segments were read, want %d", tt.items, len(client.calls), sampleSegments)
		}
	}
}

func TestSampleEndsAfterItsPages(t *testing.T) {
	client := sampledTable(t, 0)
	client.empty = true
	sample, err := sampleTable(t.Context(), client, "app", checkSample, func(change.Item) error { return nil })
	if err != nil || sample.whole || sample.items != 0 {
		t.Errorf("%+v, %v", sample, err)
	}
	calls := 0
	for _, n := range client.calls {
		calls += n
	}
	if calls != checkSample.pagesMax {
		t.Errorf("%d pages were read, want %d", calls, checkSample.pagesMax)
	}
}
