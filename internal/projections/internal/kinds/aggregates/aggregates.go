// Package aggregates is the family of the kinds of rules that add up what many
// sources contribute, each to one group, and show the total on a target item.
package aggregates

import (
	"fmt"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/projections/internal/groupaudit"
	"github.com/dynamill/dynamill/internal/projections/internal/groups"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/internal/rules/expr"
	"github.com/dynamill/dynamill/internal/tally"
)

// The kinds.
var (
	Count rules.Kind = newKind(kind{word: "count", display: showValue, traits: rules.Traits{
		Number:      3,
		Noun:        "a count",
		Plural:      "counts",
		Example:     "comment-count: { count: Comment, as: Post.commentCount }",
		Keys:        append(keys, ifNone, per),
		SourceField: "count",
	}})
	Sum rules.Kind = newKind(kind{word: "sum", display: showValue, traits: rules.Traits{
		Number:      4,
		Noun:        "a sum",
		Plural:      "sums",
		Keys:        append(keysOf("name the entity whose items are summed: `of: LineItem`"), ifNone, per),
		Expressions: []rules.Expression{{Key: "sum", Want: "a number, as in `price * quantity`", Type: expr.Number}},
		SourceField: "of",
	}})
	Average rules.Kind = newKind(kind{word: "average", display: showMean, zeroCounts: true, traits: rules.Traits{
		Number:      5,
		Noun:        "an average",
		Plural:      "averages",
		Keys:        keysOf("name the entity whose items are averaged: `of: Sample`"),
		Expressions: []rules.Expression{{Key: "average", Want: "a number, as in `used / total`", Type: expr.Number}},
		SourceField: "of",
	}})
)

// newKind is a kind with the traits that all of the family have.
func newKind(k kind) *kind {
	k.traits.TargetField, k.traits.Displays = "as", displayed
	return &k
}

// showValue displays the value itself.
func showValue(a tally.Amount) change.Value { return change.Number(a.Value.String()) }

// showMean displays the value for each member, rounded half to even to 38 digits; nothing over no members.
func showMean(a tally.Amount) change.Value {
	if a.Members <= 0 { // below 0 only where another program has written
		return change.Value{}
	}
	mean, err := a.Value.QuoRounded(decimal.New(a.Members))
	if err != nil {
		panic(fmt.Sprintf("aggregates: %s has no mean: %v", a, err)) // it is no greater than the value
	}
	return change.Number(mean.String())
}

const displayed = "as: Group.memberCount"

var keys = []rules.Key{
	{Name: "as", Required: true, Hint: "name the entity and its attribute: `" + displayed + "`"},
	{Name: "each"},
	{Name: "where"},
	{Name: "write_shards"},
	{Name: "by"},
}

// ifNone is the key that says what a target shows instead of 0.
var ifNone = rules.Key{Name: "if_none"}

// per is the key that says what the sources of one target are told apart by.
var per = rules.Key{Name: "per"}

// perSuffixesMax is the most suffixes of a rule with `per`: one transaction checks all rows of an aggregate.
const perSuffixesMax = 90

// keysOf are the keys of kinds that say the entity of their sources under `of`.
func keysOf(hint string) []rules.Key {
	return append([]rules.Key{{Name: "of", Required: true, Hint: hint}}, keys...)
}

type kind struct {
	groups.Family
	groupaudit.Auditing
	word       string
	traits     rules.Traits
	zeroCounts bool                            // a source that adds 0 contributes
	display    func(tally.Amount) change.Value // what a target shows; absent for nothing
}

// Word is the key that gives a rule the kind.
func (k *kind) Word() string { return k.word }

// Traits are what the language must know of the kind.
func (k *kind) Traits() *rules.Traits { return &k.traits }

// options are what a rule says under keys that no other family has.
type options struct {
	suffixes  int
	hidesZero bool
}

// Read reads the number of suffixes, and what stands in the place of 0.
func (k *kind) Read(d *rules.Declaration) {
	none := d.OneOf(ifNone.Name, []string{"0", absent}, "write `if_none: absent` if a target must not show 0; 0 is shown without it")
	most := rules.SuffixesMax
	if d.Per.Given() {
		most = perSuffixesMax
	}
	own := options{
		suffixes:  d.Whole("write_shards", most, "1 is right unless hundreds of items a second change one aggregate"),
		hidesZero: none == absent,
	}
	d.Own, d.Rows = own, own.suffixes
}

// absent is the value of if_none that hides every 0.
const absent = "absent"

// Check finds nothing that the language does not refuse.
func (k *kind) Check(*rules.Declaration) {}

// Compile makes the Form of a rule.
func (k *kind) Compile(r *rules.Rule, d *rules.Declaration) rules.Form {
	own := d.Own.(options)
	return &Form{kind: k, rule: r, writeShards: own.suffixes, hidesZero: own.hidesZero}
}

