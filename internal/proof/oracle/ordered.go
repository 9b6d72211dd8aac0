package oracle

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/rules"
)

// A rule that shows some of the items of a group, by their order, has a row of the state table for each. Which items are shown, what they
// show, and how the rows' keys sort are worked out here, from the values themselves.

// backward has the kinds of such rules by their words: whether the highest order comes first.
var backward = map[string]bool{"min": false, "max": true, "first": false, "last": true}

// isOrdered reports whether a rule shows some of its items by their order.
func isOrdered(rule *rules.Rule) bool {
	_, ok := backward[rule.Kind.Word()]
	return ok
}

// Bounds of texts: of one by which items are ordered, and of a source's in the key of its row.
const (
	orderBytesMax  = 256
	sourceBytesMax = 400
	shownBytesMax  = 300 << 10 // of what is shown of one item
)

// place is where an item stands in the order of a group.
type place struct {
	group, element string
	order          change.Value
	source         change.Key
	shown          change.Item
}

// places are all places that an item has under a rule: none, if the rule cannot read one part of it.
func places(rule *rules.Rule, m *rules.Match, item change.Item) (all []place, err error) {
	takes, err := takenBy(rule, m, item)
	if err != nil {
		return nil, err
	}
	for _, t := range takes {
		p, ok, err := placeOf(rule, t, item)
		if err != nil {
			return nil, err
		}
		if ok {
			p.source = m.Key()
			all = append(all, p)
		}
	}
	texts := map[string]bool{}
	for _, p := range all {
		texts[p.effect()] = true
	}
	if err := tooLarge(rule, texts); err != nil {
		return nil, err
	}
	return all, nil
}

// placeOf is the place of an item, or of one element of its list; false if it takes no part.
func placeOf(rule *rules.Rule, t taken, item change.Item) (p place, ok bool, err error) {
	if ok, err = rule.Wanted(t.Match, item); err != nil || !ok {
		return p, false, err
	}
	p.element, p.shown = t.element, change.Item{}
	if p.group, ok, err = rule.JoinedText(t.Match, item); err != nil || !ok {
		return p, false, err
	}
	if rule.Order == "" {
		p.order, ok, err = rule.Ordered(rule.Kind.Word(), t.Match, item)
		p.shown[rule.Writes[0]] = p.order
	} else {
		p.order = rule.Source.Value(rule.Order, t.Match, item)
	}
	switch kind := p.order.Kind(); {
	case err != nil:
		return p, false, err
	case p.order.Missing(), kind == change.KindString && p.order.Text() == "":
		return p, false, nil
	case kind != change.KindString && kind != change.KindNumber:
		return p, false, &rules.ItemError{Code: "value.type"}
	case kind == change.KindString && len(p.order.Text()) > orderBytesMax:
		return p, false, &rules.ItemError{Code: "order.too_long"}
	}
	if rule.Order == "" {
		return p, ok, nil
	}
	attributes := rule.Shown
	if len(attributes) == 0 {
		attributes = rule.Attributes
	}
	for _, a := range attributes {
		if v := rule.Source.Value(a.From, t.Match, item); v.Kind() != change.KindAbsent {
			p.shown[a.As] = v
		}
	}
	size := 0
	for name, v := range p.shown {
		size += len(name) + v.Size()
	}
	if size > shownBytesMax {
		return p, false, &rules.ItemError{Code: "order.too_large"}
	}
	return p, true, nil
}

// compare says which of two places comes first, from the lowest order up.
func (p place) compare(q place) int {
	if p.order.Kind() != q.order.Kind() {
		if p.order.Kind() == change.KindNumber {
			return -1
		}
		return 1
	}
	c := strings.Compare(p.order.Text(), q.order.Text())
	if p.order.Kind() == change.KindNumber {
		c = rational(p.order).Cmp(rational(q.order))
	}
	if c == 0 {
		c = strings.Compare(tie(p.source), tie(q.source))
	}
	if c == 0 {
		c = strings.Compare(effectName("", p.element), effectName("", q.element))
	}
	return c
}

// tie is the text of an item by which one of two that have one order comes first. That of a long key stands for it.
func tie(source change.Key) string {
	text := blankless(source.String())
	if len(text) > sourceBytesMax || text[0] == '~' {
		sum := sha256.Sum256([]byte(source.String()))
		return "~" + hex.EncodeToString(sum[:])
	}
	return text
}

// blankless writes a text without blanks: each character up to ! as a ! and a character behind it.
func blankless(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		if c <= 0x21 {
			b.WriteByte(0x21)
			c += 0x30
		}
		b.WriteByte(c)
	}
	return b.String()
}

