package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/stream/streamapi"
)

const (
	rederiveAtOnce  = 25
	sumTriesMax     = 3
	repairTriesMax  = 3
	phaseOfRepairs  = "repairing"
	whyContested    = "it is different again: another program writes there, or it is still being written"
	whySumMoved     = "it is changed too often to be repaired beside the traffic: try again when there is less"
	whyNotRederived = "an item could not be rederived"
)

// repair mends what was proven. What is still wrong may spoil anew what rules derive from it, so at the end it reads and
// mends everything again.
type repair struct {
	*run
	mended  []drift.Reading   // as they were proven, in the order in which they are reported
	sumsDue []drift.Reading   // the sums among what was proven
	failed  map[string]string // why, by suspect
	// unreported are sums that are judged only because mending entries changed them; reported only if not repaired.
	unreported map[string]bool
}

// stages is the order of mending: what depends on what another stage mends comes later.
var stages = []drift.Stage{drift.StageEntries, drift.StageSets, drift.StageItems, drift.StageRest}

// mendSingles mends all but sums.
func (f *repair) mendSingles(ctx context.Context, proven []drift.Reading) error {
	if f.Mender == nil || len(proven) == 0 {
		return nil
	}
	f.showProgress(phaseOfRepairs)
	f.mended = append(f.mended, proven...)
	return f.mendAll(ctx, proven)
}

func (f *repair) mendAll(ctx context.Context, readings []drift.Reading) error {
	for _, stage := range stages {
		some, _ := partition(readings, func(r drift.Reading) bool { return r.Fix.Stage == stage })
		if stage == drift.StageSets && len(some) > 0 { // entries were mended since these were read
			again, err := f.Auditor.Read(ctx, suspectsOf(some))
			if err != nil {
				return err
			}
			some = again
		}
		if err := f.mend(ctx, some); err != nil {
			return err
		}
	}
	return nil
}

func suspectsOf(readings []drift.Reading) []drift.Suspect {
	all := make([]drift.Suspect, len(readings))
	for i, r := range readings {
		all[i] = r.Suspect
	}
	return all
}

