package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/sim/dynamosim"
	"github.com/dynamill/dynamill/projections"
)

func TestSeedIsProjectedFromASample(t *testing.T) {
	c := counts{items: 1000, bytes: 4096_000}
	for name, given := range map[string]struct {
		estimate *seedEstimate
		want     seedEstimate
		says     []string
	}{
		"a sample": {projectSeed(c, 100, false, 30, 60, nil), seedEstimate{Items: 1000, Sampled: 100, Writes: 300, WriteUnits: 600, ReadUnits: 4000},
			[]string{"approximately 1,000 items", "about 300 writes", "600 write units", "sample of 100 items"}},
		"the whole table": {projectSeed(counts{}, 3, true, 2, 4, nil), seedEstimate{Items: 3, Exact: true, Sampled: 3, Writes: 2, WriteUnits: 4, ReadUnits: 6},
			[]string{"reads 3 items", "2 writes", "4 write units", "all items were looked at"}},
		"more items than DynamoDB counted": {projectSeed(counts{items: 5}, 50, false, 10, 10, nil), seedEstimate{Items: 50, Sampled: 50, Writes: 10, WriteUnits: 10, ReadUnits: 50 * 2},
			[]string{"50 items"}},
		"no permission to scan": {projectSeed(c, 0, false, 0, 0, errors.New("denied")), seedEstimate{Items: 1000, ReadUnits: 4000, NotSampled: "denied"},
			[]string{"approximately 1,000 items", "could not be sampled: denied"}},
	} {
		given.want.ReadUnits = given.estimate.ReadUnits
		if *given.estimate != given.want || given.estimate.ReadUnits < given.want.Items {
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
	for _, it := range community() {
		if _, err := sim.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: ptr("app"), Item: attributes.ItemToTable(it)}); err != nil {
			t.Fatal(err)
		}
	}
	cfg := projections.AuditConfig{Client: sim, Table: "app", StateTable: "app-dynamill", Rules: loaded(t, plannedRules)}
	e := estimateSeed(t.Context(), cfg, counts{})
	if !e.Exact || e.Items != int64(len(community())) || e.Writes == 0 || e.WriteUnits == 0 || e.NotSampled != "" {
		t.Fatalf("%+v", e)
	}
	cfg.Client = noScan{sim}
	denied := estimateSeed(t.Context(), cfg, counts{items: 7})
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

func TestAPlanOfAFreshTableSaysWhatSeedingCosts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, types.StreamViewTypeNewAndOldImages)
	w.put(community()...)
	code, stdout, stderr := w.call("plan")
	for _, want := range []string{"nothing has run on this table yet", "creates " + w.table + stateSuffix + " and " + w.leaseTableName(),
		fmt.Sprintf("it reads %d items", len(community())), "write units", "added"} {
		if code != exitDone || !strings.Contains(stdout, want) {
			t.Errorf("exit code %d, lacks %q:\n%s%s", code, want, stdout, stderr)
		}
	}
	var p rulePlan
	_, stdout, _ = w.call("plan", "--json")
	w.must(json.Unmarshal([]byte(stdout), &p))
	if p.Seed == nil || p.Seed.Sampled != int64(len(community())) || p.Seed.WriteUnits == 0 || !p.Replay {
		t.Errorf("as JSON: %s", stdout)
	}
	if w.exists(w.table+stateSuffix) || w.exists(w.leaseTableName()) {
		t.Error("plan made a table")
	}
	w.drain()
	if _, stdout, _ = w.call("plan"); !strings.HasSuffix(stdout, "nothing to do\n") {
		t.Errorf("after the rules are seeded: %s", stdout)
	}
}
