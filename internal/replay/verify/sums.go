package verify

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/drift"
)

// expect is what is known of an aggregate that is suspect.
type expect struct {
	ledger bool   // the scan found its accumulators to be wrong: the ledger must be added up to know
	known  bool   // it was added up: sum is right as long as the accumulators do not change
	sum    string // of the ledger
	at     int64  // count of operations at that time
}

// wrongEntry is a ledger entry that was proven to be wrong.
type wrongEntry struct {
	Item   change.Key
	State  string // as it was proven
	Adjust []drift.Amount
}

const (
	driftedMax     = 200_000 // wrong ledger entries that are read again for the sums
	driftedAtOnce  = 1000    // of them in memory
	ledgerScansMax = 4       // times that the ledger is added up for one chunk of suspects
)

const (
	whyTooFast    = "it is changing too fast to be judged"
	whyEntries    = "too many ledger entries are wrong to tell: repair those first"
	whyEntryMoved = "a ledger entry of it is wrong, and was written since that was proven"
)

// noteEntries keeps in mind which ledger entries are wrong, and returns the aggregates that go by them.
func (v *run) noteEntries(proven []drift.Reading) ([]drift.Suspect, error) {
	var touched []drift.Suspect
	seen := map[string]bool{}
	for _, r := range proven {
		if len(r.Fix.Adjust) == 0 {
			continue
		}
		if v.Mender == nil && v.drifted.count <= driftedMax {
			if err := v.drifted.add(wrongEntry{r.Suspect.Item, r.State, r.Fix.Adjust}); err != nil {
				return nil, err
			}
		}
		for _, a := range r.Fix.Adjust {
			if !seen[a.ID()] {
				seen[a.ID()] = true
				touched = append(touched, drift.Suspect{Kind: drift.Sum, Rule: a.Rule, Group: a.Group})
			}
		}
	}
	return touched, nil
}

// readSums judges aggregates and what displays them. If accumulators are suspect it scans the ledger, whose sum is exact if
// their counts of operations stand still from before to after that.
func (v *run) readSums(ctx context.Context, suspects []drift.Suspect) ([]drift.Reading, error) {
	operations, err := v.Auditor.Operations(ctx, suspects)
	if err != nil {
		return nil, err
	}
	want, before := map[string]string{}, map[string]int64{}
	scan, enough := false, v.scans == ledgerScansMax
	for i, s := range suspects {
		id := s.GroupID()
		e := v.sums[id]
		if !e.ledger {
			continue
		}
		before[id], want[id] = operations[i], "0"
		if e.known && e.at == operations[i] {
			want[id] = e.sum
		} else {
			e.known, scan = false, true
			v.sums[id] = e
		}
	}
	if scan && !enough {
		v.scans++
		if err := v.addUpLedger(ctx, want); err != nil {
			return nil, err
		}
	}
	ledger := maps.Clone(want)
	lacks, err := v.adjust(ctx, want)
	if err != nil {
		return nil, err
	}
	readings, err := v.Auditor.ReadSums(ctx, suspects, want, before)
	if err != nil {
		return nil, err
	}
	for i, s := range suspects {
		id := s.GroupID()
		e := v.sums[id]
		switch {
		case !e.ledger:
		case !e.known && enough:
			readings[i].Waiting = whyTooFast
		case readings[i].Waiting == "":
			e.known, e.sum, e.at = true, ledger[id], before[id]
		case !readings[i].Final:
			e.known = false
		}
		v.sums[id] = e
		lacks[id].addTo(&readings[i])
		if v.drifted.count > driftedMax && e.ledger {
			readings[i].Waiting = whyEntries
		}
	}
	return readings, nil
}

