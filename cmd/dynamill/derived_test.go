package main

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/following"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/proof/oracle"
	"github.com/dynamill/dynamill/internal/sim/emulator"
	"github.com/dynamill/dynamill/internal/story"
)

// exampleWorld has the rules of an example at DynamoDB Local. It returns the example's items; the table is not there yet.
func exampleWorld(t *testing.T, name string) (*world, []change.Item) {
	t.Helper()
	ex, err := story.Load(name, projections.Kinds)
	if err != nil {
		t.Fatal(err)
	}
	w := newEmptyWorld(t, emulator.Local(t))
	w.useRules(string(ex.Rules))
	return w, ex.Items
}

// expectRight follows the stream to its end, and has the oracle and the command look at all items.
func (w *world) expectRight(doing string) {
	w.t.Helper()
	if result := w.drain(); result.Parked != 0 {
		w.t.Errorf("%s: %d are parked", doing, result.Parked)
	}
	w.expectTrue()
	code, stdout, stderr := w.call("verify", "--settle", "100ms")
	if code != ending.ExitDone || !strings.Contains(stdout, "no drift") {
		w.t.Errorf("%s: verify ends with exit code %d:\n%s%s", doing, code, stdout, stderr)
	}
}

// hasTimeToLive reports whether an item is there, and whether it has a time to live.
func (w *world) hasTimeToLive(place string) (there, timed bool) {
	it, there := w.items()[place]
	return there, it.Lookup("ttl").Kind() == change.KindNumber
}

func (w *world) expectThere(doing, place string, want bool) {
	w.t.Helper()
	if there, timed := w.hasTimeToLive(place); there != want || timed != want {
		w.t.Errorf("%s: %s is there: %v, with a time to live: %v; want %v", doing, place, there, timed, want)
	}
}

func TestDerivedItemsComeAndGoAtDynamoDBLocal(t *testing.T) {
	t.Parallel()
	w, items := exampleWorld(t, "metrics")
	w.createTable(types.StreamViewTypeNewAndOldImages, change.KindString, change.KindString)
	w.put(items...)
	w.expectRight("a first run")
	w.expectThere("a first run", "METRICS#web-1 DAY#2025-01-01", true) // was the application's
	w.expectThere("a first run", "METRICS#web-2 DAY#2025-01-02", true)
	w.expect(map[string]string{
		"METRICS#web-1 DAY#2025-01-01 cpu": "41.7", "METRICS#web-1 DAY#2025-01-01 samples": "3", "METRICS#web-1 DAY#2025-01-01 requests": "3579",
		"METRICS#web-2 DAY#2025-01-02 busyCpu": "99.9",
	})

	w.put(item("METRICS#web-1", "DAY#2025-01-01", "cpu", "none"), item("METRICS#web-1", "DAY#2025-01-09", "cpu", "none"))
	w.delete("METRICS#web-1", "DAY#2025-01-02")
	w.expectRight("the application overwrites one, makes one and deletes one")
	w.expectThere("the overwritten one", "METRICS#web-1 DAY#2025-01-01", true)
	w.expectThere("the one without samples", "METRICS#web-1 DAY#2025-01-09", false)
	w.expectThere("the deleted one", "METRICS#web-1 DAY#2025-01-02", true)
	w.expect(map[string]string{"METRICS#web-1 DAY#2025-01-01 cpu": "41.7", "METRICS#web-1 DAY#2025-01-02 cpu": "0"})

	w.delete("METRICS#web-1", "2025-01-01T10:00:00Z")
	w.delete("METRICS#web-2", "2025-01-02T10:00:00Z")
	w.expectRight("one of three samples and the last of another day are deleted")
	w.expectThere("the day with two samples", "METRICS#web-1 DAY#2025-01-01", true)
	w.expectThere("the day without samples", "METRICS#web-2 DAY#2025-01-02", false)
	w.expect(map[string]string{"METRICS#web-1 DAY#2025-01-01 samples": "2", "METRICS#web-1 DAY#2025-01-01 cpu": "39.95"})
}

