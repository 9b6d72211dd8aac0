package projections

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"

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

// recordedLimiter adds up what was waited for and what was paid.
type recordedLimiter struct {
	mu             sync.Mutex
	waited, paid   int
	refusal        error
	waits, overdue int
}

func (l *recordedLimiter) Wait(_ context.Context, units int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waited += units
	l.waits++
	return l.refusal
}

func (l *recordedLimiter) Pay(units int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.paid += units
	if units <= 0 {
		l.overdue++
	}
}

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
	w := newWorld(t, meteredRules)
	limiter := &recordedLimiter{}
	e, err := Open(w.ctx, Config{Client: w.sim, Table: "app", Rules: loadRules(t, meteredRules), Limiter: limiter})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Seed(w.ctx, nil); err != nil {
		t.Fatal(err)
	}
	w.writeComments()
	_, before := totals(e.RuleStats())
	waited, paid, usage := limiter.waited, limiter.paid, w.sim.Usage()
	w.drain(e, 0)
	w.expectNoDrift()
	used := w.sim.Usage().Sub(usage).WriteUnits
	_, after := totals(e.RuleStats())
	// No other writer was there, so nothing was refused: what the rules are charged is what was used.
	if math.Abs(after-before-used) > 1e-6 || used == 0 {
		t.Errorf("the rules are charged %.3f write units, the tables %.3f", after-before, used)
	}
	if got := float64(limiter.waited - waited + limiter.paid - paid); got != used || limiter.paid == paid || limiter.overdue > 0 {
		t.Errorf("waited for %d and paid %d write units (%d times nothing), used %.0f", limiter.waited-waited, limiter.paid-paid, limiter.overdue,
			used)
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

func TestALimiterThatEndsLeavesTheRecordsUndone(t *testing.T) {
	w := newWorld(t, meteredRules)
	limiter := &recordedLimiter{}
	e, err := Open(w.ctx, Config{Client: w.sim, Table: "app", Rules: loadRules(t, meteredRules), Limiter: limiter})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Seed(w.ctx, nil); err != nil {
		t.Fatal(err)
	}
	w.writeComments()
	limiter.refusal, limiter.waits = context.Canceled, 0
	usage := w.sim.Usage()
	done, err := e.Process(w.ctx, w.records())
	if !errors.Is(err, context.Canceled) || done == len(w.records()) && len(w.records()) > 0 {
		t.Errorf("done %d: %v", done, err)
	}
	if used := w.sim.Usage().Sub(usage).WriteUnits; used != 0 || limiter.waits == 0 {
		t.Errorf("%.0f write units were used after %d refusals", used, limiter.waits)
	}
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
