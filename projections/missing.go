package projections

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/projections/internal/kinds/aggregates"
	"github.com/dynamill/dynamill/projections/internal/kinds/mirrors"
	"github.com/dynamill/dynamill/projections/internal/plan"
)

// A rule may ask for a value on an item that does not exist: a comment whose post was deleted, or a
// join whose text is not the key's. The engine writes nothing then, and that is not drift. To report such
// targets, the engine remembers them: from its own writes, whose answers say whether the target
// exists, and from passes over the table. It sends no request for this beside the stream.

const (
	examplesMax = 3
	// allMissingMin is how many targets a process that saw records alone must have missed, and found
	// none, before it says that a rule finds none.
	allMissingMin = 3
	// sourcesMax is how many sources of one missing target are told apart; the others are counted.
	sourcesMax = 100
)

// MissingTargets says of one rule at which items its sources point although they do not exist. Of a
// copy rule the parents are the targets, and the children point at them.
type MissingTargets struct {
	Rule      string
	Entity    string // of the targets
	Unique    string // the name of the unique value by which the rule finds its targets; "" if by their key
	Sources   int64  // that point at them
	Targets   int64  // that do not exist
	About     bool   // the two numbers are of a sample, or there are more than the engine remembers
	All       bool   // no source of the rule points at a target that exists
	Examples  []string
	OtherCase *OtherCase
}

// OtherCase is a target that does not exist, and one that does and differs in letter case alone.
type OtherCase struct{ Missing, Exists string }

// Warns reports whether the rule, rather than some items, seems to be wrong.
func (m MissingTargets) Warns() bool { return m.All || m.OtherCase != nil }

// missingTargets are those of one rule, as far as an engine knows.
type missingTargets struct {
	rule  *plan.Binding
	found atomic.Bool  // some target exists
	count atomic.Int64 // of those held

	mu        sync.Mutex
	most      int
	held      map[string]*pointers
	beyond    int64 // times that another one was missing, with no room to hold it
	sampled   bool  // the numbers below were estimated from a sample
	moreOf    int64 // targets that are not held
	moreFrom  int64 // sources that point at them
	looked    bool  // a pass over the table told
	unwritten bool  // what it told is not in the state table yet
	otherCase *OtherCase
}

// pointers are the sources that point at one target.
type pointers struct {
	known   map[change.Key]bool
	counted int64 // beside those that are known
}

func (p *pointers) all() int64 { return int64(len(p.known)) + p.counted }

func (p *pointers) add(source change.Key) {
	switch {
	case p.known[source]:
	case len(p.known) >= sourcesMax:
		p.counted++
	default:
		if p.known == nil {
			p.known = map[change.Key]bool{}
		}
		p.known[source] = true
	}
}

func (p *pointers) remove(source change.Key) {
	if p.known[source] {
		delete(p.known, source)
	} else if p.counted > 0 {
		p.counted--
	}
}

// newMissing makes room for every rule that writes on items which it does not make.
func newMissing(bindings *plan.Bindings) map[*plan.Binding]*missingTargets {
	all := map[*plan.Binding]*missingTargets{}
	for _, r := range bindings.Set.Rules {
		if !mirrors.Is(r) {
			b := bindings.Of(r)
			all[b] = &missingTargets{rule: b, most: targetsHeld(len(bindings.Set.Rules)), held: map[string]*pointers{}}
		}
	}
	return all
}

// noteTarget notes that a source points at a target that exists.
func (m *missingTargets) noteTarget(target string) {
	if m == nil {
		return
	}
	if !m.found.Load() {
		m.found.Store(true)
	}
	m.forget(target)
}

// forget notes that a target exists. It takes no lock while none is held as missing.
func (m *missingTargets) forget(target string) {
	if m != nil && m.count.Load() > 0 {
		m.drop(target)
	}
}

func (m *missingTargets) drop(target string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.held, target)
	m.count.Store(int64(len(m.held)))
}

// noteMissing notes that a target does not exist. change adjusts the sources that are known of it. A
// target at which no source points is not held.
func (m *missingTargets) noteMissing(target string, change func(*pointers)) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.held[target]
	if p == nil {
		if p = (&pointers{}); len(m.held) >= m.most {
			m.beyond++
			return
		}
		m.held[target] = p
	}
	change(p)
	if p.all() == 0 {
		delete(m.held, target)
	}
	m.count.Store(int64(len(m.held)))
}

// adjustSources changes the sources that are known of a target, if the target is held as missing.
func (m *missingTargets) adjustSources(target string, change func(*pointers)) {
	if m == nil || m.count.Load() == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.held[target]; p != nil {
		if change(p); p.all() == 0 {
			delete(m.held, target)
		}
	}
	m.count.Store(int64(len(m.held)))
}

// report is what is known; false if nothing is missing.
func (m *missingTargets) report() (MissingTargets, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.rule.Rule
	entity := targetEntity(r)
	t := MissingTargets{
		Rule: r.Name, Entity: entity.Name, Targets: int64(len(m.held)) + m.moreOf, Sources: m.moreFrom, About: m.sampled || m.beyond > 0, OtherCase: m.otherCase,
	}
	if r.ByUnique {
		t.Unique = entity.Unique
	}
	for target, p := range m.held {
		t.Sources += p.all()
		t.About = t.About || len(p.known) > 0 && p.counted > 0 // a source may be among both
		t.Examples = append(t.Examples, target)
	}
	slices.Sort(t.Examples)
	t.Examples = t.Examples[:min(examplesMax, len(t.Examples))]
	t.All = !m.found.Load() && (m.looked || t.Targets >= allMissingMin)
	return t, t.Targets > 0
}

// MissingTargets returns, by rule, which targets do not exist as far as this engine knows.
func (e *Engine) MissingTargets() []MissingTargets {
	var all []MissingTargets
	for _, m := range e.missing {
		if t, lacking := m.report(); lacking {
			all = append(all, t)
		}
	}
	sortMissing(all)
	return all
}

func sortMissing(all []MissingTargets) {
	slices.SortFunc(all, func(a, b MissingTargets) int { return cmp.Compare(a.Rule, b.Rule) })
}

// noteRollupTarget notes whether the target of a roll-up exists.
func (e *Engine) noteRollupTarget(g plan.GroupRef, t total, there bool) {
	m := e.missing[g.Binding]
	switch {
	case there && t.value.IsZero():
		m.forget(g.Group) // perhaps no source points at it
		return
	case there:
		m.noteTarget(g.Group)
		return
	}
	m.noteMissing(g.Group, func(p *pointers) {
		if n, ok := t.value.Int64(); ok && g.Rule.Kind == aggregates.Count {
			p.known, p.counted = nil, n // a count is the number of its sources
		} else if p.all() == 0 {
			p.counted = 1 // of a sum at least one, until noteSources names them
		}
	})
}

// noteSources names the sources of sums whose targets are missing, by the moves that were applied.
func (w *work) noteSources(moves []*plan.Move) {
	for _, m := range w.missing {
		if m.rule.Rule.Kind != aggregates.Sum || m.count.Load() == 0 {
			continue
		}
		for _, mv := range moves {
			before, after := mv.Old[m.rule.ID], mv.New[m.rule.ID]
			if before.Kind == plan.Contribution && before.Group != after.Group {
				m.adjustSources(before.Group, func(p *pointers) { p.remove(mv.Key) })
			}
			if after.Kind == plan.Contribution {
				m.adjustSources(after.Group, func(p *pointers) {
					if len(p.known) == 0 && p.counted == 1 {
						p.counted = 0
					}
					p.add(mv.Key)
				})
			}
		}
	}
}
