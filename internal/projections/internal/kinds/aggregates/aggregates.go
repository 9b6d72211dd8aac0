// Package aggregates is the family of the kinds of rules that add up what many
// sources contribute, each to one group, and show the total on a target item.
package aggregates

import (
	"fmt"
	"slices"

	"github.com/dynamill/dynamill/internal/projections/internal/groupaudit"
	"github.com/dynamill/dynamill/internal/projections/internal/groups"
	"github.com/dynamill/dynamill/internal/projections/internal/kinds/amounts"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/internal/tally"
)

// The kinds.
var (
	Count   rules.Kind = newKind(amounts.Count)
	Sum     rules.Kind = newKind(amounts.Sum)
	Average rules.Kind = newKind(amounts.Average)
)

// newKind is a kind that adds up a sort of amounts.
func newKind(sort amounts.Sort) *kind {
	sort.Traits.Keys = append(slices.Clone(sort.Traits.Keys), rules.Key{Name: "write_shards"})
	return &kind{sort: sort}
}

// perSuffixesMax is the most suffixes of a rule with `per`: one transaction checks all rows of an aggregate.
const perSuffixesMax = 90

type kind struct {
	groups.Family
	groupaudit.Auditing
	sort amounts.Sort
}

// Word is the key that gives a rule the kind.
func (k *kind) Word() string { return k.sort.Word }

// Traits are what the language must know of the kind.
func (k *kind) Traits() *rules.Traits { return &k.sort.Traits }

// options are what a rule says under keys that not every family has.
type options struct {
	suffixes  int
	hidesZero bool
}

// Read reads the number of suffixes, and what stands in the place of 0.
func (k *kind) Read(d *rules.Declaration) {
	own := options{hidesZero: amounts.HidesZero(d)}
	most := rules.SuffixesMax
	if d.Per.Given() {
		most = perSuffixesMax
	}
	own.suffixes = d.Whole("write_shards", most, "1 is right unless hundreds of items a second change one aggregate")
	d.Own, d.Rows = own, own.suffixes
}

// Check reports nothing: the language checks all of it.
func (k *kind) Check(*rules.Declaration) {}

// Compile makes the Form of a rule.
func (k *kind) Compile(r *rules.Rule, d *rules.Declaration) rules.Form {
	own := d.Own.(options)
	return &Form{Form: amounts.New(&k.sort, r, own.hidesZero), writeShards: own.suffixes}
}

// Form adds up what the sources of a rule contribute. The number of suffixes says how a value is kept and not what it is: it is no part of
// the rule's meaning.
type Form struct {
	amounts.Form
	writeShards int // at least 1
}

// Of returns the Form of an aggregate's rule; nil of any other rule.
func Of(r *rules.Rule) *Form {
	f, _ := r.Form.(*Form)
	return f
}

// Suffixes is the number of suffixes over which the writes to one group are spread, at least 1.
func (f *Form) Suffixes() int { return f.writeShards }

// Cost implements rules.Form.
func (f *Form) Cost() rules.Cost {
	c := rules.Cost{WriteUnits: 2, Text: "2 WU per change + roll-up once per batch and target"}
	if f.Rule.JoinsByElement() {
		c = rules.Cost{WriteUnits: 4, Text: "2 WU per change and 2 WU per element that changes + roll-up once per batch and target"}
	}
	if f.Rule.Derives() {
		c.Text += groups.ItemCost(f.Rule)
	} else if !f.ShowsNothing(tally.Amount{}) {
		c.Text += ", 1 WU per new " + f.Rule.Target.Name
	}
	if f.Rule.HasPer() {
		c.Text += ", 2 WU more per change for each KB of values"
	}
	if f.writeShards > 1 {
		c.Text += fmt.Sprintf(", %d write shards", f.writeShards)
	}
	return c
}
