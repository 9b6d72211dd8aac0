package verify

import (
	"context"
	"time"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/drift"
)

// verdict is what a reading makes of a suspect.
type verdict uint8

const (
	cleared verdict = iota + 1 // nothing is wrong (any more)
	parked                     // it is wrong, and set aside with its reason
	again                      // it has to be read again
	stands                     // it stood still long enough: drift, unless a record is still to come
	proven                     // drift, whatever is still to come
)

// suspense is a suspect that is not decided yet.
type suspense struct {
	suspect drift.Suspect
	last    *drift.Reading // as it has been since at; nil if it never stood still
	at      time.Time
	why     string // it is not decided
}

// The reasons why a suspect is not decided.
const (
	whyMoved   = "it kept changing"
	whyRecords = "the stream holds records of it that are not applied yet"
	whyBlind   = "the stream holds records of it, and no checkpoints tell whether they are applied"
)

// Remedy is what helps where suspects are undecided for a reason.
func Remedy(why string) string {
	switch why {
	case whyBlind:
		return "say with --lag-max how far who follows the stream is behind at most"
	case whyRecords:
		return "let the stream be applied, and verify again, or give a longer --patience"
	case whyEntries:
		return "use --repair, and verify again"
	case whyMoved, whyTooFast, whyEntryMoved:
		return "verify again when less is written, or give a longer --patience"
	}
	return "verify again later, or give a longer --patience"
}

// decide is what a reading at a moment makes of a suspect.
func (o *suspense) decide(r drift.Reading, now time.Time, settle time.Duration) verdict {
	switch {
	case r.Waiting != "" && r.Final && len(r.Findings) > 0:
		return parked
	case r.Waiting != "" && (len(r.Findings) > 0 || r.Suspect.Kind == drift.Sum):
		o.last, o.why = nil, r.Waiting
		return again
	case len(r.Findings) == 0:
		return cleared
	case o.last == nil || o.last.State != r.State:
		o.last, o.at, o.why = &r, now, whyMoved
		return again
	case now.Sub(o.at) < settle:
		return again
	}
	o.last = &r
	if r.Torn || r.Suspect.Kind == drift.Sum && !r.Lags {
		// What the ledger holds and what the accumulators hold move in one
		// transaction: this is no lag. (Reads may see one half of it before the
		// other, but not for so long.) And a torn row holds up the very records
		// that would have to be waited for.
		return proven
	}
	return stands
}

// rounds reads suspects until each is decided or patience ends, and returns the drift.
func (v *run) rounds(ctx context.Context, suspects []drift.Suspect, read func(context.Context, []drift.Suspect) ([]drift.Reading, error)) ([]drift.Reading, error) {
	var found []drift.Reading
	left := make([]*suspense, len(suspects))
	for i, s := range suspects {
		left[i] = &suspense{suspect: s, why: whyMoved}
	}
	deadline := time.Now().Add(max(v.Patience, v.Settle))
	for round := 0; len(left) > 0; round++ {
		last := round > 1 && time.Now().After(deadline)
		asked := make([]drift.Suspect, len(left))
		for i, o := range left {
			asked[i] = o.suspect
		}
		applied, err := v.applied(ctx)
		if err != nil {
			return nil, err
		}
		readings, err := read(ctx, asked)
		if err != nil {
			return nil, err
		}
		now := time.Now()
		var rest, standing []*suspense
		for i, o := range left {
			switch o.decide(readings[i], now, v.Settle) {
			case cleared:
				v.summary.Cleared++
			case parked:
				v.summary.Parked++
			case proven:
				found = append(found, *o.last)
			case stands:
				standing = append(standing, o)
			case again:
				rest = append(rest, o)
			}
		}
		held, err := v.held(ctx, applied, standing)
		if err != nil {
			return nil, err
		}
		for _, o := range standing {
			switch {
			case !held[o]:
				found = append(found, *o.last)
			case v.blind():
				v.summary.Undecided[whyBlind]++
			default:
				o.why = whyRecords
				rest = append(rest, o)
			}
		}
		v.progress.Open -= int64(len(left) - len(rest))
		v.tell("looking again")
		if left = rest; last {
			break
		}
		if len(left) > 0 {
			if err := pause(ctx, v.Settle); err != nil {
				return nil, err
			}
		}
	}
	for _, o := range left {
		v.summary.Undecided[o.why]++
	}
	return found, nil
}

// blind reports whether waiting for records to be applied is in vain.
func (v *run) blind() bool {
	b, ok := v.Pending.(interface{ Blind() bool })
	return ok && b.Blind()
}

// applied is how far the stream is applied before suspects are read: a record
// that is applied after that may be why they look wrong.
func (v *run) applied(ctx context.Context) (Applied, error) {
	if v.Pending == nil {
		return Applied{}, nil
	}
	return v.Pending.Applied(ctx)
}

// held finds the suspects that a record may be the cause of which is in the
// stream by now, and was not applied when they were read.
func (v *run) held(ctx context.Context, applied Applied, standing []*suspense) (map[*suspense]bool, error) {
	held := map[*suspense]bool{}
	if v.Pending == nil || len(standing) == 0 {
		return held, nil
	}
	concerned := map[string][]*suspense{}
	for _, o := range standing {
		for _, token := range o.last.Concerns {
			concerned[token] = append(concerned[token], o)
		}
	}
	err := v.Pending.Unapplied(ctx, applied, func(rec *change.Record) error {
		v.Auditor.Concerns(rec, func(token string) {
			for _, o := range concerned[token] {
				held[o] = true
			}
			delete(concerned, token)
		})
		return nil
	})
	return held, err
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