// Form adds up what the sources of a rule contribute.
type Form struct {
	kind        *kind
	rule        *rules.Rule
	writeShards int  // at least 1
	hidesZero   bool // a target shows nothing instead of 0
}

// Of returns the Form of an aggregate's rule; nil of any other rule.
func Of(r *rules.Rule) *Form {
	f, _ := r.Form.(*Form)
	return f
}

// Suffixes is the number of suffixes over which the writes to one group are spread, at least 1.
func (f *Form) Suffixes() int { return f.writeShards }

// Contribution says what a source item adds. A nil error and false mean that it
// adds nothing: where is false, a join value is absent, null or empty, or the sum
// reads an attribute that is missing. The error is an *ItemError.
func (f *Form) Contribution(m *rules.Match, img change.Image) (rules.Contribution, bool, error) {
	ok, err := f.rule.Wanted(m, img)
	if err != nil || !ok {
		return rules.Contribution{}, false, err
	}
	group, ok, err := f.rule.JoinedText(m, img)
	if err != nil || !ok {
		return rules.Contribution{}, false, err
	}
	amount := decimal.New(1) // unless the rule has an expression
	for _, e := range f.kind.traits.Expressions {
		if amount, ok, err = f.rule.Amount(e.Key, m, img); err != nil {
			return rules.Contribution{}, false, err
		}
	}
	value := ""
	if ok && f.rule.HasPer() {
		if value, ok, err = f.rule.PerText(m, img); err != nil {
			return rules.Contribution{}, false, err
		}
	}
	return rules.Contribution{Group: group, Per: value, Amount: amount}, ok, nil
}

// Meaning returns the attribute that shows the total, and whether it shows 0. The number of
// suffixes says how a value is kept and not what it is.
func (f *Form) Meaning() []string {
	lines := []string{fmt.Sprintf("as %q", f.rule.Writes[0])}
	if f.hidesZero {
		lines = append(lines, ifNone.Name+" "+absent)
	}
	return lines
}

// Says returns whether a target shows 0. How many suffixes there are is no difference of meaning.
func (f *Form) Says() []rules.Said {
	if f.hidesZero {
		return []rules.Said{{Key: ifNone.Name, Text: absent}}
	}
	return nil
}

// Cost implements rules.Form.
func (f *Form) Cost() rules.Cost {
	c := rules.Cost{WriteUnits: 2, Text: "2 WU per change + roll-up once per batch and target"}
	if f.rule.JoinsByElement() {
		c = rules.Cost{WriteUnits: 4, Text: "2 WU per change and 2 WU per element that changes + roll-up once per batch and target"}
	}
	if f.rule.Derives() {
		rows := 0
		for _, r := range f.rule.Target.Makers {
			rows += r.Suffixes()
		}
		c.Text += fmt.Sprintf(", %d WU per %s that comes or goes", 2+2*rows, f.rule.Target.Name)
	} else if !f.showsNothing(tally.Amount{}) {
		c.Text += ", 1 WU per new " + f.rule.Target.Name
	}
	if f.rule.HasPer() {
		c.Text += ", 2 WU more per change for each KB of values"
	}
	if f.writeShards > 1 {
		c.Text += fmt.Sprintf(", %d write shards", f.writeShards)
	}
	return c
}

// Replays implements rules.Form.
func (f *Form) Replays() string {
	if f.rule.Derives() {
		return fmt.Sprintf("reads every %s, then makes %s items that show %s, and deletes every other item that stands at such a key",
			f.rule.Source.Name, f.rule.Target.Name, f.rule.Writes[0])
	}
	return fmt.Sprintf("reads every %s, then shows %s on every %s; what stands there is shown until then",
		f.rule.Source.Name, f.rule.Writes[0], f.rule.Target.Name)
}

// Needs implements rules.Form.
func (f *Form) Needs() []rules.Need { return groups.Needs(f.rule) }

// display is what a target shows of an amount; absent for nothing.
func (f *Form) display(a tally.Amount) change.Value {
	if f.rule.HasPer() {
		return f.displayMap(a)
	}
	if f.hidesZero && a.Value.IsZero() {
		return change.Value{}
	}
	return f.kind.display(a)
}

// showsNothing reports whether a target shows nothing of an amount.
func (f *Form) showsNothing(a tally.Amount) bool { return f.display(a).Kind() == change.KindAbsent }

// Values implements groups.Form.
func (f *Form) Values(t groups.Total) []change.Value { return []change.Value{f.display(t.Amount)} }

// Shown implements groupaudit.Form.
func (f *Form) Shown(values []change.Value) string {
	v := values[0]
	if v.Kind() == change.KindAbsent {
		return ""
	}
	if f.rule.HasPer() && v.Kind() == change.KindMap {
		return shownMap(v)
	}
	if v.Kind() != change.KindNumber {
		return v.Kind().String() + " " + v.Text()
	}
	d, err := decimal.Parse(v.Text())
	if err != nil {
		return v.Text()
	}
	return d.String()
}
