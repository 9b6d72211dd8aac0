package monitor

import (
	"strings"
	"testing"
	"time"
)

func TestTheStateFollowsFromTheFacts(t *testing.T) {
	for want, facts := range map[State]Facts{
		Starting:     {Seeding: true, CaughtUp: true, Throttled: true},
		ShardSkipped: {Started: true, Seeding: true, Throttled: true, Skipped: true},
		Throttled:    {Started: true, Seeding: true, Throttled: true},
		Seeding:      {Started: true, Seeding: true},
		CatchingUp:   {Started: true},
		Following:    {Started: true, CaughtUp: true},
	} {
		var h Holder
		if got := h.Status(facts, time.Now()); got.State != want || got.Remedy != want.Remedy() {
			t.Errorf("%+v is %q, want %q", facts, got.State, want)
		}
	}
}

func TestBudgetThatHoldsBackWorkIsNamedInTheRemedy(t *testing.T) {
	facts := Facts{Started: true, Seeding: true, Waits: []string{"fan-outs", "seeding"}}
	var h Holder
	if got := h.Status(facts, time.Now()); got.State != Throttled ||
		!strings.HasPrefix(got.Remedy, "--budget holds back fan-outs and seeding: ") {
		t.Errorf("%q, remedy %q", got.State, got.Remedy)
	}
	facts.Throttled = true
	if got := h.Status(facts, time.Now()); got.Remedy != Throttled.Remedy() {
		t.Errorf("while DynamoDB throttles, the remedy is %q", got.Remedy)
	}
	facts.Skipped = true
	if got := h.Status(facts, time.Now()); got.State != ShardSkipped || got.Remedy != ShardSkipped.Remedy() {
		t.Errorf("%q, remedy %q", got.State, got.Remedy)
	}
}

func TestExpiredCredentialsGoBeforeWorkAndAnEndBeforeEverything(t *testing.T) {
	var h Holder
	facts, now := Facts{Started: true, CaughtUp: true}, time.Unix(1000, 0)
	expect := func(want State, wantChanged bool, since int64) {
		t.Helper()
		status, changed := h.Note(facts, now)
		if status.State != want || changed != wantChanged || status.Since.Unix() != since {
			t.Errorf("%q since %d, changed %v; want %q since %d, %v", status.State, status.Since.Unix(), changed, want, since, wantChanged)
		}
		now = now.Add(time.Second)
	}
	expect(Following, true, 1000)
	expect(Following, false, 1000)
	h.SetExpired(true)
	if got := h.Status(facts, now); got.State != CredentialsExpired || !got.Since.Equal(now) {
		t.Errorf("%q since %s before it was noted", got.State, got.Since)
	}
	expect(CredentialsExpired, true, 1002)
	h.SetExpired(false)
	expect(Following, true, 1003)
	h.SetExpired(true)
	h.End(RecordsLost, "do this")
	h.End(Stopped, "")
	expect(RecordsLost, true, 1004)
	if got := h.Status(facts, now); got.Remedy != "do this" {
		t.Errorf("the remedy is %q", got.Remedy)
	}
}

func TestTheFirstStateIsStartingAndNoChange(t *testing.T) {
	var h Holder
	if status, changed := h.Note(Facts{}, time.Now()); status.State != Starting || changed {
		t.Errorf("%q, changed %v", status.State, changed)
	}
}

func TestEveryStateThatWaitsForAPersonHasARemedy(t *testing.T) {
	for _, state := range States() {
		wants := state == Throttled || state.Urgent()
		if wants != (state.Remedy() != "") {
			t.Errorf("%q has the remedy %q", state, state.Remedy())
		}
	}
}
