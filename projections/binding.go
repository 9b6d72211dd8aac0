package projections

import (
	"sync/atomic"

	"github.com/dynamill/dynamill/rules"
)

// binding is a rule as it stands in one table's registry.
type binding struct {
	rule     *rules.Rule
	id       string      // the registry's name of the rule; stays when the rule is renamed
	stamp    string      // the attribute that holds the rule's stamp on targets
	suffixes int         // most write suffixes that the rule ever had: what a roll-up reads
	live     atomic.Bool // seeded: aggregates may be shown (promise 10)
}

// bindings are the rules of a set, bound.
type bindings struct {
	set    *rules.Set
	byRule map[*rules.Rule]*binding
	byID   map[string]*binding
}

func bind(set *rules.Set, ids map[*rules.Rule]string) *bindings {
	bs := &bindings{set, map[*rules.Rule]*binding{}, map[string]*binding{}}
	for _, r := range set.Rules {
		b := &binding{rule: r, id: ids[r], stamp: StampPrefix + ids[r], suffixes: r.WriteShards}
		bs.byRule[r], bs.byID[b.id] = b, b
	}
	return bs
}
