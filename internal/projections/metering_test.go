package projections

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/dynamill/dynamill/change"
)

const meteredRules = `
version: 1
table: { keys: [pk, sk] }
entities:
  User:    { key: { pk: "USER#${userId}", sk: "PROFILE" } }
  Post:    { key: { pk: "POST#${postId}", sk: "METADATA" } }
  Comment: { key: { pk: "POST#${postId}", sk: "COMMENT#${commentId}" } }
rules:
  comment-author: { copy: name as userName, from: User, to: Comment, by: userId }
  comment-count:  { count: Comment, as: Post.commentCount }
  user-comments:  { count: Comment, as: User.commentCount, by: userId }
`

func (w *world) writeComments() {
	w.put(change.Item{"pk": s("USER#u1"), "sk": s("PROFILE"), "name": s("Ann")})
	w.put(change.Item{"pk": s("POST#p1"), "sk": s("METADATA")})
	for _, id := range []string{"1", "2", "3"} {
		w.put(change.Item{"pk": s("POST#p1"), "sk": s("COMMENT#" + id), "userId": s("u1"), "text": s(string(make([]byte, 2500)))})
	}
}

func totals(all []RuleStats) (writes int64, units float64) {
	for _, r := range all {
		writes, units = writes+r.Writes, units+r.WriteUnits
	}
	return writes, units
}

func TestEveryWriteUnitIsCountedForARuleAndPaid(t *testing.T) {
	synctest.Test(t, countWriteUnits) // in which no time passes, so that the budget shows every unit
}

func countWriteUnits(t *testing.T) {
	w := newWorld(t, meteredRules)
	const budget = 1e9
	e, err := Open(w.ctx, Config{Client: w.sim, Table: "app", Rules: loadRules(t, meteredRules), Budget: budget})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Seed(w.ctx, nil); err != nil {
		t.Fatal(err)
	}
	w.writeComments()
	_, before := totals(e.RuleStats())
	left, usage := e.tables.Budget.Left(budget), w.sim.Usage()
	w.drain(e, 0)
	w.expectNoDrift()
	used := w.sim.Usage().Sub(usage).WriteUnits
	_, after := totals(e.RuleStats())
	// No other writer was there, so nothing was refused: what the rules are charged is what was used.
	if math.Abs(after-before-used) > 1e-6 || used == 0 {
		t.Errorf("the rules are charged %.3f write units, the tables %.3f", after-before, used)
	}
	if got := left - e.tables.Budget.Left(budget); got != int(used) {
		t.Errorf("%d write units are charged to the budget, used %.0f", got, used)
	}
	byName := map[string]RuleStats{}
	for _, r := range e.RuleStats() {
		byName[r.Rule] = r
	}
	// The position of the user, three references, and three copies into items of 3 KB.
	if got := byName["comment-author"]; got.Writes != 7 || got.WriteUnits != 1+3+3*3 {
		t.Errorf("comment-author wrote %d for %.1f units, want 7 for 13", got.Writes, got.WriteUnits)
	}
	// One accumulator and one displayed count each: the ledger transaction is shared evenly.
	for _, name := range []string{"comment-count", "user-comments"} {
		if got := byName[name]; got.Writes != 2 || got.WriteUnits != byName["comment-count"].WriteUnits || got.WriteUnits < 2 {
			t.Errorf("%s wrote %d for %.1f units, want 2 and as many units as the other", name, got.Writes, got.WriteUnits)
		}
	}
}

func TestRulesThatWroteNothingHaveStats(t *testing.T) {
	var names []string
	for _, r := range newWorld(t, meteredRules).engine(nil).RuleStats() {
		names = append(names, r.Rule)
	}
	if diff := cmp.Diff([]string{engineRule, "comment-author", "comment-count", "user-comments"}, names); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Work that waits for the budget ends with its context, and leaves the items as they are.
func TestWorkThatWaitsForBudgetEndsUndone(t *testing.T) {
	w := newWorld(t, meteredRules)
	e, err := Open(w.ctx, Config{Client: w.sim, Table: "app", Rules: loadRules(t, meteredRules), Budget: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Seed(w.ctx, nil); err != nil {
		t.Fatal(err)
	}
	w.writeComments()
	e.tables.Budget.Spend(1, true)
	e.tables.Budget.Spend(1e6, true) // beyond what is left, and beyond the share of background work
	usage := w.sim.Usage()
	ctx, cancel := context.WithCancel(w.ctx)
	cancel()
	keys := []change.Key{{Partition: "POST#p1", Sort: "COMMENT#1"}}
	if err := errors.Join(e.Rederive(ctx, keys), e.Work(ctx, "derive/1/0", keys)); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if used := w.sim.Usage().Sub(usage).WriteUnits; used != 0 {
		t.Errorf("%.0f write units were used", used)
	}
	w.drain(e, 0) // the stream's records do not wait
	w.expectNoDrift()
}

func TestRefusalsAreCountedForWhatTheySay(t *testing.T) {
	w := newWorld(t, meteredRules)
	e := w.seeded()
	w.writeComments()
	conflict, throttle := "TransactionConflict", "ThrottlingError"
	answers := []error{
		&ddb.TransactionCanceledException{CancellationReasons: []ddb.CancellationReason{{Code: &conflict}, {Code: &throttle}}},
		&ddb.ProvisionedThroughputExceededException{},
		&ddb.InternalServerError{},
	}
	before := e.Stats()
	e.tables.Client = &faulty{Client: w.sim, around: func(op string, pass func() error) error {
		if op == "TransactWriteItems" && len(answers) > 0 {
			err := answers[0]
			answers = answers[1:]
			return err
		}
		return pass()
	}}
	w.drain(e, 0)
	w.expectNoDrift()
	now := e.Stats()
	if now.Conflicts-before.Conflicts != 1 || now.Throttles-before.Throttles != 2 || now.Retries-before.Retries != 3 {
		t.Errorf("%d conflicts, %d throttles, %d retries, want 1, 2, 3",
			now.Conflicts-before.Conflicts, now.Throttles-before.Throttles, now.Retries-before.Retries)
	}
}
