package verify

import (
	"cmp"
	"context"
	"time"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/pace"
)

// verdict is what a reading makes of a suspect.
type verdict uint8

const (
	cleared verdict = iota + 1 // nothing is wrong (any more)
	parked                     // it is wrong, and set aside with its reason
	again                      // it has to be read again
	lasting                    // it stood still long enough: drift, unless a record is still to come
	proven                     // drift, whatever is still to come
)

// openSuspect is a suspect that is not decided yet.
type openSuspect struct {
	suspect drift.Suspect
	last    *drift.Reading // as it has been since at; nil if it never stood still
	at      time.Time
	why     string         // it is not decided
	shown   *drift.Finding // by the newest reading that found a difference; nil if none did
}

// WhyRecords is the reason of suspects for which the stream must be applied.
const WhyRecords = "the stream holds records of it that are not applied yet"

// The other reasons why a suspect is not decided.
const (
	whyUnsettled     = "it was not watched for as long as --settle"
	whyMoved         = "it kept changing"
	whyNoCheckpoints = "the stream holds records of it, and no checkpoints tell whether they are applied"
)

// undecidedReasons says, for each reason why a suspect is undecided, what the suspect waits for (by default the
// reason itself) and what the user can do if it stays undecided.
var undecidedReasons = map[string]struct{ awaits, remedy string }{
	WhyRecords: {awaits: "records of the stream that may explain it must be applied",
		remedy: "let the stream be applied and verify again, or give a longer --wait"},
	whyUnsettled:     {awaits: mustStay, remedy: "give a --wait of at least twice --settle"},
	whyMoved:         {awaits: mustStay, remedy: lessTraffic},
	whyTooFast:       {remedy: lessTraffic},
	whyEntryMoved:    {remedy: lessTraffic},
	whyEntries:       {remedy: "use --repair, and verify again"},
	whyNoCheckpoints: {remedy: "say with --lag-max how far the function that follows the stream lags at most"},
}

const (
	mustStay    = "it must stay the same for --settle"
	lessTraffic = "verify again when less is written, or give a longer --wait"
)

// Awaited returns what a suspect waits for that is undecided for a reason.
func Awaited(why string) string { return cmp.Or(undecidedReasons[why].awaits, why) }

// Remedy returns what the user can do about suspects that stay undecided for a reason.
func Remedy(why string) string {
	return cmp.Or(undecidedReasons[why].remedy, "verify again later, or give a longer --wait")
}

// decide records a reading and returns the verdict on the suspect.
func (o *openSuspect) decide(r drift.Reading, now time.Time, settle time.Duration) verdict {
	if len(r.Findings) > 0 {
		o.shown = &r.Findings[0]
	}
	switch {
	case r.Waiting != "" && r.Final && len(r.Findings) > 0:
		return parked
	case r.Waiting != "" && (len(r.Findings) > 0 || r.Suspect.Kind == drift.Sum):
		o.last, o.why = nil, r.Waiting
		return again
	case len(r.Findings) == 0:
		return cleared
	case o.last == nil:
		o.last, o.at, o.why = &r, now, whyUnsettled
		return again
	case o.last.State != r.State:
		o.last, o.at, o.why = &r, now, whyMoved
		return again
	case now.Sub(o.at) < settle:
		return again
	}
	o.last = &r
	if r.Torn || r.Suspect.Kind == drift.Sum && !r.Lags {
		// Ledger and accumulators move in one transaction, so this is no lag: reads may tear it, but not for so long. And a
		// torn row holds up the very records that would have to be waited for.
		return proven
	}
	return lasting
}

// reader reads suspects as they are now: Auditor.Read, or readSums.
type reader = func(context.Context, []drift.Suspect) ([]drift.Reading, error)

// rounds reads suspects until each is decided or the wait is over, and returns the drift.
func (v *run) rounds(ctx context.Context, suspects []drift.Suspect, wait *wait, read reader) ([]drift.Reading, error) {
	var found []drift.Reading
	left := make([]*openSuspect, len(suspects))
	for i, s := range suspects {
		left[i] = &openSuspect{suspect: s, why: whyUnsettled}
	}
	for len(left) > 0 {
		proven, rest, err := v.round(ctx, left, read)
		if err != nil {
			return nil, err
		}
		found = append(found, proven...)
		v.progress.Open -= int64(len(left) - len(rest))
		v.showProgress("looking again")
		if left = rest; len(left) == 0 {
			break
		}
		next := wait.next(time.Now())
		if next <= 0 {
			break
		}
		if err := v.await(ctx, left, next); err != nil {
			return nil, err
		}
	}
	for _, o := range left {
		v.leaveUndecided(o)
	}
	return found, nil
}