// createMonths makes the table of the example downloads with its index, as the example's README does.
func (w *world) createMonths() {
	w.t.Helper()
	key := func(name string, role types.KeyType) types.KeySchemaElement {
		return types.KeySchemaElement{AttributeName: &name, KeyType: role}
	}
	attribute := func(name string, kind types.ScalarAttributeType) types.AttributeDefinition {
		return types.AttributeDefinition{AttributeName: &name, AttributeType: kind}
	}
	_, err := w.client.CreateTable(w.t.Context(), &dynamodb.CreateTableInput{
		TableName: &w.table, BillingMode: types.BillingModePayPerRequest,
		KeySchema: []types.KeySchemaElement{key("songId", types.KeyTypeHash), key("sk", types.KeyTypeRange)},
		AttributeDefinitions: []types.AttributeDefinition{
			attribute("songId", types.ScalarAttributeTypeS), attribute("sk", types.ScalarAttributeTypeS),
			attribute("Month", types.ScalarAttributeTypeS), attribute("downloads", types.ScalarAttributeTypeN),
		},
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{
			IndexName: ptr("ByMonth"), Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
			KeySchema: []types.KeySchemaElement{key("Month", types.KeyTypeHash), key("downloads", types.KeyTypeRange)},
		}},
		StreamSpecification: &types.StreamSpecification{StreamEnabled: ptr(true), StreamViewType: types.StreamViewTypeNewAndOldImages},
	})
	w.must(err)
	w.deleteAfterwards(w.table, w.table+following.StateSuffix, w.leaseTableName())
}

// expectMonth follows the stream and lists the songs of a month by the index, the one with the most downloads first.
func (w *world) expectMonth(doing, month string, want ...string) {
	w.t.Helper()
	if result := w.drain(); result.Parked != 0 {
		w.t.Errorf("%s: %d are parked", doing, result.Parked)
	}
	out, err := w.client.Query(w.t.Context(), &dynamodb.QueryInput{
		TableName: &w.table, IndexName: ptr("ByMonth"), ScanIndexForward: ptr(false), KeyConditionExpression: ptr("#m = :m"),
		ExpressionAttributeNames:  map[string]string{"#m": "Month"},
		ExpressionAttributeValues: map[string]types.AttributeValue{":m": &types.AttributeValueMemberS{Value: month}},
	})
	w.must(err)
	var got []string
	for _, raw := range out.Items {
		it := attributes.ItemFromTable(raw)
		got = append(got, it["songId"].Text()+" "+it["title"].Text()+" "+it["downloads"].Text())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("%s: the index lists of %s:\n%s", doing, month, diff)
	}
	all, err := w.scan(w.table)
	w.must(err)
	for _, difference := range oracle.Drift(w.set, all) {
		w.t.Errorf("%s: drift: %s", doing, difference)
	}
}

func TestIndexListsMonthsByTheirTotals(t *testing.T) {
	t.Parallel()
	w, items := exampleWorld(t, "downloads")
	w.createMonths()
	w.put(items...)
	w.expectMonth("a first run", "2018-01", "s1 Wild Love 2", "s2 Example Song 1")

	download := func(song, id, at string) change.Item {
		return change.Item{"songId": change.String(song), "sk": change.String("Download#" + id), "at": change.String(at)}
	}
	w.put(download("s2", "d4", "2018-01-05T10:00:00Z"), download("s2", "d5", "2018-01-05T10:00:01Z"))
	w.put(download("s1", "d6", "2018-02-01T00:00:00Z"))
	w.expectMonth("the second song overtakes", "2018-01", "s2 Example Song 3", "s1 Wild Love 2")
	w.expectMonth("the next month", "2018-02", "s1 Wild Love 1")

	w.put(download("s1", "d6", "2018-03-01T00:00:00Z"))
	w.expectMonth("a download was in another month", "2018-02")
	w.expectMonth("that other month", "2018-03", "s1 Wild Love 1")
}
