package oracle

import (
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/rules"
)

func (t *table) aggregates(rule *rules.Rule) []cell {
	switch {
	case isOrdered(rule):
		return t.shownFirst(rule)
	case apart(rule):
		return t.maps(rule)
	}
	totals, members, tally := map[string]decimal.Decimal{}, map[string]int64{}, tallyOf(rule)
	hidesZero := says(rule, "if_none", "absent")
	beyond := t.delicate(rule) // groups whose total, or part of it, no DynamoDB number holds
	t.each(rule.Source, func(_ change.Key, m *rules.Match, item change.Item) {
		all, _ := shares(rule, m, item)
		for _, c := range all {
			total, err := totals[c.Group].Add(c.Amount)
			if err != nil {
				beyond[c.Group] = true
				continue
			}
			totals[c.Group] = total
			members[c.Group]++
		}
	})
	return t.displays(rule, beyond, func(group string) []change.Value {
		if hidesZero && totals[group].IsZero() {
			return []change.Value{{}}
		}
		return []change.Value{tally.display(totals[group], members[group])}
	})
}

// displays are what targets show of their groups, but for those of which no number holds the total.
func (t *table) displays(rule *rules.Rule, beyond map[string]bool, of func(group string) []change.Value) []cell {
	var cells []cell
	shown := map[string]bool{}
	t.each(rule.Target, func(key change.Key, m *rules.Match, item change.Item) {
		group, ok, err := rule.GroupOf(m, item)
		if err != nil || ok && beyond[group] {
			return
		}
		// Where several items have one unique value, the first of them, by key, displays the total.
		want := make([]change.Value, len(rule.Writes))
		if ok && !shown[group] {
			shown[group] = true
			want = of(group)
		}
		for i, attribute := range rule.Writes {
			cells = append(cells, cell{key: key, attribute: attribute, want: want[i]})
		}
	})
	return cells
}

// says reports whether a rule says a word under a key of its kind.
func says(rule *rules.Rule, key, word string) bool {
	return slices.Contains(rule.Form.Says(), rules.Said{Key: key, Text: word})
}

// normalize writes every number in v in one way, so that equal numbers are equal texts.
func normalize(v change.Value) change.Value {
	switch v.Kind() {
	case change.KindNumber:
		return change.Number(normalNumber(v.Text()))
	case change.KindNumberSet:
		members := make([]string, len(v.List()))
		for i, m := range v.List() {
			members[i] = normalNumber(m.Text())
		}
		return change.Set(change.KindNumberSet, members)
	case change.KindList:
		members := make([]change.Value, len(v.List()))
		for i, m := range v.List() {
			members[i] = normalize(m)
		}
		return change.List(members)
	case change.KindMap:
		fields := make(map[string]change.Value, len(v.Map()))
		for name, f := range v.Map() {
			fields[name] = normalize(f)
		}
		return change.Map(fields)
	}
	return v
}

func normalNumber(text string) string {
	d, err := decimal.Parse(text)
	if err != nil {
		return text
	}
	return d.String()
}
