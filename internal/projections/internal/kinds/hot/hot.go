// Package hot is the family of the kinds of rules that add up what many sources contribute, as aggregates do, and keep nothing of each
// source: a worker adds what the records of a batch change to one row of each group, once, by their positions in the stream
// (docs/adr/0036-hot-counters-count-by-position.md). What a group began with is found by a count of the table.
package hot

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/groups"
	"github.com/dynamill/dynamill/internal/projections/internal/kinds/amounts"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/internal/tally"
)

// The kinds. Each has the word of an aggregate, and the key `hot`.
var (
	Count   rules.Kind = newKind(amounts.Count, 7, "a hot count", "hot counts")
	Sum     rules.Kind = newKind(amounts.Sum, 8, "a hot sum", "hot sums")
	Average rules.Kind = newKind(amounts.Average, 9, "a hot average", "hot averages")
)

// The keys that aggregates have not.
const (
	key        = "hot"
	displayKey = "display_every"
)

// pays says when a rule costs less with the key than without it: two write units for each change, against one for the group and one for
// its display.
const pays = "it costs 1 WU per batch and target instead of 2 WU per change, and so pays where a target has more than about three " +
	"changes in a batch"

// displaySecondsMax is the longest time between two writes of a display: an hour.
const displaySecondsMax = 3600

// newKind is a kind that folds a sort of amounts.
func newKind(sort amounts.Sort, number int, noun, plural string) *kind {
	t := &sort.Traits
	t.Variant, t.Number, t.Noun, t.Plural, t.Example = key, number, noun, plural, ""
	t.Keys = slices.DeleteFunc(slices.Clone(t.Keys), func(k rules.Key) bool { return k.Name == amounts.PerKey })
	t.Keys = append(t.Keys, rules.Key{Name: key}, rules.Key{Name: displayKey})
	t.Pays = pays
	t.OnItems = "leave `" + key + "` out: then the rule makes the items of a derived entity"
	return &kind{sort: sort}
}

type kind struct {
	groups.Family
	sort amounts.Sort
}

// Word is the key that gives a rule the kind, beside `hot`.
func (k *kind) Word() string { return k.sort.Word }

// Traits are what the language must know of the kind.
func (k *kind) Traits() *rules.Traits { return &k.sort.Traits }

// options are what a rule says under keys that not every family has.
type options struct {
	hidesZero    bool
	displayEvery time.Duration
}

// Read reads what stands in the place of 0, and how often a display may be written.
func (k *kind) Read(d *rules.Declaration) {
	d.OneOf(key, []string{"true"}, "write `hot: true`, or leave it out")
	seconds := d.Seconds(displayKey, displaySecondsMax,
		"write `display_every: 5s`; without it, a worker writes a display at most once a second")
	d.Own = options{hidesZero: amounts.HidesZero(d), displayEvery: time.Duration(seconds) * time.Second}
}

// Check reports nothing: the language checks all of it.
func (k *kind) Check(*rules.Declaration) {}

// Compile makes the Form of a rule.
func (k *kind) Compile(r *rules.Rule, d *rules.Declaration) rules.Form {
	own := d.Own.(options)
	return &Form{Form: amounts.New(&k.sort, r, own.hidesZero), displayEvery: own.displayEvery}
}

// Form adds up what records change of the contributions of a rule's sources. How often a display is written is no part of the rule's
// meaning.
type Form struct {
	amounts.Form
	displayEvery time.Duration // 0: as the engine's other displays
}

// Needs implements rules.Form.
func (f *Form) Needs() []rules.Need {
	return append(f.Form.Needs(), rules.Need{Action: "dynamodb:ConditionCheckItem",
		Why: "ConditionCheckItem lets a rule with hot park an item that it cannot read."})
}

// Of returns the Form of a hot rule; nil of any other rule.
func Of(r *rules.Rule) *Form {
	f, _ := r.Form.(*Form)
	return f
}

// Meaning adds that the rule is hot: its rows are not those of an aggregate.
func (f *Form) Meaning() []string { return append(f.Form.Meaning(), key) }

// Says adds that the rule is hot.
func (f *Form) Says() []rules.Said {
	return append(f.Form.Says(), rules.Said{Key: key, Text: "true"})
}

// Cost implements rules.Form.
func (f *Form) Cost() rules.Cost {
	every := "once a second"
	if f.displayEvery > 0 {
		every = fmt.Sprintf("once in %d s", int(f.displayEvery/time.Second))
	}
	return rules.Cost{WriteUnits: 1, Text: "1 WU per batch and target + roll-up at most " + every +
		" per target; without hot: 2 WU per change + roll-up once per batch and target"}
}

// Replays implements rules.Form.
func (f *Form) Replays() string {
	return fmt.Sprintf("`dynamill run` counts every %s by one scan beside the live traffic, then shows %s on every %s: about 1 WU for each "+
		"%s that has sources, and 1 WU for what it shows; the present values stay until then",
		f.Rule.Source.Name, f.Rule.Writes[0], f.Rule.Target.Name, f.Rule.Target.Name)
}

// Amounts implements rules.Folder: the amounts of all elements of a list that name one group are added up.
func (f *Form) Amounts(m *rules.Match, img change.Image) (map[string]tally.Amount, error) {
	terms := map[string][]tally.Amount{}
	err := f.ForEach(m, img, func(_ string, c rules.Contribution) {
		terms[c.Group] = append(terms[c.Group], tally.Amount{Value: c.Amount, Members: 1})
	})
	if err != nil {
		return nil, err
	}
	all := make(map[string]tally.Amount, len(terms))
	for group, of := range terms {
		all[group] = tally.Sum(of...)
	}
	return all, nil
}

// read is what an image adds; nothing, and the reason, if the rule cannot read it.
func (f *Form) read(m *rules.Match, img change.Image) (map[string]tally.Amount, *rules.ItemError) {
	if img == nil {
		return nil, nil
	}
	all, err := f.Amounts(m, img)
	bad, _ := errors.AsType[*rules.ItemError](err)
	return all, bad
}
