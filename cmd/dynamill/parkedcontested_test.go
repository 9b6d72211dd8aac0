package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/parked"
	"github.com/dynamill/dynamill/internal/proof/oracle"
	"github.com/dynamill/dynamill/internal/sim/emulator"
)

const contestedRules = `version: 1
table: { keys: [pk, sk] }
entities:
  Order:     { key: { pk: "CUSTOMER#${customerId}", sk: "ORDER#${orderId}" } }
  OrderById: { key: { pk: "ORDER#${orderId}",       sk: "METADATA" } }
  Post:      { key: { pk: "USER#${userId}",         sk: "POST#${at}" }, unique: postId }
  Like:      { key: { pk: "LIKE#${likeId}",         sk: "POST#${postId}" } }
rules:
  order-by-id: { mirror: Order, as: OrderById, attributes: [total] }
  likes:       { count: Like, as: Post.likes, by: postId }
`

func contestedOrder(customer int) change.Item {
	return change.Item{
		"pk": change.String(fmt.Sprintf("CUSTOMER#%03d", customer)), "sk": change.String("ORDER#a"), "total": change.Number(fmt.Sprint(customer)),
	}
}

func contestedPost(user int) change.Item {
	return change.Item{"pk": change.String(fmt.Sprintf("USER#%03d", user)), "sk": change.String("POST#1"), "postId": change.String("p")}
}

// TestContestedTargetsAreListedAndLoggedOnce has orders of two customers ask for one
// mirror item, and 50 posts have one id.
func TestContestedTargetsAreListedAndLoggedOnce(t *testing.T) {
	t.Parallel()
	w := newEmptyWorld(t, emulator.Simulated(t))
	w.useRules(contestedRules)
	w.createTable(types.StreamViewTypeNewAndOldImages, change.KindString, change.KindString)
	w.put(contestedOrder(1))
	w.drain()
	w.put(contestedOrder(2))
	for user := range 50 {
		w.put(contestedPost(user))
	}
	w.drain()
	w.expectContested("contested:"+oracle.RuleID("order-by-id")+"/ORDER#a/METADATA", "CUSTOMER#001/ORDER#a", "item.contested", 2)
	w.expectContested("contested:@Post/p", "USER#000/POST#1", "unique.contested", 50)
	w.expectParkedCodes(map[string]int{"item.contested": 1, "unique.contested": 1})
	_, stdout, _ := w.call("parked", "list")
	if n := strings.Count(stdout, "\n"); n != 3 || !strings.Contains(stdout,
		"50 items have the unique value \"p\": USER#000/POST#1, USER#001/POST#1, USER#002/POST#1 and 47 more. USER#000/POST#1 wins") {
		t.Errorf("parked list has %d lines, want 3:\n%s", n, stdout)
	}
	if code, stdout, stderr := w.call("parked", "show", "contested:@Post/p"); code != ending.ExitDone ||
		strings.Count(stdout, "\nclaimant ") != 50 {
		t.Errorf("parked show: exit code %d, want 50 claimants\n%s%s", code, stdout, stderr)
	}
	if code, stdout, stderr := w.call("verify"); code != ending.ExitDone ||
		!strings.Contains(stdout, "2 parked or contested, which is not drift") {
		t.Errorf("verify: exit code %d\n%s%s", code, stdout, stderr)
	}
	for customer := range 100 {
		w.put(contestedOrder(100 + customer))
	}
	code, _, stderr := w.call("run", "--drain")
	if n := strings.Count(stderr, "several items claim one target"); code != ending.ExitDone || n != 1 {
		t.Errorf("run --drain over 100 records: exit code %d, %d lines of the contested target, want 1\n%s", code, n, stderr)
	}
	w.expectContested("contested:"+oracle.RuleID("order-by-id")+"/ORDER#a/METADATA", "CUSTOMER#001/ORDER#a", "item.contested", 102)
	for user := range 49 { // the winner leaves first
		w.delete(fmt.Sprintf("USER#%03d", user), "POST#1")
	}
	w.drain()
	w.expectParkedCodes(map[string]int{"item.contested": 1})
}

// expectContested looks at one line of the list of contested targets.
func (w *world) expectContested(id, winner, code string, claimants int) {
	w.t.Helper()
	exit, stdout, stderr := w.call("parked", "list", "--json")
	var listed struct{ Parked []parked.Entry }
	if err := json.Unmarshal([]byte(stdout), &listed); exit != ending.ExitDone || err != nil {
		w.t.Fatalf("parked list: exit code %d, %v, %s%s", exit, err, stdout, stderr)
	}
	lines := 0
	for _, e := range listed.Parked {
		if e.ID != id {
			continue
		}
		lines++
		if e.Winner != winner || e.Code != code || e.ClaimantsTotal != claimants ||
			len(e.Claimants) != min(claimants, parked.ListedClaimantsMax) {
			w.t.Errorf("%s: %+v, want %s with %d claimants, of which %s wins", id, e, code, claimants, winner)
		}
	}
	if lines != 1 {
		w.t.Errorf("parked list has %d lines of %s, want 1:\n%s", lines, id, stdout)
	}
}

// expectParkedCodes compares what `status` counts.
func (w *world) expectParkedCodes(want map[string]int) {
	w.t.Helper()
	exit, stdout, stderr := w.call("status", "--json")
	var status struct {
		Parked struct{ ByCode map[string]int }
	}
	if err := json.Unmarshal([]byte(stdout), &status); exit != ending.ExitDone || err != nil {
		w.t.Fatalf("status: exit code %d, %v, %s%s", exit, err, stdout, stderr)
	}
	if fmt.Sprint(status.Parked.ByCode) != fmt.Sprint(want) {
		w.t.Errorf("status counts %v, want %v", status.Parked.ByCode, want)
	}
}
