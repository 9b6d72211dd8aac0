package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
)

// community is a small table of base items.
func community() []change.Item {
	return []change.Item{
		item("USER#123", "PROFILE", "name", "John", "email", "john@example.com", "avatar", "https://img/john"),
		item("USER#456", "PROFILE", "name", "Jane", "email", "jane@example.com", "avatar", "https://img/jane"),
		item("POST#1", "METADATA", "userId", "123", "title", "My Post"),
		item("POST#1", "COMMENT#2025-01-02T10:00:00Z#c1", "userId", "456", "text", "Great post!"),
		item("POST#1", "COMMENT#2025-01-02T11:00:00Z#c2", "userId", "123", "text", "Thank you"),
		item("GROUP#dev", "METADATA", "name", "Developers", "description", "We build things"),
		item("GROUP#ops", "METADATA", "name", "Operations"),
		item("USER#123", "GROUP#dev", "role", "admin", "joinedAt", "2025-01-01"),
		item("USER#456", "GROUP#dev", "role", "member", "joinedAt", "2025-01-02"),
		item("USER#456", "GROUP#ops", "role", "banned", "joinedAt", "2025-01-03"),
	}
}

func TestDerivedDataFollowsTheBaseItems(t *testing.T) {
	t.Parallel()
	w := newLocalWorld(t, types.StreamViewTypeNewAndOldImages)
	w.put(community()...)
	w.drain()
	w.expectTrue()
	w.expect(map[string]string{
		"POST#1 COMMENT#2025-01-02T10:00:00Z#c1 userName":   "Jane",
		"POST#1 COMMENT#2025-01-02T10:00:00Z#c1 userAvatar": "https://img/jane",
		"POST#1 METADATA commentCount":                      "2",
		"USER#123 GROUP#dev groupName":                      "Developers",
		"GROUP#dev METADATA memberCount":                    "2",
		"GROUP#dev USER#456 userName":                       "Jane",
		"GROUP#dev USER#456 role":                           "member",
		"GROUP#ops USER#456 role":                           "banned",
	})

	w.set1("USER#456", "PROFILE", "name", "Janet")
	w.drain()
	w.expectTrue()
	w.expect(map[string]string{
		"POST#1 COMMENT#2025-01-02T10:00:00Z#c1 userName": "Janet",
		"GROUP#dev USER#456 userName":                     "Janet",
	})

	w.delete("USER#123", "GROUP#dev")
	w.set1("POST#1", "COMMENT#2025-01-02T11:00:00Z#c2", "userId", "456")
	w.delete("USER#123", "PROFILE")
	w.put(item("GROUP#dev", "METADATA", "name", "Devs")) // an old form: without memberCount
	w.delete("GROUP#ops", "USER#456")                    // a mirror item, by hand
	w.drain()
	w.expectTrue()
	w.expect(map[string]string{
		"POST#1 COMMENT#2025-01-02T11:00:00Z#c2 userName": "Janet",
		"GROUP#dev METADATA memberCount":                  "1",
		"GROUP#dev USER#123 role":                         "",
		"USER#456 GROUP#dev groupName":                    "Devs",
		"GROUP#ops USER#456 role":                         "banned",
		"USER#456 PROFILE commentCount":                   "2",
	})

	before := w.items()
	_, err := w.client.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: ptr(w.leaseTableName())})
	w.must(err)
	if again := w.drain(); again.Records == 0 {
		t.Error("without checkpoints no record came again")
	}
	if diff := cmp.Diff(before, w.items()); diff != "" {
		t.Errorf("the same stream, applied again, changed the table:\n%s", diff)
	}
}

func ptr[T any](v T) *T { return &v }

