// Package ordered is the family of the kinds of rules that show on a target some of its sources, by their order: the greatest or the
// smallest value, or the first or the last items. Each source has a member row in the state table, whose key sorts as the order does, so
// that a roll-up reads no more rows than it shows.
package ordered

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/effects"
	"github.com/dynamill/dynamill/internal/projections/internal/groupaudit"
	"github.com/dynamill/dynamill/internal/projections/internal/groups"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/internal/rules/expr"
	"github.com/dynamill/dynamill/internal/tally"
)

// The kinds.
var (
	Min rules.Kind = extreme("min", 20, "a minimum", "minimums", false)
	Max rules.Kind = extreme("max", 21, "a maximum", "maximums", true)

	First rules.Kind = items("first", 22, "oldest", false)
	Last  rules.Kind = items("last", 23, "newest", true)
)

// extreme is a kind that shows one value of all.
func extreme(word string, number int, noun, plural string, backward bool) *kind {
	return &kind{word: word, backward: backward, traits: rules.Traits{
		Number: number, Noun: noun, Plural: plural,
		Keys: append([]rules.Key{
			{Name: "of", Required: true, Hint: "name the entity whose items have the values: `of: Sample`"},
			{Name: "as", Required: true, Hint: "name the entity and its attribute: `as: Day.peak`"},
		}, keys...),
		Expressions: []rules.Expression{{Key: word, Want: "a number or a text, as in `price`", Type: expr.Any, Ordered: true}},
		SourceField: "of",
		TargetField: "as",
		Displays:    "as: Day.peak",
	}}
}

// items is a kind that shows attributes of items.
func items(word string, number int, which string, backward bool) *kind {
	return &kind{word: word, backward: backward, traits: rules.Traits{
		Number: number, Noun: "a " + word + " rule", Plural: word + " rules",
		Keys: append([]rules.Key{
			{Name: "of", Required: true, Hint: "name the entity whose items are shown: `of: Comment`"},
			{Name: "to", Required: true, Under: rules.AList, Hint: "name the entity that gets the attributes: `to: Post`"},
			{Name: "as", Required: true, Under: rules.ANumber, Hint: "name the entity and its attribute: `as: Post.recentComments`"},
			{Name: "attributes", Required: true, Under: rules.ANumber, Hint: "list what is shown of each item: `attributes: [userName, text]`"},
			{Name: "order", Required: true, Hint: "name the attribute that says which item is the " + which + ": `order: createdAt`"},
		}, keys...),
		SourceField:     "of",
		TargetField:     "as",
		ListsTo:         "to",
		AttributesField: "attributes",
		Displays:        "as: Post.recentComments",
	}}
}

var keys = []rules.Key{{Name: "each"}, {Name: "where"}, {Name: "by"}}

// Bounds of what a target shows.
const (
	ItemsMax      = 100       // in one attribute
	shownBytesMax = 300 << 10 // of one item: its member row has up to 400 KB (DynamoDB developer guide, "Service quotas")
)

type kind struct {
	groups.Family
	groupaudit.Auditing
	word     string
	traits   rules.Traits
	backward bool // the highest order comes first
}

// Word is the key that gives a rule the kind.
func (k *kind) Word() string { return k.word }

// Traits are what the language must know of the kind.
func (k *kind) Traits() *rules.Traits { return &k.traits }

// Read reads how many items a rule shows.
func (k *kind) Read(d *rules.Declaration) {
	count := 0
	if k.traits.ListsTo != "" && !d.Lists {
		count = d.Whole(k.word, ItemsMax, fmt.Sprintf("write a number, as in `%[1]s: 10`; for one item, list its attributes: "+
			"`%[1]s: [text as %[1]sText]`, with `to` in the place of `as` and `attributes`", k.word))
	}
	d.Own, d.Rows = count, 1
}

// Check reports nothing: the language checks all of it.
func (k *kind) Check(*rules.Declaration) {}

// Compile makes the Form of a rule.
func (k *kind) Compile(r *rules.Rule, d *rules.Declaration) rules.Form {
	return &Form{kind: k, rule: r, count: d.Own.(int)}
}

// Form shows some of the sources of a rule.
type Form struct {
	kind  *kind
	rule  *rules.Rule
	count int // items in the list that a target shows; 0: it shows one, without a list
}

// Of returns the Form of a rule of the family; nil of any other rule.
func Of(r *rules.Rule) *Form {
	f, _ := r.Form.(*Form)
	return f
}

// Suffixes implements rules.Spreader: one row counts the operations on a group.
func (*Form) Suffixes() int { return 1 }

// shows is how many members a target shows.
func (f *Form) shows() int { return max(1, f.count) }

