package dynamill

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/counting"
	"github.com/dynamill/dynamill/internal/proof/oracle"
	"github.com/dynamill/dynamill/internal/sim/dynamosim"
	"github.com/dynamill/dynamill/internal/sim/worldsize"
)

// TestVerifyFindsTheGroupsThatWereSpoiled has a person write on a row, under traffic.
func TestVerifyFindsTheGroupsThatWereSpoiled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHotTable(t, 9)
		h.write(80, 0)
		stop := h.follow("a")
		h.write(200, 100*time.Millisecond)
		h.expect("seeded")
		spoiled := ""
		for _, row := range h.items("app-dynamill") {
			if strings.HasPrefix(row["pk"].Text(), "fold/") && spoiled == "" {
				spoiled = row["group"].Text()
				row["value"] = change.Number("1000")
				_, err := h.sim.PutItem(h.Context(), &dynamodb.PutItemInput{TableName: new("app-dynamill"), Item: attributes.ItemToTable(row)})
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		go h.write(600, 100*time.Millisecond)
		var found []string
		for _, r := range h.count(counting.Verify) {
			for _, f := range r.Findings {
				found = append(found, f.Group)
			}
		}
		if len(found) != 1 || found[0] != spoiled {
			t.Errorf("verify finds %v, want %s", found, spoiled)
		}
		found = nil
		for _, r := range h.count(counting.Repair) {
			for _, f := range r.Findings {
				if f.Display == nil { // of others, the worker may still write the displays
					found = append(found, f.Group)
				}
			}
		}
		if len(found) != 1 || found[0] != spoiled {
			t.Errorf("repair mended %v, want %s", found, spoiled)
		}
		time.Sleep(2 * time.Minute)
		h.expect("repaired")
		stop()
	})
}

// lossyClient drops the updates of one item.
type lossyClient struct {
	*dynamosim.Sim
	item string
	on   atomic.Bool
}

func (c *lossyClient) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, options ...func(*dynamodb.Options),
) (*dynamodb.UpdateItemOutput, error) {
	if pk, _ := in.Key["pk"].(*ddb.AttributeValueMemberS); pk != nil && pk.Value == c.item && c.on.Load() {
		return &dynamodb.UpdateItemOutput{}, nil
	}
	return c.Sim.UpdateItem(ctx, in, options...)
}

// TestVerifyFindsDisplaysThatAreWrong has a person write on displays. A worker shows one of them anew before verify looks again, and the
// write of the other gets lost.
func TestVerifyFindsDisplaysThatAreWrong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHotTable(t, 10)
		client := &lossyClient{Sim: h.sim, item: "POST#1"}
		h.tables = client
		h.write(80, 0)
		stop := h.follow("a")
		h.write(100, 100*time.Millisecond)
		h.expect("seeded")
		client.on.Store(true)
		spoil := func(post string) {
			h.put(map[string]change.Value{"pk": change.String("POST#" + post), "sk": change.String("METADATA"), "likes": change.Number("1000")})
		}
		spoil("1")
		time.Sleep(time.Minute)
		go func() {
			for range 20 {
				spoil("2")
				time.Sleep(time.Second)
			}
		}()
		found := map[string]int{}
		for _, r := range h.count(counting.Verify) {
			for _, f := range r.Findings {
				found[fmt.Sprint(f.Group, " ", f.Display != nil)]++
			}
			if r.Undecided != "" {
				t.Errorf("undecided: %s", r.Undecided)
			}
		}
		if want := map[string]int{"POST#1/METADATA true": 2}; fmt.Sprint(found) != fmt.Sprint(want) {
			t.Errorf("verify finds %v, want %v", found, want)
		}
		h.count(counting.Repair)
		h.expect("repaired")
		stop()
	})
}

// TestVerifyFindsThreeSpoiledGroupsAmong200000Items does so under traffic.
func TestVerifyFindsThreeSpoiledGroupsAmong200000Items(t *testing.T) {
	items := worldsize.Of(200_000, 5_000)
	synctest.Test(t, func(t *testing.T) {
		h := newHotTable(t, 14)
		h.enableStream(false)
		for i := range items {
			h.put(change.Item{"pk": change.String(fmt.Sprint("LIKE#", 1000+i)), "sk": change.String("LIKE"),
				"postId": change.String(fmt.Sprint(i % hotPosts)), "weight": change.Number("1")})
		}
		h.enableStream(true)
		stop := h.follow("a")
		time.Sleep(2 * time.Minute)
		h.expect("seeded")
		spoiled := map[string]bool{}
		for _, row := range h.items("app-dynamill") {
			if group := row["group"].Text(); strings.HasPrefix(row["pk"].Text(), "fold/") && len(spoiled) < 3 && !spoiled[group] {
				spoiled[group] = true
				row["value"] = change.Number("7")
				_, err := h.sim.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: new("app-dynamill"), Item: attributes.ItemToTable(row)})
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		go h.write(900, 100*time.Millisecond)
		for _, purpose := range []counting.Purpose{counting.Verify, counting.Repair} {
			found := map[string]bool{}
			for _, r := range h.count(purpose) {
				for _, f := range r.Findings {
					if f.Display == nil {
						found[f.Group] = true
					}
				}
			}
			if fmt.Sprint(found) != fmt.Sprint(spoiled) {
				t.Errorf("purpose %d finds %v, want %v", purpose, found, spoiled)
			}
		}
		time.Sleep(2 * time.Minute)
		h.expect("repaired")
		stop()
	})
}

