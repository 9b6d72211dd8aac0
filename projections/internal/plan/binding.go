package plan

import (
	"sync/atomic"

	"github.com/dynamill/dynamill/rules"
)

// Binding is a rule as it stands in one table's registry.
type Binding struct {
	Rule     *rules.Rule
	ID       string      // the registry's name of the rule; stays when the rule is renamed
	Stamp    string      // the attribute that holds the rule's stamp on targets
	Epoch    int         // the rules epoch in which the rule was registered
	Suffixes int         // most write suffixes that the rule ever had: what a roll-up reads
	Live     atomic.Bool // seeded: aggregates may be shown (promise 10)
}

// Bindings are the rules of a set, bound.
type Bindings struct {
	Set    *rules.Set
	byRule map[*rules.Rule]*Binding
	byID   map[string]*Binding
}

// Of is the binding of a rule of the set.
func (bs *Bindings) Of(r *rules.Rule) *Binding { return bs.byRule[r] }

// ByID is the binding under an id of the registry; nil if there is none.
func (bs *Bindings) ByID(id string) *Binding { return bs.byID[id] }

// Bind binds the rules of a set to the ids that the registry knows them by.
func Bind(set *rules.Set, ids map[*rules.Rule]string) *Bindings {
	bs := &Bindings{set, map[*rules.Rule]*Binding{}, map[string]*Binding{}}
	for _, r := range set.Rules {
		b := &Binding{Rule: r, ID: ids[r], Stamp: StampPrefix + ids[r], Suffixes: r.WriteShards}
		bs.byRule[r], bs.byID[b.ID] = b, b
	}
	return bs
}
