package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/dynamill/dynamill/replay/verify"
)

func TestOutcomeOfAVerification(t *testing.T) {
	late := map[string]int64{verify.WhyRecords: 2}
	for name, c := range map[string]struct {
		verifyFacts
		want     verifyOutcome
		exitCode int
		says     string
	}{
		"everything is right":           {verifyFacts{}, outcomeClean, exitDone, ""},
		"proven drift":                  {verifyFacts{drift: 1}, outcomeDrift, exitDrift, "drift found: 1 difference"},
		"drift beside undecided":        {verifyFacts{drift: 1, undecided: late, parked: 1}, outcomeDrift, exitDrift, "drift found"},
		"records not applied":           {verifyFacts{undecided: late}, outcomeUndecided, exitUndecided, "2 not decided: " + verify.WhyRecords + "; let the stream be applied"},
		"records, and no process":       {verifyFacts{undecided: late, unfollowed: true}, outcomeUndecided, exitUndecided, noFollower},
		"too short a wait, no process":  {verifyFacts{undecided: map[string]int64{"x": 1}, unfollowed: true}, outcomeUndecided, exitUndecided, noFollower},
		"a difference that is parked":   {verifyFacts{parked: 3}, outcomeUndecided, exitUndecided, "3 left out, because it is parked"},
		"a rule that is seeded":         {verifyFacts{waiting: []string{"member-count"}}, outcomeUndecided, exitUndecided, "member-count"},
		"no process, nothing undecided": {verifyFacts{unfollowed: true}, outcomeClean, exitDone, ""},
	} {
		if got := c.outcome(); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		err := c.failure(false)
		if c.exitCode == exitDone {
			if err != nil {
				t.Errorf("%s: ends with %v", name, err)
			}
			continue
		}
		if exitCode(err) != c.exitCode || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "no drift") {
			t.Errorf("%s: exit code %d, %v; want %d and %q", name, exitCode(err), err, c.exitCode, c.says)
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
