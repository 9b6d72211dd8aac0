package verify

import (
	"context"
	"fmt"
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/drift"
)

const (
	rederiveAtOnce = 25
	sumTriesMax    = 3
)

// The reasons why a finding was not repaired.
const (
	whyContested = "it is different again: another program writes there, or it is still being written"
	whySumMoved  = "it is changed too often to be repaired beside the traffic: try again when there is less"
)

// repair mends what was proven, looks at it again, and reports what came of it.
func (v *run) repair(ctx context.Context, proven []drift.Reading) error {
	if len(proven) == 0 {
		return nil
	}
	v.tell("repairing")
	failed := map[string]string{}
	// Entries first: locators and claims go by them, mirror items by those.
	for _, kinds := range [][]drift.Kind{{drift.Entry}, {drift.Claims, drift.Locator}, {drift.Mirror}, {drift.Reference, drift.Copy, drift.Display}} {
		var some []drift.Reading
		for _, r := range proven {
			if slices.Contains(kinds, r.Suspect.Kind) {
				some = append(some, r)
			}
		}
		if err := v.mend(ctx, some, failed); err != nil {
			return err
		}
	}
	return v.reportRepair(ctx, proven, failed)
}

// mend mends readings of one sort.
func (v *run) mend(ctx context.Context, readings []drift.Reading, failed map[string]string) error {
	var rederive []drift.Reading
	for _, r := range readings {
		var done bool
		var err error
		switch kind := r.Suspect.Kind; {
		case kind == drift.Claims || kind == drift.Locator:
			done, err = v.Mender.MendSet(ctx, r)
			rederive = append(rederive, r)
		case kind == drift.Reference && r.Findings[0].What == drift.Orphaned:
			done, err = v.Mender.PruneReference(ctx, r)
		default:
			done = true
			rederive = append(rederive, r)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			failed[r.Suspect.ID()] = err.Error()
		} else if !done {
			failed[r.Suspect.ID()] = whyContested
		}
	}
	return v.rederive(ctx, rederive, failed)
}

// rederive rederives the items of readings, several at once, and one by one where that fails.
func (v *run) rederive(ctx context.Context, readings []drift.Reading, failed map[string]string) error {
	for chunk := range slices.Chunk(readings, rederiveAtOnce) {
		if v.rederiveItems(ctx, chunk...) == nil {
			continue
		}
		for _, r := range chunk {
			if err := v.rederiveItems(ctx, r); err != nil {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				v.Logger.WarnContext(ctx, "an item could not be rederived", "kind", r.Suspect.Kind, "item", r.Suspect.Item.String(), "error", err)
				failed[r.Suspect.ID()] = err.Error()
			}
		}
	}
	return nil
}

func (v *run) rederiveItems(ctx context.Context, readings ...drift.Reading) error {
	var keys []change.Key
	for _, r := range readings {
		for _, key := range r.Fix.Keys {
			if !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	if len(keys) == 0 {
		return nil
	}
	return v.Mender.Rederive(ctx, keys)
}

// reportRepair looks again at what was mended, and reports each as repaired or not.
func (v *run) reportRepair(ctx context.Context, proven []drift.Reading, failed map[string]string) error {
	suspects := make([]drift.Suspect, len(proven))
	for i, r := range proven {
		suspects[i] = r.Suspect
	}
	readings, err := v.Auditor.Read(ctx, suspects)
	if err != nil {
		return err
	}
	for i, r := range proven {
		status, why := outcome(readings[i], failed[r.Suspect.ID()])
		if err := v.report([]drift.Reading{r}, status, why); err != nil {
			return err
		}
	}
	return nil
}

// outcome is what a reading after the repair says.
func outcome(after drift.Reading, failed string) (Status, string) {
	switch {
	case len(after.Findings) == 0:
		return Repaired, ""
	case failed != "":
		return Unrepaired, failed
	case after.Waiting != "":
		return Unrepaired, after.Waiting
	}
	return Unrepaired, whyContested
}

// repairSums mends aggregates and what displays them. reported are those that
// the scan has found; the others are only what mending entries has left.
func (v *run) repairSums(ctx context.Context, proven []drift.Reading, reported map[string]bool) error {
	if len(proven) == 0 {
		return nil
	}
	v.tell("repairing")
	failed := map[string]string{}
	var sums, displays []drift.Reading
	for _, r := range proven {
		if r.Suspect.Kind == drift.Sum {
			sums = append(sums, r)
		} else {
			displays = append(displays, r)
		}
	}
	if err := v.mendSums(ctx, sums, failed); err != nil {
		return err
	}
	if err := v.rederive(ctx, append(slices.Clone(sums), displays...), failed); err != nil {
		return err
	}
	for _, r := range sums {
		why := failed[r.Suspect.ID()]
		status := Repaired
		if why != "" {
			status = Unrepaired
		}
		if reported[r.Suspect.ID()] || why != "" {
			if err := v.report([]drift.Reading{r}, status, why); err != nil {
				return err
			}
		}
		delete(v.sums, r.Suspect.GroupID())
	}
	return v.reportDisplays(ctx, displays, failed)
}

// mendSums mends accumulators; those that moved since they were judged are judged once more.
func (v *run) mendSums(ctx context.Context, sums []drift.Reading, failed map[string]string) error {
	for try := range sumTriesMax {
		var moved []drift.Suspect
		for _, r := range sums {
			done, err := v.Mender.MendSum(ctx, r)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				failed[r.Suspect.ID()] = fmt.Sprint(err)
			} else if !done {
				moved = append(moved, r.Suspect)
			}
		}
		if len(moved) == 0 {
			return nil
		}
		if try == sumTriesMax-1 {
			for _, s := range moved {
				failed[s.ID()] = whySumMoved
			}
			return nil
		}
		readings, err := v.readSums(ctx, moved)
		if err != nil {
			return err
		}
		sums = sums[:0:0]
		for _, r := range readings {
			if r.Waiting != "" {
				failed[r.Suspect.ID()] = whySumMoved
			} else if len(r.Findings) > 0 {
				sums = append(sums, r)
			}
		}
	}
	return nil
}

func (v *run) reportDisplays(ctx context.Context, displays []drift.Reading, failed map[string]string) error {
	suspects := make([]drift.Suspect, len(displays))
	for i, r := range displays {
		suspects[i] = r.Suspect
	}
	readings, err := v.Auditor.ReadSums(ctx, suspects, nil, nil) // by the accumulators, which are right by now
	if err != nil {
		return err
	}
	for i, r := range displays {
		status, why := outcome(readings[i], failed[r.Suspect.ID()])
		if err := v.report([]drift.Reading{r}, status, why); err != nil {
			return err
		}
	}
	return nil
}