// round reads suspects once. It returns those that are drift, and those that must be read again.
func (v *run) round(ctx context.Context, left []*openSuspect, read reader) (found []drift.Reading, rest []*openSuspect, err error) {
	suspects := make([]drift.Suspect, len(left))
	for i, o := range left {
		suspects[i] = o.suspect
	}
	applied, err := v.applied(ctx)
	if err != nil {
		return nil, nil, err
	}
	readings, err := read(ctx, suspects)
	if err != nil {
		return nil, nil, err
	}
	now := time.Now()
	var unexplained []*openSuspect
	for i, o := range left {
		switch o.decide(readings[i], now, v.Settle) {
		case cleared:
			v.summary.Cleared++
		case parked:
			v.summary.Parked++
		case proven:
			found = append(found, *o.last)
		case lasting:
			unexplained = append(unexplained, o)
		case again:
			rest = append(rest, o)
		}
	}
	explained, err := v.explainedByStream(ctx, applied, unexplained)
	if err != nil {
		return nil, nil, err
	}
	for _, o := range unexplained {
		switch {
		case !explained[o]:
			found = append(found, *o.last)
		case applied.Blind:
			o.why = whyNoCheckpoints
			v.leaveUndecided(o)
		default:
			o.why = WhyRecords
			rest = append(rest, o)
		}
	}
	return found, rest, nil
}

// leaveUndecided counts a suspect as not decided, and keeps some of each reason as examples.
func (v *run) leaveUndecided(o *openSuspect) {
	v.summary.Undecided[o.why]++
	if v.summary.Undecided[o.why] > undecidedExamplesMax {
		return
	}
	example := Undecided{Why: o.why, Finding: drift.Finding{Rule: o.suspect.Rule, Kind: o.suspect.Kind, Item: o.suspect.Item,
		Group: o.suspect.Group}}
	if o.shown != nil {
		example.Finding = *o.shown
	}
	v.summary.Examples = append(v.summary.Examples, example)
}

// applied is how far the stream is applied before suspects are read: a later record may be why they look wrong.
func (v *run) applied(ctx context.Context) (applied Applied, err error) {
	if v.Pending != nil {
		applied, err = v.Pending.Applied(ctx)
		v.summary.Blind = applied.Blind
	}
	return applied, err
}

// explainedByStream finds the suspects that a record may explain which was not applied when they were read.
func (v *run) explainedByStream(ctx context.Context, applied Applied, unexplained []*openSuspect) (map[*openSuspect]bool, error) {
	explained := map[*openSuspect]bool{}
	if v.Pending == nil || len(unexplained) == 0 {
		return explained, nil
	}
	concerned := map[string][]*openSuspect{}
	for _, o := range unexplained {
		for _, token := range o.last.Concerns {
			concerned[token] = append(concerned[token], o)
		}
	}
	err := v.Pending.Unapplied(ctx, applied, func(rec *change.Record) error {
		v.Auditor.Concerns(rec, func(token string) {
			for _, o := range concerned[token] {
				explained[o] = true
			}
			delete(concerned, token)
		})
		return nil
	})
	return explained, err
}

// wait bounds how long one set of suspects is waited for.
type wait struct {
	ends   time.Time     // of the set's part of Config.Wait
	least  time.Duration // paused for this set also after ends: what proving drift takes
	settle time.Duration
	paused time.Duration
}

// next is how long to pause before the suspects are read again; 0 when the wait is over.
func (w *wait) next(now time.Time) time.Duration {
	pause := min(w.settle, max(w.ends.Sub(now), w.least-w.paused, 0))
	w.paused += pause
	return pause
}

// waits divides Config.Wait between the suspects of a chunk that are judged by themselves and its sums. Chunks share it:
// when it is over, each later set still gets what proving drift takes.
func (v *run) waits(singles, sums bool) (forSingles, forSums *wait) {
	if v.waitEnds.IsZero() {
		v.waitEnds = time.Now().Add(v.Wait)
	}
	share := v.Wait
	if singles && sums {
		share /= 2
	}
	least := min(provingIntervals*v.Settle, share)
	forSingles = &wait{ends: v.waitEnds, least: least, settle: v.Settle}
	forSums = &wait{ends: v.waitEnds, least: least, settle: v.Settle}
	if sums {
		forSingles.ends = v.waitEnds.Add(-least)
	}
	return forSingles, forSums
}

const (
	// provingIntervals is how many times Config.Settle each set of suspects gets: one between two readings, and
	// one more if the first reading came amid a change.
	provingIntervals  = 2
	waitProgressEvery = time.Second
)

// await pauses, and reports meanwhile what it waits for.
func (v *run) await(ctx context.Context, left []*openSuspect, pauseTime time.Duration) error {
	v.progress.Reasons = map[string]int64{}
	for _, o := range left {
		v.progress.Reasons[o.why]++
	}
	defer func() { v.progress.Reasons = nil }()
	for ends := time.Now().Add(pauseTime); ; {
		rest := time.Until(ends)
		if rest <= 0 {
			return nil
		}
		v.progress.WaitLeft = max(time.Until(v.waitEnds), 0)
		v.showProgress(PhaseWaiting)
		if pace.Sleep(ctx, min(rest, waitProgressEvery)) != nil {
			return ctx.Err()
		}
	}
}