func TestWhatNoRuleWritesStaysAsItWas(t *testing.T) {
	t.Parallel()
	w := newLocalWorld(t, types.StreamViewTypeNewAndOldImages)
	everything := change.Map(map[string]change.Value{
		"list": change.List([]change.Value{change.Null(), change.Bool(true), change.Number("1e-100")}),
		"map":  change.Map(map[string]change.Value{"x": change.String("")}),
	})
	odd := func(pk, sk string) change.Item {
		it := item(pk, sk, "empty", "")
		it["all"] = everything
		it["bytes"] = change.Binary([]byte{0, 255})
		it["number"] = change.Number("12345678901234567890123456789012345678")
		it["texts"] = change.Set(change.KindStringSet, []string{"a", "b"})
		it["numbers"] = change.Set(change.KindNumberSet, []string{"1", "2"})
		it["blobs"] = change.Set(change.KindBinarySet, []string{"\x00", "\x01"})
		return it
	}
	base := []change.Item{
		odd("USER#1", "PROFILE"), odd("GROUP#1", "METADATA"), odd("USER#1", "GROUP#1"), odd("POST#1", "METADATA"),
		odd("POST#1", "COMMENT#a#1"), odd("INVOICE#1", "METADATA"), odd("METRICS#7", "2025-01-02"),
	}
	w.put(base...)
	w.drain()
	w.expectTrue()
	derived := map[string]bool{"memberCount": true, "commentCount": true}
	items := w.items()
	for _, want := range base {
		place := want["pk"].Text() + " " + want["sk"].Text()
		got := change.Item{}
		for name, value := range items[place] {
			known := !strings.HasPrefix(name, stampPrefix) && !derived[name]
			if known || strings.HasPrefix(place, "INVOICE") || strings.HasPrefix(place, "METRICS") {
				got[name] = value
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s was changed:\n%s", place, diff)
		}
	}
	if len(items) != len(base)+1 { // the Member
		t.Errorf("%d items, want %d", len(items), len(base)+1)
	}
}

func TestATableThatWasFullBeforeIsNeverCountedTooLow(t *testing.T) {
	t.Parallel()
	w := newLocalWorld(t, "")
	const groups, users, comments, others, itemsMin = 10, 30, 160, 1510, 2000
	var base []change.Item
	for g := range groups {
		base = append(base, item(fmt.Sprintf("GROUP#g%d", g), "METADATA", "name", fmt.Sprintf("Group %d", g)))
	}
	for u := range users {
		id := fmt.Sprintf("USER#u%02d", u)
		base = append(base, item(id, "PROFILE", "name", fmt.Sprintf("User %d", u)))
		for g := range groups {
			base = append(base, item(id, fmt.Sprintf("GROUP#g%d", g), "role", "member"))
		}
	}
	base = append(base, item("POST#p", "METADATA", "title", "Much discussed"))
	for c := range comments {
		base = append(base, item("POST#p", fmt.Sprintf("COMMENT#2025#%d", c), "userId", fmt.Sprintf("u%02d", c%users)))
	}
	for o := range others {
		base = append(base, item(fmt.Sprintf("ORDER#%d", o), "METADATA", "total", "1"))
	}
	if len(base) < itemsMin {
		t.Fatalf("%d items are too few", len(base))
	}
	w.put(base...)
	w.enableStream()

	watching, stop := context.WithCancel(t.Context())
	watched := make(chan int)
	go func() { watched <- w.watchCounts(watching, groups, users) }()
	w.drain()
	stop()
	if looks := <-watched; looks == 0 {
		t.Error("nobody looked at the counts while they were made")
	}
	w.expectTrue()
	w.expect(map[string]string{"GROUP#g3 METADATA memberCount": fmt.Sprint(users), "GROUP#g3 USER#u07 userName": "User 7"})
}

// watchCounts reads the groups until ctx ends: a count that is shown is never lower than the true one.
func (w *world) watchCounts(ctx context.Context, groups, truth int) (looks int) {
	for ; ctx.Err() == nil; looks++ {
		key := keyOf(fmt.Sprintf("GROUP#g%d", looks%groups), "METADATA")
		out, err := w.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &w.table, Key: key, ConsistentRead: ptr(true)})
		if err != nil {
			if ctx.Err() == nil {
				w.t.Errorf("reading a group: %v", err)
			}
			return looks
		}
		if shown, ok := out.Item["memberCount"].(*types.AttributeValueMemberN); ok && shown.Value != fmt.Sprint(truth) {
			w.t.Errorf("memberCount showed %s while there were %d members", shown.Value, truth)
		}
		time.Sleep(5 * time.Millisecond)
	}
	return looks
}

func TestASmuggledKeyIsParkedAndTheRestGoesOn(t *testing.T) {
	t.Parallel()
	w := newLocalWorld(t, types.StreamViewTypeNewAndOldImages)
	w.put(community()...)
	w.put(item("POST#1", "COMMENT#x#bad", "userId", "123#PROFILE"))
	if result := w.drain(); result.Parked == 0 {
		t.Error("nothing was parked")
	}
	w.expect(map[string]string{"POST#1 METADATA commentCount": "3", "USER#123 PROFILE commentCount": "1", "POST#1 COMMENT#x#bad userName": ""})
	_, _, text := w.call("run", "--drain")
	code, stdout, stderr := w.call("run", "--drain")
	if code != ending.ExitDone || !strings.Contains(stdout, "dynamill parked list") {
		t.Errorf("exit code %d, result %q: parked items are not mentioned\n%s%s", code, stdout, stderr, text)
	}

	ids := w.parkedIDs()
	code, stdout, _ = w.call("parked", "show", ids[0])
	if code != ending.ExitDone || !strings.Contains(stdout, "key.smuggled") || !strings.Contains(stdout, "123#PROFILE") {
		t.Errorf("parked show: exit code %d, %s", code, stdout)
	}
	code, stdout, stderr = w.call("parked", "retry", "--all")
	if code != ending.ExitFailed || !strings.Contains(stdout, "still parked") || !strings.Contains(stderr, "mend the items") {
		t.Errorf("parked retry of what is still bad: exit code %d, %s%s", code, stdout, stderr)
	}
	if code, stdout, stderr = w.call("parked", "discard", ids[0]); code != ending.ExitDone || !strings.Contains(stdout, "discarded") {
		t.Errorf("parked discard: exit code %d, %s%s", code, stdout, stderr)
	}
	if code, _, stderr = w.call("parked", "discard", ids[0]); code != ending.ExitInvalid ||
		!strings.Contains(stderr, "nothing is parked under") {
		t.Errorf("parked discard of what is gone: exit code %d, %s", code, stderr)
	}

	w.set1("POST#1", "COMMENT#x#bad", "userId", "123")
	if result := w.drain(); result.Parked != 0 {
		t.Errorf("%d are parked after the item was mended: %v", result.Parked, w.parkedIDs())
	}
	w.expectTrue()
	if code, stdout, _ = w.call("parked", "list"); code != ending.ExitDone || stdout != "nothing is parked\n" {
		t.Errorf("parked list: exit code %d, %q", code, stdout)
	}
}
