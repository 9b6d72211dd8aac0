package seeding

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/registry"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/rules"
)

// A pass goes once over every item of a table. Those that bring rules into force follow each other. Drivers may work off one pass together,
// in any order: what they do with an item is the same. The first worker that finds nothing left ends it.

// Pass is a pass taken apart. Its text survives restarts.
type Pass struct {
	Phase      state.Phase
	Epoch      int      // of the rules; 0 for a pass that is always possible
	Level      int      // derive, count, show
	ReadyRules int      // show: the rules of the level that are live and counted. A level is shown again when more of them are
	Rules      []string // rederive: names; none for all
}

// ErrUnknownPass is wrapped by the errors for a text that names no pass, and for a pass that names an unknown rule.
var ErrUnknownPass = errors.New("there is no such pass")

// String is the text of a pass.
func (p Pass) String() string {
	text := string(p.Phase)
	if p.Epoch > 0 {
		text += "/" + strconv.Itoa(p.Epoch)
	}
	if p.Phase == state.PhaseDerive || p.Phase == state.PhaseCount || p.Phase == state.PhaseShow {
		text += "/" + strconv.Itoa(p.Level)
	}
	if p.Phase == state.PhaseShow {
		text += "/" + strconv.Itoa(p.ReadyRules)
	}
	if len(p.Rules) > 0 {
		text += "/" + strings.Join(p.Rules, ",")
	}
	return text
}

// ParsePass reads what String wrote.
func ParsePass(text string) (Pass, error) {
	head, rest, more := strings.Cut(text, "/")
	epoch, ofLevel, _ := strings.Cut(rest, "/")
	level, ready, _ := strings.Cut(ofLevel, "/")
	p, known := Pass{Phase: state.Phase(head)}, false
	switch p.Phase {
	case state.PhaseRederive:
		if known = true; more {
			p.Rules = strings.Split(rest, ",")
		}
	case state.PhaseDerive, state.PhaseCount, state.PhaseShow, state.PhaseClean, state.PhaseSweep:
		p.Epoch, _ = strconv.Atoi(epoch) // a text that is no number fails the comparison with String below
		p.Level, _ = strconv.Atoi(level)
		p.ReadyRules, _ = strconv.Atoi(ready)
		known = p.Epoch > 0 || p.Phase == state.PhaseSweep
	}
	if !known || p.String() != text {
		return Pass{}, fmt.Errorf("pass %q: %w", text, ErrUnknownPass)
	}
	return p, nil
}

// IsOver reports whether a pass was of older rules: nothing is left of it. One of newer rules is registry.ErrEpochMoved.
func (p Pass) IsOver(epoch int) (bool, error) {
	if p.Epoch > epoch {
		return false, registry.ErrEpochMoved
	}
	return p.Epoch > 0 && p.Epoch < epoch, nil
}

// Concerns returns whether the rules of a pass (no names: any) read or write items with a key.
func (p Pass) Concerns(set *rules.Set) (func(change.Key) bool, error) {
	var entities []*rules.Entity
	for _, name := range p.Rules {
		i := slices.IndexFunc(set.Rules, func(r *rules.Rule) bool { return r.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("pass %s: rule %q is not in the rule file: %w", p, name, ErrUnknownPass)
		}
		r := set.Rules[i]
		entities = append(entities, r.Source, r.Target)
	}
	return func(key change.Key) bool {
		return len(p.Rules) == 0 || slices.ContainsFunc(entities, func(ent *rules.Entity) bool { return ent.HasKey(key) })
	}, nil
}

// RuleNames are the rules that a pass is for.
func (p Pass) RuleNames(pl *plan.Planner) []string {
	if len(p.Rules) > 0 {
		return p.Rules
	}
	var names []string
	if p.Epoch > 0 && (p.Phase == state.PhaseClean || p.Phase == state.PhaseSweep) {
		for _, b := range pl.Formers() {
			if !b.Cleaned.Load() {
				names = append(names, b.Rule.Name)
			}
		}
		return names
	}
	c := state.Cursor{Level: p.Level, Phase: p.Phase}
	for _, b := range pl.InForce {
		concerned := true
		switch p.Phase {
		case state.PhaseDerive, state.PhaseCount:
			concerned = c.IsFor(b.Rule) && WaitsFor(b, p.Phase)
		case state.PhaseShow:
			concerned = c.IsFor(b.Rule)
		}
		if concerned {
			names = append(names, b.Rule.Name)
		}
	}
	return names
}