// listed are the attributes that are shown of a member, each under the name that it has there.
func (f *Form) listed() []rules.Attribute {
	if f.count > 0 {
		return f.rule.Shown
	}
	return f.rule.Attributes
}

// Member is what a source is in the order of a group.
type Member struct {
	Group string
	Order change.Value
	Shown map[string]change.Value
}

// Member says where a source stands in the order of its group, and what is shown of it. A nil error and false mean that it takes no part:
// where is false, or a join value or the value of its order is absent, null or empty. The error is an *ItemError.
func (f *Form) Member(m *rules.Match, img change.Image) (Member, bool, error) {
	ok, err := f.rule.Wanted(m, img)
	if err != nil || !ok {
		return Member{}, false, err
	}
	member := Member{Shown: map[string]change.Value{}}
	if member.Group, ok, err = f.rule.JoinedText(m, img); err != nil || !ok {
		return Member{}, false, err
	}
	if f.rule.Order == "" {
		member.Order, ok, err = f.rule.Ordered(f.kind.word, m, img)
		member.Shown[f.rule.Writes[0]] = member.Order
		return member, ok, err
	}
	if member.Order, ok, err = f.rule.OrderOf(m, img); err != nil || !ok {
		return Member{}, false, err
	}
	size := 0
	for _, a := range f.listed() {
		if v := f.rule.Source.Value(a.From, m, img); v.Kind() != change.KindAbsent {
			member.Shown[a.As] = v
			size += len(a.As) + v.Size()
		}
	}
	if size > shownBytesMax {
		return Member{}, false, &rules.ItemError{Code: "order.too_large", Reason: fmt.Sprintf(
			"what is shown of %s has %d bytes: at most %d are allowed", f.rule.Source.Name, size, shownBytesMax)}
	}
	return member, true, nil
}

// Values implements groups.Form.
func (f *Form) Values(t groups.Total) []change.Value {
	members, _ := t.More.([]map[string]change.Value)
	values := make([]change.Value, len(f.rule.Writes))
	if len(members) == 0 {
		return values
	}
	if f.count > 0 {
		var list []change.Value
		for _, m := range members {
			list = append(list, change.Map(m))
		}
		values[0] = change.List(list)
		return values
	}
	for i, name := range f.rule.Writes {
		values[i] = members[0][name]
	}
	return values
}

// Shown implements groupaudit.Form: the digests of the members that are shown.
func (f *Form) Shown(values []change.Value) string {
	if groups.IsNothing(values) {
		return ""
	}
	if f.count == 0 {
		shown := map[string]change.Value{}
		for i, name := range f.rule.Writes {
			if values[i].Kind() != change.KindAbsent {
				shown[name] = values[i]
			}
		}
		return effects.MemberDigest(shown)
	}
	if values[0].Kind() != change.KindList {
		return values[0].Kind().String()
	}
	all := []string{strconv.Itoa(len(values[0].List()))}
	for _, v := range values[0].List() {
		all = append(all, stamp.Digest([]change.Value{v}))
	}
	return strings.Join(all, " ")
}

// Text implements groupaudit.Form.
func (*Form) Text(v change.Value) string { return audit.Text(v) }

// Summed implements groupaudit.Form.
func (*Form) Summed(tally.Amount) string { return "" }

// Meaning returns what is shown, and the order of it.
func (f *Form) Meaning() []string {
	lines := []string{fmt.Sprintf("shows %d by %q", f.count, f.rule.Order)}
	for _, a := range f.rule.Attributes {
		lines = append(lines, fmt.Sprintf("as %q %q", a.As, a.From))
	}
	for _, a := range f.rule.Shown {
		lines = append(lines, fmt.Sprintf("item %q %q", a.As, a.From))
	}
	return lines
}

// Says returns how many items a target shows.
func (f *Form) Says() []rules.Said {
	if f.count == 0 {
		return nil
	}
	return []rules.Said{{Key: f.kind.word, Text: strconv.Itoa(f.count)}}
}

// Cost implements rules.Form.
func (f *Form) Cost() rules.Cost {
	c := rules.Cost{WriteUnits: 6, Text: "2 + 2 + 2 WU per change, 2 WU more if the order changes"}
	switch {
	case f.rule.JoinsByElement():
		c.Text = "2 WU per change and 2 + 2 WU per element that changes, 2 WU more if its order changes"
	case f.rule.Each.Given():
		c.Text = "2 + 2 WU per change and 2 WU per element that changes, 2 WU more if its order changes"
	}
	c.Text += " + roll-up once per batch and target"
	if f.rule.Derives() {
		c.Text += groups.ItemCost(f.rule)
	}
	return c
}

// Replays implements rules.Form.
func (f *Form) Replays() string { return groups.Replays(f.rule) }

// Needs implements rules.Form.
func (f *Form) Needs() []rules.Need { return groups.Needs(f.rule) }
