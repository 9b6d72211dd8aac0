package preview

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/environment"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/projections/audits"
	"github.com/dynamill/dynamill/internal/sim/dynamosim"
)

func TestSeedIsProjectedFromASample(t *testing.T) {
	c := environment.Counts{Items: 1000, Bytes: 4096_000}
	for name, given := range map[string]struct {
		estimate *seedEstimate
		want     seedEstimate
		says     []string
	}{
		"a sample": {projectSeed(c, 100, false, 30, 60, nil), seedEstimate{Items: 1000, Sampled: 100, Writes: 300, WriteUnits: 600,
			ReadUnits: 4000},
			[]string{"approximately 1,000 items", "about 300 writes", "600 write units", "sample of 100 items"}},
		"the whole table": {projectSeed(environment.Counts{}, 3, true, 2, 4, nil),
			seedEstimate{Items: 3, Exact: true, Sampled: 3, Writes: 2, WriteUnits: 4, ReadUnits: 6},
			[]string{"reads 3 items", "2 writes", "4 write units", "all items were looked at"}},
		"more items than DynamoDB counted": {projectSeed(environment.Counts{Items: 5}, 50, false, 10, 10, nil),
			seedEstimate{Items: 50, Sampled: 50, Writes: 10, WriteUnits: 10, ReadUnits: 50 * 2},
			[]string{"50 items"}},
		"no permission to scan": {projectSeed(c, 0, false, 0, 0, errors.New("denied")),
			seedEstimate{Items: 1000, ReadUnits: 4000, NotSampled: "denied"},
			[]string{"approximately 1,000 items", "could not be sampled: denied"}},
	} {
		given.want.ReadUnits = given.estimate.ReadUnits
		if !reflect.DeepEqual(*given.estimate, given.want) || given.estimate.ReadUnits < given.want.Items {
			t.Errorf("%s: %+v, want %+v", name, *given.estimate, given.want)
		}
		for _, says := range given.says {
			if text := given.estimate.text(); !strings.Contains(text, says) {
				t.Errorf("%s: %q lacks %q", name, text, says)
			}
		}
	}
}

// pages gives an endless table, a page of each segment.
type pages struct{ asked []int32 }

func (p *pages) Scan(_ context.Context, in *dynamodb.ScanInput, _ ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	p.asked = append(p.asked, *in.Limit)
	out := &dynamodb.ScanOutput{LastEvaluatedKey: keyOf("x", "y")}
	for i := range *in.Limit {
		out.Items = append(out.Items, attributes.ItemToTable(item(fmt.Sprint(*in.Segment), fmt.Sprint(i))))
	}
	return out, nil
}

func TestSeedSampleIsBounded(t *testing.T) {
	table := &pages{}
	sample := &seedSample{client: table, table: "app"}
	if err := sample.Each(t.Context(), func(change.Item) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if sample.taken.items != planSample.itemsMax || sample.taken.whole || len(table.asked) > planSample.pagesMax {
		t.Errorf("sampled %+v in %d requests", sample.taken, len(table.asked))
	}
}

// TestSeedEstimateIsWhatSeedingWrites compares the estimate of a whole small table with what a dry run finds.
func TestSeedEstimateIsWhatSeedingWrites(t *testing.T) {
	sim := plannedTable(t)
	items := []change.Item{
		item("USER#1", "PROFILE"), item("USER#1", "GROUP#dev"), item("USER#2", "GROUP#dev"), item("GROUP#dev", "METADATA"),
		item("GROUP#ops", "METADATA"),
	}
	for _, it := range items {
		if _, err := sim.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: new("app"), Item: attributes.ItemToTable(it)}); err != nil {
			t.Fatal(err)
		}
	}
	cfg := audits.Config{Client: sim, Table: "app", StateTable: "app-dynamill", Rules: loaded(t, plannedRules)}
	e := estimateSeed(t.Context(), cfg, nil, environment.Counts{})
	if !e.Exact || e.Items != int64(len(items)) || e.Writes == 0 || e.WriteUnits == 0 || e.NotSampled != "" {
		t.Fatalf("%+v", e)
	}
	cfg.Client = noScan{sim}
	denied := estimateSeed(t.Context(), cfg, nil, environment.Counts{Items: 7})
	if denied.Items != 7 || denied.Exact || !strings.Contains(denied.text(), "could not be sampled: no permission") {
		t.Errorf("without the permission: %+v", denied)
	}
}

// noScan is a client that may not scan.
type noScan struct{ *dynamosim.Sim }

func (noScan) Scan(context.Context, *dynamodb.ScanInput, ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	return nil, errors.New("no permission")
}

var _ projections.Client = noScan{}
