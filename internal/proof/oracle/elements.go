package oracle

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/rules"
)

const (
	elementsMax     = 200       // different elements of one list that a rule takes
	targetsBytesMax = 128 << 10 // of the keys of their targets, with what counts there; the rules of an entity share them
)

// taken is an item as a rule takes it: as a whole, or for one element of a list.
type taken struct {
	*rules.Match
	element string // its text; "" of an item as a whole
	value   change.Value
}

// within is the item as the rule reads it: an element stands under its name, whatever attribute has that name.
func (t taken) within(item change.Item, rule *rules.Rule) change.Item {
	if rule.Each.As == "" {
		return item
	}
	all := maps.Clone(item)
	all[rule.Each.As] = t.value
	return all
}

// takenBy says how a rule takes an item. It reads the list itself, and shares no code with the rules. The error is an
// *rules.ItemError of which the code counts.
func takenBy(rule *rules.Rule, m *rules.Match, item change.Item) ([]taken, error) {
	if rule.Each.List == "" {
		return []taken{{Match: m}}, nil
	}
	list := item[rule.Each.List]
	switch list.Kind() {
	case change.KindAbsent, change.KindNull:
		return nil, nil
	case change.KindList, change.KindStringSet, change.KindNumberSet:
	default:
		return nil, &rules.ItemError{Code: "value.type"}
	}
	values := map[string]change.Value{}
	for _, v := range slices.Backward(list.List()) { // the first of those that read alike stays
		switch text := v.Text(); v.Kind() {
		case change.KindNull:
		case change.KindString:
			if text != "" {
				values[text] = v
			}
		case change.KindNumber:
			values[plain(rational(v).FloatString(smallest))] = v
		default:
			return nil, &rules.ItemError{Code: "value.type"}
		}
	}
	if len(values) > elementsMax {
		return nil, &rules.ItemError{Code: "each.too_many"}
	}
	var all []taken
	for _, text := range slices.Sorted(maps.Keys(values)) {
		of := m.With(rule.Each.As, text, values[text])
		all = append(all, taken{&of, text, values[text]})
	}
	return all, nil
}

// share is what an item adds to one group of a rule.
type share struct {
	rules.Contribution
	element string
	place   *place // where it stands in the order of the group, of a rule that has one
}

// shares are all that an item adds under a rule: nothing, if the rule cannot read one part of it.
func shares(rule *rules.Rule, m *rules.Match, item change.Item) ([]share, error) {
	var all []share
	if isOrdered(rule) {
		found, err := places(rule, m, item)
		for _, p := range found {
			all = append(all, share{rules.Contribution{Group: p.group}, p.element, &p})
		}
		return all, err
	}
	takes, err := takenBy(rule, m, item)
	if err != nil {
		return nil, err
	}
	for _, t := range takes {
		c, ok, err := rule.Form.(rules.Contributor).Contribution(t.Match, item)
		if err != nil {
			return nil, err
		}
		if ok {
			all = append(all, share{c, t.element, nil})
		}
	}
	targets := map[string]bool{}
	for _, s := range all {
		if hasEffect(rule, s.Contribution) {
			targets[s.Group+s.Per+s.Amount.String()] = true
		}
	}
	if err := tooLarge(rule, targets); err != nil {
		return nil, err
	}
	return all, nil
}

// hasEffect says whether a contribution stands in the ledger entry of its item. One of 0 does so under an average, under a rule that
// makes items, and under one with `per`.
func hasEffect(rule *rules.Rule, c rules.Contribution) bool {
	return !c.Amount.IsZero() || tallyOf(rule).zeroCounts || rule.Derives() || apart(rule)
}

// tooLarge refuses the targets of an item's elements if their keys are too long for the item's ledger entry. A rule that keeps nothing of
// an item has no such bound.
func tooLarge(rule *rules.Rule, targets map[string]bool) error {
	size, sharing := 0, 0
	for key := range targets {
		size += len(key)
	}
	for _, r := range rule.Source.Sources {
		if r.Each.List != "" {
			sharing++
		}
	}
	if rule.Each.List != "" && !rule.Folds() && size > targetsBytesMax/sharing {
		return &rules.ItemError{Code: "each.too_large"}
	}
	return nil
}

// image is a mirror item for which an item asks.
type image struct {
	rules.MadeItem
	element string // as the key has it
}

// images are all mirror items for which an item asks under a rule: none, if the rule cannot read one part of it. Of
// elements with one key the first one counts.
func images(rule *rules.Rule, m *rules.Match, item change.Item) ([]image, error) {
	takes, err := takenBy(rule, m, item)
	if err != nil {
		return nil, err
	}
	var all []image
	for _, t := range takes {
		made, ok, err := rule.Form.(rules.Maker).Item(t.Match, item)
		if err != nil {
			return nil, err
		}
		if !ok || slices.ContainsFunc(all, func(other image) bool { return other.Key == made.Key }) {
			continue
		}
		all = append(all, image{made, rule.ElementAt(made.Key)})
	}
	targets := map[string]bool{}
	for _, made := range all {
		targets[made.Key.String()+"0"] = true // nothing counts there
	}
	if err := tooLarge(rule, targets); err != nil {
		return nil, err
	}
	return all, nil
}

// effectName is the name of an effect in a ledger entry. An element that is long, or could be taken for a digest, stands
// there as its digest.
func effectName(id, element string) string {
	if element == "" {
		return id
	}
	if len(element) > 64 || element[0] == '~' {
		digest := sha256.Sum256([]byte(element))
		element = "~" + base64.RawURLEncoding.EncodeToString(digest[:16])
	}
	return fmt.Sprintf("%s %s", id, element)
}

// ruleOf is the id of the rule or locator in the name of an effect.
func ruleOf(effect string) string {
	id, _, _ := strings.Cut(effect, " ")
	return id
}
