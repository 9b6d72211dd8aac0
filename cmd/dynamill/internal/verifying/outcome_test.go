package verifying

import (
	"slices"
	"strings"
	"testing"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/followed"
	"github.com/dynamill/dynamill/internal/replay/verify"
)

func TestOutcomeOfAVerification(t *testing.T) {
	late := map[string]int64{verify.WhyRecords: 2}
	for name, c := range map[string]struct {
		facts
		want     outcome
		exitCode int
		says     string
	}{
		"everything is right":    {facts{}, outcomeClean, ending.ExitDone, ""},
		"proven drift":           {facts{drift: 1}, outcomeDrift, ending.ExitDrift, "drift found: 1 difference"},
		"drift beside undecided": {facts{drift: 1, undecided: late, parked: 1}, outcomeDrift, ending.ExitDrift, "drift found"},
		"records not applied": {facts{undecided: late}, OutcomeUndecided, ending.ExitUndecided,
			"2 not decided: " + verify.WhyRecords + "; let the stream be applied"},
		"records, and no process": {facts{undecided: late, unfollowed: true}, OutcomeUndecided, ending.ExitUndecided, followed.NoFollower},
		"too short a wait, no process": {facts{undecided: map[string]int64{"x": 1}, unfollowed: true}, OutcomeUndecided, ending.ExitUndecided,
			followed.NoFollower},
		"a difference that is parked":   {facts{parked: 3}, OutcomeUndecided, ending.ExitUndecided, "3 left out, because their items are parked"},
		"a rule that is seeded":         {facts{waiting: []string{"member-count"}}, OutcomeUndecided, ending.ExitUndecided, "member-count"},
		"no process, nothing undecided": {facts{unfollowed: true}, outcomeClean, ending.ExitDone, ""},
	} {
		if got := c.outcome(); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		err := c.failure(false)
		if c.exitCode == ending.ExitDone {
			if err != nil {
				t.Errorf("%s: ends with %v", name, err)
			}
			continue
		}
		if ending.ExitCode(err) != c.exitCode || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "no drift") {
			t.Errorf("%s: exit code %d, %v; want %d and %q", name, ending.ExitCode(err), err, c.exitCode, c.says)
		}
	}
}

func TestOnlySelectedRulesCountAsNotJudged(t *testing.T) {
	waiting := []string{"b", "a", "b"}
	if got := judgedRules(waiting, nil); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("without --rule: %v", got)
	}
	if got := judgedRules(waiting, []string{"a", "c"}); !slices.Equal(got, []string{"a"}) {
		t.Errorf("with --rule a and c: %v", got)
	}
}
