package main

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/sim/emulator"
	"github.com/dynamill/dynamill/internal/story"
)

// metricsWorld is the example metrics at DynamoDB Local, with its items and nothing derived yet.
func metricsWorld(t *testing.T) *world {
	t.Helper()
	ex, err := story.Load("metrics", projections.Kinds)
	if err != nil {
		t.Fatal(err)
	}
	w := newEmptyWorld(t, emulator.Local(t))
	w.useRules(string(ex.Rules))
	w.createTable(types.StreamViewTypeNewAndOldImages, change.KindString, change.KindString)
	w.put(ex.Items...)
	return w
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
	w := metricsWorld(t)
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
