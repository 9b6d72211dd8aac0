package histories

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/proof/adversary"
	"github.com/dynamill/dynamill/internal/proof/oracle"
	"github.com/dynamill/dynamill/internal/replay/verify"
	"github.com/dynamill/dynamill/internal/rules"
)

// drawReplays draws whether anything is replayed in a history, and whether its
// rules are changed: each in about a third of them, from numbers of their own.
func (h *History) drawReplays() {
	r := rand.New(rand.NewPCG(h.Seed, 0x7265706c6179))
	replays, changes := r.IntN(3) == 0, r.IntN(3) == 0
	if (replays || changes) && r.IntN(2) == 0 {
		h.PageMax = 1 + r.Int32N(6)
	}
	if replays {
		for range r.IntN(3) {
			h.insert(r, 0, Step{Kind: Export})
		}
		for range 1 + r.IntN(3) {
			h.insert(r, h.Old, Step{Kind: Befall, Fault: adversary.Replayed, Pick: r.Uint64(), Turns: drawTurns(r)})
		}
	}
	if changes {
		h.drawChanges(r)
	}
	if h.Verifies = r.IntN(4) == 0; h.Verifies {
		for range r.IntN(3) {
			h.insert(r, h.Old, Step{Kind: Befall, Fault: adversary.Verifying, Turns: drawTurns(r)})
		}
	}
}

// drawChanges draws what the rules were at first, and when they are changed, in
// one step or in two.
func (h *History) drawChanges(r *rand.Rand) {
	first, ok := h.Population.Formerly(r)
	if !ok {
		return
	}
	h.FirstRules, h.Changing = first, true
	at := h.insert(r, h.Old, Step{Kind: Befall, Fault: adversary.RulesChanged, Rules: h.Population.File, Pick: 1 + r.Uint64N(1000),
		Turns: drawTurns(r)})
	between, ok := h.Population.Formerly(r)
	if !ok || r.IntN(2) == 0 {
		return
	}
	before := h.Old + r.IntN(at-h.Old+1)
	h.Steps = slices.Insert(h.Steps, before, Step{Kind: Befall, Fault: adversary.RulesChanged, Rules: between, Pick: 1 + r.Uint64N(1000),
		Turns: drawTurns(r)})
}

// insert puts a step in at random.
func (h *History) insert(r *rand.Rand, from int, s Step) int {
	at := from + r.IntN(len(h.Steps)-from+1)
	h.Steps = slices.Insert(h.Steps, at, s)
	if at < h.Old {
		h.Old++
	}
	return at
}

// export writes down which items there are.
func (l *life) export() error {
	present, err := l.app.present()
	keys := make([]change.Key, len(present))
	for i, it := range present {
		keys[i] = l.Population.Key(it)
	}
	l.exports = append(l.exports, keys)
	return err
}

// startReplay starts one process that replays, or two that share the work; plainly
// if nothing is drawn, of an export of certain items if the step has any. To
// change rules, the whole table is gone over.
func (l *life) startReplay(s Step) {
	if s.Pick == 0 {
		rp := adversary.Replay{Segments: 1, Changes: l.Changing}
		for _, it := range s.Items {
			rp.Keys = append(rp.Keys, l.Population.Key(it))
		}
		l.crew.StartReplay(rp, 1)
		return
	}
	r := rand.New(rand.NewPCG(s.Pick, 2))
	rp := adversary.Replay{Segments: 1 + r.IntN(3), Changes: l.Changing}
	processes := 1 + r.IntN(3)/2
	switch x := r.IntN(8); {
	case s.Rules != "":
	case x == 0:
		rp.OneOf = 1 + r.IntN(100)
	case x < 4 && len(l.exports) > 0:
		n := r.IntN(len(l.exports))
		rp.Keys, rp.Name = l.exports[n], fmt.Sprint(n)
	}
	rp.InSteps = r.IntN(2) == 0
	l.crew.StartReplay(rp, processes)
}

// changeRules brings the last rules into force, if they may not be by now.
func (l *life) changeRules() error {
	if !l.Changing {
		return nil
	}
	if err := l.crew.FinishReplay(adversary.Replay{Segments: 2, Changes: true, InSteps: l.Seed%2 == 1}); err != nil {
		return fmt.Errorf("changing the rules: %w", err)
	}
	return nil
}

// judgeSwept judges after one more replay, which takes away what workers of
// former rules have left late in the state table.
func (l *life) judgeSwept() error {
	if err := l.crew.FinishReplay(adversary.Replay{Segments: 1}); err != nil {
		return fmt.Errorf("sweeping: %w", err)
	}
	if err := l.drain(); err != nil {
		return err
	}
	err := l.judgeBut()
	for i := range l.outcome.Problems {
		l.outcome.Problems[i] += " (after a sweep)"
	}
	return err
}

// registered is what the registry says of the last rules.
type registered struct {
	seen string // what it says of itself
	ids  map[*rules.Rule]string
}

// registry reads the registry, unless it is as it was.
func (l *life) registry() registered {
	table := l.registryRow("table")
	seen := fmt.Sprint(table["incarnation"].Text(), table["epoch"].Text(), " ", table["live"].Text())
	if l.known.ids != nil && seen == l.known.seen {
		return l.known
	}
	l.known = registered{seen: seen, ids: map[*rules.Rule]string{}}
	state, err := items(l.crew.Sim, stateTableName)
	if err != nil {
		return l.known
	}
	for _, row := range state {
		id, ok := strings.CutPrefix(row["sk"].Text(), "rule/")
		if !ok || row["pk"].Text() != "registry" {
			continue
		}
		if strings.HasPrefix(row["state"].Text(), "retir") {
			continue
		}
		for _, r := range l.Population.Set.Rules {
			if r.Fingerprint == row["fingerprint"].Text() {
				l.known.ids[r] = id
			}
		}
	}
	return l.known
}