// TestVerifyEndsThoughTheRowsOfLanesAreGone has a person delete them: what rows of groups hold can be compared no more.
func TestVerifyEndsThoughTheRowsOfLanesAreGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHotTable(t, 15)
		stop := h.follow("a")
		h.write(50, 100*time.Millisecond)
		h.expect("seeded")
		for _, row := range h.items("app-dynamill") {
			if strings.HasPrefix(row["pk"].Text(), "lane/") {
				_, err := h.sim.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: new("app-dynamill"),
					Key: attributes.ItemToTable(change.Item{"pk": row["pk"], "sk": row["sk"]})})
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, r := range h.count(counting.Verify) {
			if !strings.Contains(r.Undecided, "of a shard that has no row") {
				t.Errorf("verify finds %v, undecided: %q", r.Findings, r.Undecided)
			}
		}
		stop()
	})
}

// TestVerifySaysWhichWrongDisplaysAreNoDrift spoils a display that is parked, or whose roll-up was put off.
func TestVerifySaysWhichWrongDisplaysAreNoDrift(t *testing.T) {
	id, group := oracle.RuleID("likes"), "POST#1/METADATA"
	text := change.String
	putOff := func(due time.Duration) change.Item {
		return change.Item{"pk": text("tasks"), "sk": text("rollup#/" + id + "/" + group), "rule": text(id), "group": text(group),
			"asked": text("a"), "due": change.Number(fmt.Sprint(time.Now().Add(due).UnixMilli()))}
	}
	for name, c := range map[string]struct {
		row              func() change.Item
		parked, findings int
		undecided        bool
	}{
		"nothing is kept of it": {func() change.Item { return nil }, 0, 1, false},
		"parked": {func() change.Item {
			parkedID := text("display:" + id + "/" + group)
			return change.Item{"pk": text("parked"), "sk": parkedID, "id": parkedID, "rule": text(id),
				"item": text(group), "code": text("heal.contested")}
		}, 1, 0, false},
		"put off, and due":         {func() change.Item { return putOff(-time.Minute) }, 0, 0, true},
		"put off, and not due yet": {func() change.Item { return putOff(time.Hour) }, 0, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHotTable(t, 16)
				client := &lossyClient{Sim: h.sim, item: "POST#1"}
				h.tables = client
				h.write(80, 0)
				stop := h.follow("a")
				h.write(50, 100*time.Millisecond)
				h.expect("seeded")
				client.on.Store(true)
				h.put(change.Item{"pk": text("POST#1"), "sk": text("METADATA"), "likes": change.Number("1000")})
				time.Sleep(time.Minute)
				stop()
				if row := c.row(); row != nil {
					_, err := h.sim.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: new("app-dynamill"), Item: attributes.ItemToTable(row)})
					if err != nil {
						t.Fatal(err)
					}
				}
				r := h.count(counting.Verify)[0]
				if len(r.Findings) != c.findings || int(r.Parked) != c.parked || (r.Undecided != "") != c.undecided {
					t.Errorf("%d findings, %d parked, undecided: %q", len(r.Findings), r.Parked, r.Undecided)
				}
			})
		})
	}
}

// TestRepairTakesStampsOffThatAreLaterThanRestoredRows restores the folded rows of an earlier time, as from a backup: targets then have
// later stamps, and no worker writes over them, whether they show what is right or not.
func TestRepairTakesStampsOffThatAreLaterThanRestoredRows(t *testing.T) {
	for name, c := range map[string]struct {
		writes int
		mended bool // but for the counts of operations
	}{
		"displays are right":          {},
		"displays are wrong":          {writes: 40},
		"rows and displays are right": {mended: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHotTable(t, 12)
				h.write(80, 0)
				stop := h.follow("a")
				h.write(20, 100*time.Millisecond)
				h.expect("seeded")
				backup := h.foldedRows()
				h.write(200, 100*time.Millisecond)
				h.expect("followed")
				stop()
				if c.mended {
					backup = h.foldedRows()
					for _, row := range backup {
						row["ops"] = change.Number("1")
					}
				}
				h.restore(backup)
				stop = h.follow("b")
				h.write(c.writes, 100*time.Millisecond)
				time.Sleep(2 * time.Minute)
				if right := fmt.Sprint(h.want()) == fmt.Sprint(h.shown()); right != (c.writes == 0) {
					t.Fatalf("the displays are right: %v", right)
				}
				later := 0
				for _, r := range h.count(counting.Verify) {
					for _, f := range r.Findings {
						if f.Display != nil && f.Display.StampLater {
							later++
						}
					}
				}
				if later == 0 {
					t.Error("verify finds no stamp that is later than its rows")
				}
				h.count(counting.Repair)
				h.expect("repaired")
				h.write(40, 100*time.Millisecond)
				h.expect("written after the repair")
				stop()
			})
		})
	}
}

// restore puts the folded rows back to what they were.
func (h *hotTable) restore(backup []change.Item) {
	h.Helper()
	for _, row := range h.foldedRows() {
		_, err := h.sim.DeleteItem(h.Context(), &dynamodb.DeleteItemInput{TableName: new("app-dynamill"),
			Key: attributes.ItemToTable(change.Item{"pk": row["pk"], "sk": row["sk"]})})
		if err != nil {
			h.Fatal(err)
		}
	}
	for _, row := range backup {
		_, err := h.sim.PutItem(h.Context(), &dynamodb.PutItemInput{TableName: new("app-dynamill"), Item: attributes.ItemToTable(row)})
		if err != nil {
			h.Fatal(err)
		}
	}
}

// foldedRows returns the folded rows.
func (h *hotTable) foldedRows() []change.Item {
	return slices.DeleteFunc(h.items("app-dynamill"), func(row change.Item) bool { return !strings.HasPrefix(row["pk"].Text(), "fold/") })
}