// rank is the order as the key of a row begins with it.
func (p place) rank() string {
	if p.order.Kind() != change.KindNumber {
		return "s" + blankless(p.order.Text())
	}
	q := rational(p.order)
	if q.Sign() == 0 {
		return "n0"
	}
	plainText := plain(new(big.Rat).Abs(q).FloatString(smallest))
	digitsOf, point := strings.ReplaceAll(plainText, ".", ""), strings.Index(plainText+".", ".")
	for digitsOf[0] == '0' {
		digitsOf, point = digitsOf[1:], point-1
	}
	text := strconv.Itoa(500+point) + strings.TrimRight(digitsOf, "0")
	if q.Sign() > 0 {
		return "n1" + text
	}
	flipped := []byte(text)
	for i, c := range flipped {
		flipped[i] = '0' + '9' - c
	}
	return "n-" + string(flipped) + ":"
}

// effect is the place as a ledger entry holds it.
func (p place) effect() string {
	return fmt.Sprintf("<%s %s %s", p.rank(), ShortDigest(8, change.Map(p.shown)), p.group)
}

// row is the row of the place under a rule.
func (p place) row(id string) (change.Key, wanted) {
	sort := p.rank() + " " + tie(p.source)
	if p.element != "" {
		sort += effectName("", p.element)
	}
	row := change.Item{"shown": change.Map(p.shown), "item": {}}
	if tie(p.source)[0] == '~' {
		row["item"] = change.String(p.source.String())
	}
	return stateKey("member/"+id+"/"+inner(p.group), sort), wanted{id, row}
}

// shownFirst returns what targets show of a rule.
func (t *table) shownFirst(rule *rules.Rule) []cell {
	groups := map[string][]place{}
	t.each(rule.Source, func(_ change.Key, m *rules.Match, item change.Item) {
		all, _ := places(rule, m, item)
		for _, p := range all {
			groups[p.group] = append(groups[p.group], p)
		}
	})
	count := 0 // of items in a list; 0: one item, without a list
	for _, said := range rule.Form.Says() {
		if said.Key == rule.Kind.Word() {
			count, _ = strconv.Atoi(said.Text)
		}
	}
	return t.displays(rule, nil, func(group string) []change.Value {
		all := groups[group]
		slices.SortFunc(all, place.compare)
		if backward[rule.Kind.Word()] {
			slices.Reverse(all)
		}
		values := make([]change.Value, len(rule.Writes))
		if len(all) == 0 {
			return values
		}
		if count == 0 {
			for i, name := range rule.Writes {
				values[i] = all[0].shown[name]
			}
			return values
		}
		var list []change.Value
		for _, p := range all[:min(count, len(all))] {
			list = append(list, change.Map(p.shown))
		}
		values[0] = change.List(list)
		return values
	})
}

// members compares the rows of items in groups with what the items ask for. Of a place in force that its item does not ask for any more,
// the item tells no content.
func (a *audit) members() {
	want := map[change.Key]wanted{}
	for key, effects := range a.effects {
		item := a.items.actual[key]
		m, _ := a.set.Identify(key, item)
		for _, rule := range a.set.Rules {
			if rule.Source != m.Entity || !isOrdered(rule) {
				continue
			}
			id := a.names[rule]
			all, _ := places(rule, &m, item)
			for _, p := range all {
				if effects[effectName(id, p.element)] == p.effect() {
					at, row := p.row(id)
					want[at] = row
				}
			}
		}
	}
	held := a.heldMembers()
	a.compare("member/", want, func(id string, row change.Item) bool {
		return held[change.Key{Partition: row["pk"].Text(), Sort: row["sk"].Text()}]
	})
}

// heldMembers are the keys of rows for which some effect in force asks, whatever its item asks for.
func (a *audit) heldMembers() map[change.Key]bool {
	held := map[change.Key]bool{}
	for key, effects := range a.effects {
		for name, text := range effects {
			rest, ok := strings.CutPrefix(text, "<")
			if !ok || a.ids[ruleOf(name)] == nil {
				continue
			}
			rank, rest, _ := strings.Cut(rest, " ")
			_, group, _ := strings.Cut(rest, " ")
			id, element, _ := strings.Cut(name, " ")
			sort := rank + " " + tie(key)
			if element != "" {
				sort += " " + element
			}
			held[stateKey("member/"+id+"/"+inner(group), sort)] = true
		}
	}
	return held
}