// named are items with stamps under the names of rules instead of their ids, and
// without those of rules that are not in force any more, or were before the state
// table was lost.
func (l *life) named(items []change.Item) []change.Item {
	known := l.registry()
	all := make([]change.Item, len(items))
	for i, it := range items {
		all[i] = maps.Clone(it)
		maps.DeleteFunc(all[i], func(name string, _ change.Value) bool { return strings.HasPrefix(name, stampPrefix) })
		for r, id := range known.ids {
			if v, ok := it[stampPrefix+id]; ok {
				all[i][stampPrefix+r.Name] = v
			}
		}
	}
	return all
}

// loadFormer loads the rules that are in force before others.
func (l *life) loadFormer() (sets []*rules.Set) {
	if !l.Changing {
		return nil
	}
	for _, file := range append([]string{l.FirstRules}, l.changedTo()...) {
		set, err := rules.Load("former rules", []byte(file), projections.Kinds)
		if err == nil {
			err = set.CheckKeys(l.Population.PartitionKind, l.Population.SortKind)
		}
		if err != nil {
			l.problem("%v", err)
			continue
		}
		sets = append(sets, set)
	}
	return sets
}

func (l *life) changedTo() (files []string) {
	for _, s := range l.Steps {
		if s.Rules != "" {
			files = append(files, s.Rules)
		}
	}
	return files
}

// verify has it said once more, by the engine's own audit, that all is right.
func (l *life) verify() error {
	if !l.Verifies || len(l.outcome.Problems) > 0 {
		return nil
	}
	v, err := l.crew.Verify(false)
	for _, r := range adversary.Drift(v.Found) {
		l.problem("called drift in the end: %+v", r)
	}
	if err == nil && len(v.Summary.Undecided) > 0 {
		l.problem("not decided in the end: %v", v.Summary.Undecided)
	}
	l.judgeCounts("in the end", v.Miscounted)
	for _, m := range v.Miscounted {
		if m.Undecided != "" {
			l.problem("rule %s is not decided in the end: %s", m.Rule, m.Undecided)
		}
	}
	return err
}

// judgeCounts says what a count called wrong. A group is excused if no number holds what its sources add, or they must be added in the
// right order.
func (l *life) judgeCounts(when string, all []adversary.Miscounted) {
	for _, m := range all {
		for _, f := range m.Findings {
			if !f.Have.Overflow && !l.overflowed {
				l.problem("rule %s is called wrong %s: group %s has %s instead of %s, or shows something else: %+v", m.Rule, when, f.Group,
					f.Have, f.Want, f.Display)
			}
		}
	}
}

// makeGood brings back what was lost with records that were never read: the
// operator sweeps, replays, or repairs.
func (l *life) makeGood() error {
	switch {
	case l.Verifies:
		return l.repair()
	case l.Seed%2 == 0:
		return errors.Join(l.crew.FinishReplay(adversary.Replay{Segments: 2, Restart: true, InSteps: l.Seed%4 == 0}), l.drain())
	}
	return l.sweep()
}

// repairsMax is how often verifying with a repair leaves something for the next
// time: what mending has written may keep it from judging what else is wrong.
const repairsMax = 3

// repair verifies and repairs, as docs/replay.md says, until everything was judged.
func (l *life) repair() error {
	for range repairsMax {
		v, err := l.crew.Verify(true)
		if err = errors.Join(err, l.drain()); err != nil {
			return err
		}
		l.outcome.Repaired += len(v.Found)
		for _, r := range v.Found {
			if r.Status == verify.Unrepaired && r.Why != "parked" { // an item may be too large for what a rule writes
				l.problem("not repaired: %+v", r)
			}
		}
		if len(v.Summary.Undecided) == 0 {
			return nil
		}
	}
	l.problem("%d repairs left something undecided", repairsMax)
	return nil
}

// derivedNames are the attributes that some rule of the history, of any time, writes.
func (l *life) derivedNames() map[string]bool {
	names := map[string]bool{}
	for _, set := range append(slices.Clone(l.former), l.Population.Set) {
		for _, r := range set.Rules {
			for _, name := range r.Writes {
				names[name] = true
			}
		}
	}
	return names
}

// keepAdopted has what mirror rules wrote on an item of the application's count as its own.
func (l *life) keepAdopted(key change.Key, it change.Item) {
	base := l.app.base[key]
	if base == nil || oracle.Made(key, it) {
		return
	}
	for _, r := range l.Population.Set.Rules {
		if !r.MakesItems() || !r.Target.HasKey(key) {
			continue
		}
		for _, name := range r.Writes {
			if v, there := it[name]; there {
				base[name] = v
			}
		}
	}
}

// disown has items that rules made taken for the application's own, as they are
// when the state table is lost (docs/state-table.md, "Starting over"): a change
// of the rules takes even the stamps off that tell them.
func (l *life) disown() error {
	present, err := l.app.present()
	derived := l.derivedNames()
	for _, it := range present {
		key := l.Population.Key(it)
		if l.keepAdopted(key, it); !l.Changing {
			continue
		}
		own := maps.Clone(it)
		for name, value := range l.app.base[key] {
			if !derived[name] { // a rule that is gone by then leaves the value that it wrote last
				own[name] = value
			}
		}
		if l.app.base[key] != nil {
			maps.DeleteFunc(own, func(name string, _ change.Value) bool {
				return strings.HasPrefix(name, stampPrefix) && l.app.base[key].Lookup(name).Missing()
			})
		}
		l.app.base[key] = own
	}
	return err
}
