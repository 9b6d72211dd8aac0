package sightings

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/projections"
)

// LookForTargets looks at the targets of the last pass over the table, and once more at those that
// this engine holds as missing: a source may come before its target. It reads at most about a
// thousand items a rule. Call it when a pass is over or the stream is drained. whole says that this
// process has worked off every item of the table in that pass, for all rules.
func (o *Observer) LookForTargets(ctx context.Context, whole bool) ([]projections.MissingTargets, error) {
	samples := o.takeTargets()
	for _, b := range o.planner.InForce {
		m := o.missing[b]
		if m == nil {
			continue
		}
		m.notePass(whole && samples != nil)
		if err := o.lookForTargetsOf(ctx, m, samples[b]); err != nil {
			return nil, err
		}
	}
	return o.MissingTargets(), nil
}

func (o *Observer) lookForTargetsOf(ctx context.Context, m *MissingTracker, sample *targetSample) error {
	asked := m.toLookAt(sample)
	there, err := Existing(ctx, o.tables.Reader, o.planner, m.Rule, asked)
	if err != nil {
		return err
	}
	m.applyLook(asked, there, sample)
	known, _ := m.report()
	otherCase, err := FindOtherCase(ctx, o.tables.Reader, o.planner, m.Rule, known.Examples)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.otherCase = otherCase
	return err
}

// toLookAt returns the targets that are held as missing, and those of a sample, sorted.
func (m *MissingTracker) toLookAt(sample *targetSample) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	asked := slices.Collect(maps.Keys(m.held))
	if sample != nil {
		asked = slices.AppendSeq(asked, maps.Keys(sample.held))
	}
	slices.Sort(asked)
	return slices.Compact(asked)
}

// notePass notes that a pass is over. whole says that this process worked off the whole table in it.
func (m *MissingTracker) notePass(whole bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.looked, m.unwritten = m.looked || whole, m.unwritten || whole
}

// applyLook takes over the result of a look at targets.
func (m *MissingTracker) applyLook(asked []string, there map[string]bool, sample *targetSample) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var sources map[string]int64
	if sample != nil {
		sources = sample.held
	}
	missing, pointing := int64(0), int64(0)
	for _, target := range asked {
		n, sampled := sources[target]
		switch {
		case there[target]:
			m.Found.Store(true)
			delete(m.held, target)
			continue
		case sampled:
			missing, pointing = missing+1, pointing+n
			m.held[target] = &TargetSources{counted: n}
		}
	}
	if sample != nil {
		m.beyond = 0
		more := sample.scale() - 1
		m.sampled = sample.partial && missing > 0
		m.moreOf, m.moreFrom = int64(more*float64(missing)), int64(more*float64(pointing))
	}
	m.count.Store(int64(len(m.held)))
}

// Existing reads which of the targets exist and are of the entity that the rule has as its target.
func Existing(ctx context.Context, rd *table.Reader, p *plan.Planner, b *plan.Binding, targets []string) (map[string]bool, error) {
	there := make(map[string]bool, len(targets))
	if b.Rule.ByUnique {
		keys := make([]table.Key, len(targets))
		for i, value := range targets {
			keys[i] = state.LocatorKey(b.Locator, value)
		}
		rows, err := rd.ReadState(ctx, "looking for targets", keys)
		for i, value := range targets {
			there[value] = len(table.TextsOf(rows[keys[i]]["items"])) > 0
		}
		return there, err
	}
	keys := make([]change.Key, len(targets))
	for i, text := range targets {
		keys[i] = change.ParseKey(text)
	}
	items, err := rd.ReadItems(ctx, "looking for targets", keys)
	for i, text := range targets {
		if items[keys[i]] != nil {
			m, ok := p.Set.Identify(keys[i], items[keys[i]])
			there[text] = ok && m.Entity == b.Rule.Pointed()
		}
	}
	return there, err
}

// FindOtherCase finds a target that exists and differs from one of those that are missing in letter case alone.
func FindOtherCase(ctx context.Context, rd *table.Reader, p *plan.Planner, b *plan.Binding, missing []string) (*projections.OtherCase,
	error) {
	for _, target := range missing {
		var others []string
		if b.Rule.ByUnique {
			others = []string{strings.ToLower(target), strings.ToUpper(target)}
		} else {
			for _, key := range b.Rule.Pointed().OtherCases(change.ParseKey(target)) {
				others = append(others, key.String())
			}
		}
		others = slices.DeleteFunc(others, func(other string) bool { return other == target })
		there, err := Existing(ctx, rd, p, b, others)
		for _, other := range others {
			if there[other] {
				return &projections.OtherCase{Missing: target, Exists: other}, err
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, nil
}
