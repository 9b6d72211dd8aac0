package verify

import (
	"context"
	"sync"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/drift"
)

// expect is what is known of an aggregate that is suspect.
type expect struct {
	ledger bool   // the scan found its accumulators to be wrong: the ledger must be added up to know
	known  bool   // it was added up: sum is right as long as nobody changes the accumulators
	sum    string // of the ledger, and of what wrong entries lack
	at     int64  // count of operations at that time
}

// driftedMax bounds how many wrong ledger entries are kept in mind for the sums.
const driftedMax = 200_000

// ledgerScansMax bounds how often the ledger is added up for one chunk of suspects.
const ledgerScansMax = 4

const whyTooFast = "it is changing too fast to be judged"

const whyEntries = "too many ledger entries are wrong to tell: repair those first"

// noteEntries keeps in mind which ledger entries are wrong, and returns the aggregates that go by them.
func (v *run) noteEntries(proven []drift.Reading) []drift.Suspect {
	var touched []drift.Suspect
	seen := map[string]bool{}
	for _, r := range proven {
		if len(r.Fix.Adjust) == 0 {
			continue
		}
		if len(v.drifted) <= driftedMax && v.Mender == nil {
			v.drifted = append(v.drifted, r.Suspect)
		}
		for _, a := range r.Fix.Adjust {
			if !seen[a.ID()] {
				seen[a.ID()] = true
				touched = append(touched, drift.Suspect{Kind: drift.Sum, Rule: a.Rule, Group: a.Group})
			}
		}
	}
	return touched
}

// suspectSum notes an aggregate whose accumulators are suspect.
func (v *run) suspectSum(s drift.Suspect) {
	if s.Kind == drift.Sum {
		v.sums[s.GroupID()] = expect{ledger: true}
	}
}

// forgetSums forgets the aggregates of a chunk but the last one: more of what displays it may be in the next.
func (v *run) forgetSums(last drift.Suspect) {
	for id := range v.sums {
		if id != last.GroupID() {
			delete(v.sums, id)
		}
	}
}

// readSums judges aggregates and what displays them. Where accumulators are
// suspect it scans the ledger: if their counts of operations stand still from
// before to after that, what the ledger adds up to is exact.
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
	readings, err := v.Auditor.ReadSums(ctx, suspects, want, before)
	if err != nil {
		return nil, err
	}
	for i, s := range suspects {
		id := s.GroupID()
		if e := v.sums[id]; e.ledger && !e.known && enough {
			readings[i].Waiting = whyTooFast
		} else if e.ledger && readings[i].Waiting == "" {
			e.known, e.sum, e.at = true, want[id], before[id]
			v.sums[id] = e
		} else if e.ledger && !readings[i].Final {
			e.known = false
			v.sums[id] = e
		}
		if len(v.drifted) > driftedMax && v.sums[id].ledger {
			readings[i].Waiting = whyEntries
		}
	}
	return readings, nil
}

// addUpLedger adds up what the ledger contributes to the aggregates that are
// not known, and to that what wrong entries lack.
func (v *run) addUpLedger(ctx context.Context, want map[string]string) error {
	var mu sync.Mutex
	add := func(a drift.Amount) {
		id := a.ID()
		if e := v.sums[id]; !e.ledger || e.known {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if sum, ok := want[id]; ok {
			want[id] = v.Auditor.AddAmounts(sum, a.Value)
		}
	}
	wrong, err := v.Auditor.Read(ctx, v.drifted)
	if err != nil {
		return err
	}
	for _, r := range wrong {
		for _, a := range r.Fix.Adjust {
			add(a)
		}
	}
	if v.Rows == nil {
		return nil
	}
	v.tell("adding up the ledger")
	return v.Rows.Each(ctx, func(row change.Item) error {
		v.Auditor.Contributions(row, add)
		return nil
	})
}