// mend mends readings of one stage.
func (f *repair) mend(ctx context.Context, readings []drift.Reading) error {
	var rederive []drift.Reading
	for _, r := range readings {
		done, err := true, error(nil)
		if r.Fix.Way != drift.Rederive {
			done, err = f.Mender.Mend(ctx, r)
		}
		if r.Fix.Way != drift.MendAlone {
			rederive = append(rederive, r)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		f.note(r, done, err, whyContested)
	}
	if err := f.rederive(ctx, rederive); err != nil {
		return err
	}
	// What other rules write on an item that a rule makes follows once the item is there. Its
	// own record has that done, too, but not before the next reading.
	return f.rederive(ctx, slices.DeleteFunc(rederive, func(r drift.Reading) bool {
		return r.Fix.Stage != drift.StageItems || !r.Found(drift.Missing)
	}))
}

// note keeps in mind why something could not be mended.
func (f *repair) note(r drift.Reading, done bool, err error, why string) {
	delete(f.failed, r.Suspect.ID())
	if err != nil {
		f.failed[r.Suspect.ID()] = err.Error()
	} else if !done {
		f.failed[r.Suspect.ID()] = why
	}
}

// rederive rederives the items of readings, several at once, and one by one where that fails.
func (f *repair) rederive(ctx context.Context, readings []drift.Reading) error {
	for chunk := range slices.Chunk(readings, rederiveAtOnce) {
		if f.rederiveItems(ctx, chunk...) == nil {
			continue
		}
		for _, r := range chunk {
			if err := f.rederiveItems(ctx, r); err != nil {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				if streamapi.StopsReading(err) { // newer rules are in force
					return err
				}
				f.Logger.WarnContext(ctx, whyNotRederived, "kind", r.Suspect.Kind, "item", r.Suspect.Item.String(), "error", err)
				f.note(r, false, err, "")
			}
		}
	}
	return nil
}

func (f *repair) rederiveItems(ctx context.Context, readings ...drift.Reading) error {
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
	return f.Mender.Rederive(ctx, keys)
}

// alsoTouched are the sums that mending entries has moved, beside those that are judged anyway.
func (f *repair) alsoTouched(touched, sums []drift.Suspect) []drift.Suspect {
	if f.Mender == nil {
		return nil
	}
	known := map[string]bool{}
	for _, s := range sums {
		known[s.ID()] = true
	}
	more, _ := partition(touched, func(s drift.Suspect) bool { return !known[s.ID()] })
	for _, s := range more {
		f.unreported[s.ID()] = true
	}
	return more
}

// mendSumsAndDisplays mends aggregates and what displays them.
func (f *repair) mendSumsAndDisplays(ctx context.Context, proven []drift.Reading) error {
	if len(proven) == 0 {
		return nil
	}
	f.showProgress(phaseOfRepairs)
	var displays []drift.Reading
	f.sumsDue, displays = partition(proven, func(r drift.Reading) bool { return r.Suspect.Kind == drift.Sum })
	if err := f.mendSums(ctx, f.sumsDue); err != nil {
		return err
	}
	f.mended = append(f.mended, displays...)
	return errors.Join(f.rederive(ctx, f.sumsDue), f.mend(ctx, displays))
}

// mendSums mends accumulators; those that moved since they were judged are judged once more.
func (f *repair) mendSums(ctx context.Context, sums []drift.Reading) error {
	f.scans = 0
	for range sumTriesMax {
		var moved []drift.Suspect
		for _, r := range sums {
			done, err := f.Mender.Mend(ctx, r)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if f.note(r, done, err, whySumMoved); !done && err == nil {
				moved = append(moved, r.Suspect)
			}
			f.run.sums[r.Suspect.GroupID()] = expect{ledger: true} // added up anew when it is read again
		}
		if len(moved) == 0 {
			return nil
		}
		readings, err := f.readSums(ctx, moved)
		if err != nil {
			return err
		}
		sums = nil
		for _, r := range readings {
			if r.Waiting == "" && len(r.Findings) == 0 {
				delete(f.failed, r.Suspect.ID())
			} else if r.Waiting == "" {
				sums = append(sums, r)
			}
		}
	}
	return nil
}

// finish reads everything again, mends what is still wrong, and reports what came of it.
func (f *repair) finish(ctx context.Context) error {
	for _, r := range f.sumsDue {
		status, why := Repaired, f.failed[r.Suspect.ID()]
		if why != "" {
			status = Unrepaired
		}
		delete(f.run.sums, r.Suspect.GroupID()) // from here on the accumulators are right
		if f.unreported[r.Suspect.ID()] && why == "" {
			continue
		}
		if err := f.report(status, why, r); err != nil {
			return err
		}
	}
	after := map[string]drift.Reading{}
	wrong := f.mended
	for try := 0; len(wrong) > 0; try++ {
		readings, err := f.readAgain(ctx, suspectsOf(wrong))
		if err != nil {
			return err
		}
		wrong = nil
		for _, r := range readings {
			after[r.Suspect.ID()] = r
			if len(r.Findings) > 0 { // what is parked, too: a torn row may be mended by now that made DynamoDB refuse a write
				wrong = append(wrong, r)
			}
		}
		if try == repairTriesMax {
			break
		}
		if err := f.mendAll(ctx, wrong); err != nil {
			return err
		}
	}
	for _, r := range f.mended {
		if err := f.reportMended(r, after[r.Suspect.ID()]); err != nil {
			return err
		}
	}
	return nil
}

// readAgain reads what was mended.
func (f *repair) readAgain(ctx context.Context, suspects []drift.Suspect) ([]drift.Reading, error) {
	displays, single := partition(suspects, func(s drift.Suspect) bool { return s.Kind == drift.Display })
	readings, err := f.Auditor.Read(ctx, single)
	if err != nil {
		return nil, fmt.Errorf("looking at what was repaired: %w", err)
	}
	more, err := f.Auditor.ReadSums(ctx, displays, nil, nil)
	return append(readings, more...), err
}

// reportMended reports what a reading after the repair says of the findings. If only what is parked is left, the others are repaired.
func (f *repair) reportMended(r, after drift.Reading) error {
	if len(after.Findings) == 0 {
		return f.report(Repaired, "", r)
	}
	if after.Final || after.Excused {
		f.run.summary.Parked++
	}
	left := r
	if after.Final {
		mended := r
		mended.Findings = slices.DeleteFunc(slices.Clone(r.Findings), func(found drift.Finding) bool { return hasSame(after.Findings, found) })
		left.Findings = slices.DeleteFunc(slices.Clone(r.Findings), func(found drift.Finding) bool { return !hasSame(after.Findings, found) })
		if err := f.report(Repaired, "", mended); err != nil {
			return err
		}
	}
	return f.report(Unrepaired, cmp.Or(f.failed[r.Suspect.ID()], after.Waiting, whyContested), left)
}

// hasSame reports whether findings have one about the same part: of a set or an entry, Expected or else Found tells which.
func hasSame(findings []drift.Finding, f drift.Finding) bool {
	return slices.ContainsFunc(findings, func(g drift.Finding) bool {
		return g.Rule == f.Rule && g.Kind == f.Kind && g.Item == f.Item && g.Group == f.Group && g.Attribute == f.Attribute &&
			g.Expected == f.Expected && (f.Expected != "" || g.Found == f.Found)
	})
}