// addUpLedger adds up what the ledger contributes to the aggregates that are not known.
func (v *run) addUpLedger(ctx context.Context, want map[string]string) error {
	if v.Rows == nil {
		return nil
	}
	var mu sync.Mutex
	v.showProgress("adding up the ledger")
	adding := adder{auditor: v.Auditor, sums: want}
	defer adding.finish()
	return v.Rows.Each(ctx, func(row change.Item) error {
		v.Auditor.Contributions(row, func(a drift.Amount) {
			id := a.ID()
			if e := v.sums[id]; !e.ledger || e.known {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			adding.add(id, a.Value)
		})
		return nil
	})
}

// adder adds amounts to sums, each of which has a name. The sum of an aggregate with many values is a long text. So an adder keeps
// amounts as they come until they are together longer than their sum: then one more amount costs the same however long the sum is.
type adder struct {
	auditor Auditor
	sums    map[string]string
	kept    map[string]*keptAmounts
}

// keptAmounts are those that are not in their sum yet.
type keptAmounts struct {
	amounts []string
	bytes   int
}

// add adds to a sum, if there is one of this name.
func (a *adder) add(id, amount string) {
	sum, ok := a.sums[id]
	if !ok {
		return
	}
	kept := a.kept[id]
	if kept == nil {
		kept = &keptAmounts{}
		if a.kept == nil {
			a.kept = map[string]*keptAmounts{}
		}
		a.kept[id] = kept
	}
	kept.amounts, kept.bytes = append(kept.amounts, amount), kept.bytes+len(amount)
	if kept.bytes > len(sum) {
		a.sums[id] = a.auditor.AddAmounts(sum, kept.amounts)
		clear(kept.amounts)
		kept.amounts, kept.bytes = kept.amounts[:0], 0
	}
}

// finish adds what is kept.
func (a *adder) finish() {
	for id, kept := range a.kept {
		if len(kept.amounts) > 0 {
			a.sums[id] = a.auditor.AddAmounts(a.sums[id], kept.amounts)
		}
	}
	a.kept = nil
}

// lack is what wrong entries have to do with an aggregate.
type lack struct {
	tokens []string // of those that were added to what the ledger holds
	moved  bool     // one is not as it was proven: part of what it lacks may be lag
}

// addTo notes it in a reading. What the ledger holds and what the accumulators
// hold move together; what entries lack may still come, by records of theirs.
func (l *lack) addTo(r *drift.Reading) {
	if l == nil {
		return
	}
	if l.moved && r.Waiting == "" {
		r.Waiting = whyEntryMoved
	}
	if r.Suspect.Kind == drift.Sum {
		r.Lags, r.Concerns = len(l.tokens) > 0, nil
	}
	r.Concerns = append(r.Concerns, l.tokens...)
}

// adjust adds to sums of the ledger what wrong entries lack. It reads those again every time: what an entry lacks that was
// written since it was proven is partly a lag.
func (v *run) adjust(ctx context.Context, want map[string]string) (map[string]*lack, error) {
	lacks := map[string]*lack{}
	if v.drifted.count == 0 || len(want) == 0 {
		return lacks, nil
	}
	if err := v.drifted.rewind(); err != nil {
		return nil, err
	}
	adding := adder{auditor: v.Auditor, sums: want}
	defer adding.finish()
	for {
		some, err := v.drifted.next(driftedAtOnce)
		if err != nil || len(some) == 0 {
			return lacks, err
		}
		some = slices.DeleteFunc(some, func(e wrongEntry) bool {
			return !slices.ContainsFunc(e.Adjust, func(a drift.Amount) bool { _, ok := want[a.ID()]; return ok })
		})
		entries := make([]drift.Suspect, len(some))
		for i, e := range some {
			entries[i] = drift.Suspect{Kind: drift.Entry, Item: e.Item}
		}
		readings, err := v.Auditor.Read(ctx, entries)
		if err != nil {
			return nil, err
		}
		for i, r := range readings {
			for _, a := range r.Fix.Adjust {
				id := a.ID()
				if _, wanted := want[id]; !wanted {
					continue
				}
				if lacks[id] == nil {
					lacks[id] = &lack{}
				}
				if r.State != some[i].State {
					lacks[id].moved = true
					continue
				}
				adding.add(id, a.Value)
				lacks[id].tokens = append(lacks[id].tokens, drift.KeyToken(r.Suspect.Item))
			}
		}
	}
}
