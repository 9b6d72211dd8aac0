package oracle

import (
	"strconv"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/rules"
)

// A rule with `per` shows a map. The texts of the values, what each adds up to and which groups have too many are worked out here.

const (
	valuesMax     = 100 // a target with more values shows no map
	valueBytesMax = 256
	underValue    = "\x00" // stands between a group and a value
)

// apart reports whether a rule tells its sources apart by a value.
func apart(rule *rules.Rule) bool { return rule.Per.Ours != "" }

// per is the text of the value under which an item counts.
func (j joiner) per(e *rules.Entity, values map[string]string, item change.Item, of rules.Joined) answer {
	a := j.said(e, values, item, of)
	if len(a.text) > valueBytesMax {
		return answer{bad: "per.too_long"}
	}
	return a
}

// maps returns what targets show of a rule with `per`.
func (t *table) maps(rule *rules.Rule) []cell {
	groups := map[string]map[string]decimal.Decimal{}
	beyond := t.delicate(rule)
	t.each(rule.Source, func(_ change.Key, m *rules.Match, item change.Item) {
		all, _ := shares(rule, m, item)
		for _, c := range all {
			if groups[c.Group] == nil {
				groups[c.Group] = map[string]decimal.Decimal{}
			}
			sum, err := groups[c.Group][c.Per].Add(c.Amount)
			groups[c.Group][c.Per] = sum
			beyond[c.Group] = beyond[c.Group] || err != nil
		}
	})
	return t.displays(rule, beyond, func(group string) []change.Value {
		shown := map[string]change.Value{}
		for value, sum := range groups[group] {
			shown[value] = change.Number(sum.String())
		}
		if len(shown) > valuesMax || len(shown) == 0 && says(rule, "if_none", "absent") {
			return []change.Value{{}}
		}
		return []change.Value{change.Map(shown)}
	})
}

// part is what an accumulator holds of one value.
type part struct {
	value   decimal.Decimal
	members int64
}

// parts reads the values that an accumulator holds, and reports what no rule has there.
func (a *audit) parts(key change.Key) map[string]part {
	all := map[string]part{}
	id := idIn(key.Partition)
	for name, v := range a.rows[key] {
		kind, value, ok := strings.Cut(name, "/")
		if !ok {
			continue
		}
		p := all[value]
		d, err := decimal.Parse(v.Text())
		switch {
		case err != nil || v.Kind() != change.KindNumber || !apart(a.ids[id]):
			a.differs(id, key, name, change.Number("0"), v)
		case kind == "v":
			p.value = d
		case kind == "m":
			p.members, _ = strconv.ParseInt(v.Text(), 10, 64)
		default:
			a.differs(id, key, name, change.Value{}, v)
		}
		all[value] = p
	}
	return all
}

// crowd is a group with too many values.
type crowd struct {
	wanted
	must bool // a target is there, which shows no map
}

// crowdedRows are the rows of groups with too many values. Of a group without a target, or of which no number may hold a
// part, there may be a row.
func (a *audit) crowdedRows() map[change.Key]crowd {
	values := map[string]map[[2]string]map[string]bool{} // by rule id; group and itself; value
	for _, effects := range a.effects {
		for name, text := range effects {
			id := ruleOf(name)
			rest, ok := strings.CutPrefix(text, ":")
			if !ok || a.ids[id] == nil {
				continue
			}
			value, group, _ := strings.Cut(rest, " ")
			if one, ok := strings.CutPrefix(group, "*"); ok {
				group = one
			} else {
				_, group, _ = strings.Cut(group, " ")
			}
			if values[id] == nil {
				values[id] = map[[2]string]map[string]bool{}
			}
			of := [2]string{id, group}
			if values[id][of] == nil {
				values[id][of] = map[string]bool{}
			}
			values[id][of][value] = true
		}
	}
	rows := map[change.Key]crowd{}
	for id, groups := range values {
		rule := a.ids[id]
		targets, delicate := a.targets(rule), map[string]bool{}
		for of, all := range groups {
			if len(all) <= valuesMax {
				continue
			}
			if len(delicate) == 0 {
				delicate = a.items.delicate(rule)
			}
			name := "values:" + id + "/" + inner(of[1])
			row := change.Item{"id": change.String(name), "rule": change.String(id), "code": change.String("per.too_many"), "value": {}}
			if rule.ByUnique {
				row["value"] = change.String(of[1])
			}
			rows[stateKey("parked", name)] = crowd{wanted{id, row}, targets[of[1]] && !delicate[of[1]]}
		}
	}
	return rows
}

// targets are the groups of which a target is there.
func (a *audit) targets(rule *rules.Rule) map[string]bool {
	groups := map[string]bool{}
	a.items.each(rule.Target, func(_ change.Key, m *rules.Match, item change.Item) {
		if group, ok, err := rule.GroupOf(m, item); ok && err == nil {
			groups[group] = true
		}
	})
	return groups
}

// listings counts the rows that list groups with too many values, by the beginning of their accumulators' keys.
func (a *audit) listings() map[string]int {
	listed := map[string]int{}
	for _, key := range a.under("parked") {
		if name, ok := strings.CutPrefix(a.rows[key]["id"].Text(), "values:"); ok {
			listed["sum/"+name]++
		}
	}
	return listed
}

// unlisted reports groups with a row and without the mark of it on one accumulator, or the other way round.
func (a *audit) unlisted(listed map[string]int) {
	for group, n := range listed {
		if n != 0 {
			a.differs(idIn(group), change.Key{Partition: group}, "listed", change.Value{}, count(int64(n)))
		}
	}
}
