// Package amounts is what the families of kinds share whose sources each add an amount to one group: what a source contributes, and what
// a target displays of the sum. How the sum is kept is for the families to say. It knows no kind.
package amounts

import (
	"fmt"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/projections/internal/groups"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/internal/rules/expr"
	"github.com/dynamill/dynamill/internal/tally"
)

// Sort is one sort of amounts: what a source adds, and what a target shows of it.
type Sort struct {
	Word   string       // the key that gives a rule the sort
	Traits rules.Traits // what the language knows of it; the families add keys of their own

	zeroCounts bool                            // a source that adds 0 contributes
	display    func(tally.Amount) change.Value // what a target shows; absent for nothing
}

// The sorts. Their Traits have the numbers of the kinds that keep the effect of each source.
var (
	Count = Sort{Word: "count", display: showValue, Traits: traits(rules.Traits{
		Number:      3,
		Noun:        "a count",
		Plural:      "counts",
		Example:     "comment-count: { count: Comment, as: Post.commentCount }",
		Keys:        append(keys, ifNone, per),
		SourceField: "count",
	})}
	Sum = Sort{Word: "sum", display: showValue, Traits: traits(rules.Traits{
		Number:      4,
		Noun:        "a sum",
		Plural:      "sums",
		Keys:        append(keysOf("name the entity whose items are summed: `of: LineItem`"), ifNone, per),
		Expressions: []rules.Expression{{Key: "sum", Want: "a number, as in `price * quantity`", Type: expr.Number}},
		SourceField: "of",
	})}
	Average = Sort{Word: "average", display: showMean, zeroCounts: true, Traits: traits(rules.Traits{
		Number:      5,
		Noun:        "an average",
		Plural:      "averages",
		Keys:        keysOf("name the entity whose items are averaged: `of: Sample`"),
		Expressions: []rules.Expression{{Key: "average", Want: "a number, as in `price * quantity`", Type: expr.Number}},
		SourceField: "of",
	})}
)

// traits are those of a sort, with what all of them have.
func traits(t rules.Traits) rules.Traits {
	t.TargetField, t.Displays = "as", displayed
	return t
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
		panic(fmt.Sprintf("amounts: %s has no mean: %v", a, err)) // it is no greater than the value
	}
	return change.Number(mean.String())
}

const displayed = "as: Group.memberCount"

var keys = []rules.Key{
	{Name: "as", Required: true, Hint: "name the entity and its attribute: `" + displayed + "`"},
	{Name: "each"},
	{Name: "where"},
	{Name: "by"},
}

// ifNone is the key that says what a target shows instead of 0.
var ifNone = rules.Key{Name: "if_none"}

// PerKey is the key that says what the sources of one target are told apart by.
const PerKey = "per"

var per = rules.Key{Name: PerKey}

// keysOf are the keys of sorts that say the entity of their sources under `of`.
func keysOf(hint string) []rules.Key {
	return append([]rules.Key{{Name: "of", Required: true, Hint: hint}}, keys...)
}

// HidesZero reads whether a target shows nothing instead of 0.
func HidesZero(d *rules.Declaration) bool {
	none := d.OneOf(ifNone.Name, []string{"0", absent}, "write `if_none: absent` if a target must not show 0; 0 is shown without it")
	return none == absent
}

// absent is the value of if_none that hides every 0.
const absent = "absent"

// Form is what a rule of some sort contributes and displays. The Forms of the families embed it.
type Form struct {
	Rule      *rules.Rule
	sort      *Sort
	hidesZero bool // a target shows nothing instead of 0
}

// New makes the Form of a rule.
func New(sort *Sort, r *rules.Rule, hidesZero bool) Form {
	return Form{Rule: r, sort: sort, hidesZero: hidesZero}
}

// Contribution says what a source item adds. A nil error and false mean that it
// adds nothing: where is false, a join value is absent, null or empty, or the sum
// reads an attribute that is missing. The error is an *ItemError.
func (f *Form) Contribution(m *rules.Match, img change.Image) (rules.Contribution, bool, error) {
	ok, err := f.Rule.Wanted(m, img)
	if err != nil || !ok {
		return rules.Contribution{}, false, err
	}
	group, ok, err := f.Rule.JoinedText(m, img)
	if err != nil || !ok {
		return rules.Contribution{}, false, err
	}
	amount := decimal.New(1) // unless the rule has an expression
	for _, e := range f.sort.Traits.Expressions {
		if amount, ok, err = f.Rule.Amount(e.Key, m, img); err != nil {
			return rules.Contribution{}, false, err
		}
	}
	value := ""
	if ok && f.Rule.HasPer() {
		if value, ok, err = f.Rule.PerText(m, img); err != nil {
			return rules.Contribution{}, false, err
		}
	}
	return rules.Contribution{Group: group, Per: value, Amount: amount}, ok, nil
}

// ForEach calls tell with what a source adds, or with what each element of its list does, and with the element's text. Of a source that the
// rule cannot read, it may have told some elements before it returns the *ItemError.
func (f *Form) ForEach(m *rules.Match, img change.Image, tell func(element string, c rules.Contribution)) error {
	zeroCounts := f.sort.zeroCounts ||
		f.Rule.Derives() ||
		f.Rule.HasPer()
	return f.Rule.ForEach(m, img, func(element string, m *rules.Match) error {
		c, ok, err := f.Contribution(m, img)
		if err == nil && ok && (zeroCounts || !c.Amount.IsZero()) {
			tell(element, c)
		}
		return err
	})
}

// Meaning returns the attribute that shows the total, and whether it shows 0.
func (f *Form) Meaning() []string {
	lines := []string{fmt.Sprintf("as %q", f.Rule.Writes[0])}
	if f.hidesZero {
		lines = append(lines, ifNone.Name+" "+absent)
	}
	return lines
}

// Says returns whether a target shows 0.
func (f *Form) Says() []rules.Said {
	if f.hidesZero {
		return []rules.Said{{Key: ifNone.Name, Text: absent}}
	}
	return nil
}

// Replays implements rules.Form.
func (f *Form) Replays() string { return groups.Replays(f.Rule) }

// Needs implements rules.Form.
func (f *Form) Needs() []rules.Need { return groups.Needs(f.Rule) }

// display is what a target shows of an amount; absent for nothing.
func (f *Form) display(a tally.Amount) change.Value {
	if f.Rule.HasPer() {
		return f.displayMap(a)
	}
	if f.hidesZero && a.Value.IsZero() {
		return change.Value{}
	}
	return f.sort.display(a)
}

// ShowsNothing reports whether a target shows nothing of an amount.
func (f *Form) ShowsNothing(a tally.Amount) bool { return f.display(a).Kind() == change.KindAbsent }

// Values implements groups.Form.
func (f *Form) Values(t groups.Total) []change.Value { return []change.Value{f.display(t.Amount)} }

// Shown implements groupaudit.Form.
func (f *Form) Shown(values []change.Value) string {
	v := values[0]
	if v.Kind() == change.KindAbsent {
		return ""
	}
	if f.Rule.HasPer() && v.Kind() == change.KindMap {
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
