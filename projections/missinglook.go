package projections

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/projections/internal/kinds/copies"
	"github.com/dynamill/dynamill/projections/internal/plan"
	"github.com/dynamill/dynamill/rules"
)

// LookForTargets looks at the targets of the last pass over the table, and once more at those that
// this engine holds as missing: a source may come before its target. It reads at most about a
// thousand items a rule. Call it when a pass is over or the stream is drained. whole says that this
// process has worked off every item of the table in that pass, for all rules.
func (e *Engine) LookForTargets(ctx context.Context, whole bool) ([]MissingTargets, error) {
	samples := e.sightings.takeTargets()
	for _, r := range e.planner.Set.Rules {
		b := e.planner.Of(r)
		m := e.missing[b]
		if m == nil {
			continue
		}
		m.notePass(whole && samples != nil)
		if err := e.lookForTargetsOf(ctx, m, samples[b]); err != nil {
			return nil, err
		}
	}
	return e.MissingTargets(), nil
}

func (e *Engine) lookForTargetsOf(ctx context.Context, m *missingTargets, sample *targetSample) error {
	m.mu.Lock()
	asked := slices.Collect(maps.Keys(m.held))
	m.mu.Unlock()
	sources := map[string]int64{}
	if sample != nil {
		for _, t := range sample.held {
			sources[t.target] = t.sources
			asked = append(asked, t.target)
		}
	}
	slices.Sort(asked)
	asked = slices.Compact(asked)
	there, err := e.existing(ctx, m.rule, asked)
	if err != nil {
		return err
	}
	m.applyLook(asked, there, sources, sample)
	m.otherCaseOf(func(target string) (found *OtherCase) {
		if err == nil {
			found, err = e.otherCase(ctx, m.rule, target)
		}
		return found
	})
	return err
}

// notePass notes that a pass is over. whole says that this process worked off the whole table in it.
func (m *missingTargets) notePass(whole bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.looked, m.unwritten = m.looked || whole, m.unwritten || whole
}

// applyLook takes over the result of a look at targets. sources counts, for each target of the
// sample, the sources that point at it.
func (m *missingTargets) applyLook(asked []string, there map[string]bool, sources map[string]int64, sample *targetSample) {
	m.mu.Lock()
	defer m.mu.Unlock()
	missing, pointing := int64(0), int64(0)
	for _, target := range asked {
		n, sampled := sources[target]
		switch {
		case there[target]:
			m.found.Store(true)
			delete(m.held, target)
			continue
		case sampled:
			missing, pointing = missing+1, pointing+n
			m.held[target] = &pointers{counted: n}
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

// otherCaseOf asks for some of the missing targets whether one exists in another letter case.
func (m *missingTargets) otherCaseOf(look func(target string) *OtherCase) {
	t, lacking := m.report()
	var found *OtherCase
	for _, target := range t.Examples {
		if lacking && found == nil {
			found = look(target)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.otherCase = found
}

// existing reads which of the targets exist and are of the entity that the rule has as its target.
func (rd *reader) existing(ctx context.Context, b *plan.Binding, targets []string) (map[string]bool, error) {
	there := make(map[string]bool, len(targets))
	if b.Rule.ByUnique {
		keys := make([]stateKey, len(targets))
		for i, value := range targets {
			keys[i] = locatorKey(b.Locator, value)
		}
		rows, err := rd.readState(ctx, "looking for targets", keys)
		for i, value := range targets {
			there[value] = len(textsOf(rows[keys[i]]["items"])) > 0
		}
		return there, err
	}
	keys := make([]change.Key, len(targets))
	for i, text := range targets {
		keys[i] = change.ParseKey(text)
	}
	items, err := rd.readItems(ctx, "looking for targets", keys)
	for i, text := range targets {
		if items[keys[i]] != nil {
			m, ok := rd.planner.Set.Identify(keys[i], items[keys[i]])
			there[text] = ok && m.Entity == targetEntity(b.Rule)
		}
	}
	return there, err
}

// targetEntity is the entity at whose items the sources of a rule point.
func targetEntity(r *rules.Rule) *rules.Entity {
	if copies.Is(r) {
		return r.Source
	}
	return r.Target
}

// otherCase finds a target that exists and differs from a missing one in letter case alone.
func (rd *reader) otherCase(ctx context.Context, b *plan.Binding, missing string) (*OtherCase, error) {
	var others []string
	if b.Rule.ByUnique {
		others = []string{strings.ToLower(missing), strings.ToUpper(missing)}
	} else {
		for _, key := range targetEntity(b.Rule).OtherCases(change.ParseKey(missing)) {
			others = append(others, key.String())
		}
	}
	others = slices.DeleteFunc(others, func(other string) bool { return other == missing })
	there, err := rd.existing(ctx, b, others)
	for _, other := range others {
		if there[other] {
			return &OtherCase{Missing: missing, Exists: other}, err
		}
	}
	return nil, err
}
