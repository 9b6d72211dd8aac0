package verifying

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/followed"
	"github.com/dynamill/dynamill/internal/printable"
	"github.com/dynamill/dynamill/internal/replay/verify"
)

// outcome is the result of a verification, in one word.
type outcome string

// The outcomes that there are.
const (
	outcomeClean     outcome = "clean"     // everything that was asked for was compared, and nothing drifts
	outcomeDrift     outcome = "drift"     // at least one difference is proven, and is left
	OutcomeUndecided outcome = "undecided" // no drift is proven, and something was not compared or not decided
)

// facts are the facts that decide the outcome.
type facts struct {
	drift      int64            // proven, and not repaired
	undecided  map[string]int64 // differences that could not be judged, by the reason
	parked     int64            // differences that are left out because something is parked
	waiting    []string         // rules that are not judged
	unfollowed bool             // no process applies the stream
}

// outcome decides. Proven drift wins, even if other differences are undecided.
func (v facts) outcome() outcome {
	switch {
	case v.drift > 0:
		return outcomeDrift
	case len(v.undecided) > 0 || v.parked > 0 || len(v.waiting) > 0:
		return OutcomeUndecided
	}
	return outcomeClean
}

// open names everything that was not decided, and the remedy of each.
func (v facts) open() []string {
	lines := []string{}
	for _, why := range slices.Sorted(maps.Keys(v.undecided)) {
		remedy := verify.Remedy(why)
		if why == verify.WhyRecords && v.unfollowed {
			remedy = followed.NoFollower
		}
		lines = append(lines, fmt.Sprintf("%s not decided: %s; %s", printable.Grouped(v.undecided[why]), why, remedy))
	}
	if v.unfollowed && len(v.undecided) > 0 && v.undecided[verify.WhyRecords] == 0 {
		lines = append(lines, followed.NoFollower)
	}
	if v.parked > 0 {
		lines = append(lines, fmt.Sprintf("%s left out, because it is parked: see `dynamill parked list`", printable.Grouped(v.parked)))
	}
	if len(v.waiting) > 0 {
		lines = append(lines, fmt.Sprintf("not all judged, as they are still being brought into force or taken back: %s; let `dynamill run` "+
			"or `dynamill replay` finish that", strings.Join(v.waiting, ", ")))
	}
	return lines
}

// failure is the ending of a verification; nil if everything is right.
func (v facts) failure(repair bool) error {
	switch outcome := v.outcome(); {
	case outcome == outcomeDrift && repair:
		return &ending.Failure{Code: ending.ExitDrift, Err: fmt.Errorf("drift left: %s", printable.Counted(v.drift, "difference"))}
	case outcome == outcomeDrift:
		return &ending.Failure{Code: ending.ExitDrift, Err: fmt.Errorf("drift found: %s", printable.Counted(v.drift, "difference"))}
	case outcome == OutcomeUndecided:
		return &ending.Failure{Code: ending.ExitUndecided, Err: fmt.Errorf("undecided: %s", strings.Join(v.open(), "; "))}
	}
	return nil
}

// judgedRules are the rules of a list that --rule selects.
func judgedRules(names, selected []string) []string {
	names = slices.Compact(slices.Sorted(slices.Values(names))) // a changed rule waits, and so does what it was
	if len(selected) == 0 {
		return names
	}
	return slices.DeleteFunc(names, func(name string) bool { return !slices.Contains(selected, name) })
}
