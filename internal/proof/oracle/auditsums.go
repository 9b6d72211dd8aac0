package oracle

import (
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
)

// total is what a group's sources add, or what its accumulators hold: exact, whatever parts of it a number holds.
type total struct {
	sum     big.Rat
	members int64 // sources that contribute
	span    span
}

func (t *total) add(d decimal.Decimal, members int64) {
	t.span.add(d)
	t.members += members
	if exact, ok := new(big.Rat).SetString(d.String()); ok {
		t.sum.Add(&t.sum, exact)
	}
}

// value is the total as a number, of up to so many digits as numbers have behind the point.
func (t *total) value() change.Value {
	return change.Number(plain(t.sum.FloatString(smallest)))
}

// plain writes a number without needless zeros behind the point.
func plain(text string) string {
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

func count(n int64) change.Value { return change.Number(strconv.FormatInt(n, 10)) }

// smallest is how many digits numbers have behind the point.
const smallest = 130

// sums compares the accumulators of each group, all suffixes together, with
// what the items add.
func (a *audit) sums() {
	want, got := map[string]*total{}, map[string]*total{}
	listed := a.listings()
	at := func(totals map[string]*total, group string) *total {
		if totals[group] == nil {
			totals[group] = &total{}
		}
		return totals[group]
	}
	for _, effects := range a.effects {
		for name, text := range effects {
			id := ruleOf(name)
			value := ""
			if rest, per := strings.CutPrefix(text, ":"); per {
				value, text, _ = strings.Cut(rest, " ")
			}
			text = withAmount(text)
			amount, group, ok := strings.Cut(strings.TrimPrefix(text, "+"), " ")
			if rule := a.ids[id]; !ok || text[0] != '+' || rule == nil {
				continue
			}
			d, err := decimal.Parse(amount)
			if err != nil {
				continue // only in an entry's text, which the comparison of entries shows
			}
			whole := at(want, "sum/"+id+"/"+inner(group))
			if value == "" {
				whole.add(d, 1)
				continue
			}
			whole.add(decimal.New(0), 1)
			at(want, "sum/"+id+"/"+inner(group)+underValue+unescape.Replace(value)).add(d, 1)
		}
	}
	long := a.longGroups(want)
	for _, key := range a.under("sum/") {
		group, ok := a.accumulator(key, long)
		if !ok {
			continue
		}
		d, err := decimal.Parse(a.rows[key]["value"].Text())
		if err != nil {
			a.differs(idIn(key.Partition), key, "value", change.Number("0"), a.rows[key]["value"])
			continue
		}
		counted := a.rows[key]["members"]
		members, err := strconv.ParseInt(counted.Text(), 10, 64)
		if counted.Kind() != change.KindAbsent && (counted.Kind() != change.KindNumber || err != nil) {
			a.differs(idIn(key.Partition), key, "members", change.Number("0"), counted)
		}
		at(got, group).add(d, members)
		at(want, group)
		for value, part := range a.parts(key) {
			at(got, group+underValue+value).add(part.value, part.members)
			at(want, group+underValue+value)
		}
		if a.rows[key]["listed"].Kind() != change.KindAbsent {
			listed[group]--
		}
	}
	a.unlisted(listed)
	for group, w := range want {
		g := at(got, group)
		if !w.span.delicate() && g.sum.Cmp(&w.sum) != 0 {
			a.differs(idIn(group), change.Key{Partition: group}, "value", w.value(), g.value())
		}
		if g.members != w.members {
			a.differs(idIn(group), change.Key{Partition: group}, "members", count(w.members), count(g.members))
		}
	}
}

// withAmount writes the text of a contribution as one with an amount: 1 of a mark alone, and 0 of an item's place in an order.
func withAmount(text string) string {
	if member, ok := strings.CutPrefix(text, "<"); ok { // order and digest stand before the group
		_, member, _ = strings.Cut(member, " ")
		_, member, _ = strings.Cut(member, " ")
		return "+0 " + member
	}
	if group, one := strings.CutPrefix(text, "*"); one {
		return "+1 " + group
	}
	return text
}

// longGroups finds the groups whose accumulators have a cut key, by that key.
func (a *audit) longGroups(groups map[string]*total) map[string]string {
	long := map[string]string{}
	for group := range groups {
		for suffix := range a.suffixes(idIn(group)) {
			if name := group + "/" + strconv.Itoa(suffix); len(name) > partitionMax {
				long[cut(name, partitionMax)] = group
			}
		}
	}
	return long
}

// suffixes is the number of write suffixes that a rule ever had.
func (a *audit) suffixes(id string) int {
	n, _ := strconv.Atoi(a.rows[change.Key{Partition: "registry", Sort: "rule/" + id}]["writeShardsMax"].Text())
	return n
}

// cutForm is how a cut key ends.
var cutForm = regexp.MustCompile(`~[0-9a-f]{64}$`)

// accumulator checks one accumulator by itself and says which group it is of.
func (a *audit) accumulator(key change.Key, long map[string]string) (group string, ok bool) {
	id := idIn(key.Partition)
	row := a.rows[key]
	if rule := a.ids[id]; rule == nil || !rule.Displays() {
		a.differs("", key, "", change.Value{}, change.Map(row))
		return "", false
	}
	operations, err := strconv.ParseInt(row["ops"].Text(), 10, 64)
	if row["ops"].Kind() != change.KindNumber || err != nil || operations <= 0 {
		a.differs(id, key, "ops", change.Number("1"), row["ops"])
	}
	if group, ok := long[key.Partition]; ok {
		return group, true
	}
	if cutForm.MatchString(key.Partition) { // of a group that nothing adds to; which are its other suffixes cannot be told
		return key.Partition, a.suffixes(id) == 1
	}
	at := strings.LastIndex(key.Partition, "/")
	if suffix, err := strconv.Atoi(key.Partition[at+1:]); err == nil && suffix >= a.suffixes(id) {
		a.differs(id, key, "", change.Value{}, change.Map(row)) // never read by a roll-up
	}
	return key.Partition[:at], true
}

// sets compares claims and locators with the items that ask for a mirror item
// or have a unique value.
func (a *audit) sets() {
	claims, locators := map[change.Key][]string{}, map[change.Key][]string{}
	for item, effects := range a.effects {
		for name, text := range effects {
			id := ruleOf(name)
			switch text[0] {
			case '=':
				if rule := a.ids[id]; rule != nil && !rule.Injective {
					key := stateKey("claims/"+id+"/"+mirrorIn(text), "claims")
					claims[key] = append(claims[key], item.String())
				}
			case '@':
				key := stateKey("locator/"+id[1:]+"/"+inner(text[1:]), "locator")
				locators[key] = append(locators[key], item.String())
			}
		}
	}
	a.compareSets("claims/", "sources", claims, func(id string) bool {
		rule := a.ids[id]
		return rule != nil && makesAlone(rule) && !rule.Injective
	})
	a.compareSets("locator/", "items", locators, func(name string) bool {
		return slices.Contains(slices.Collect(maps.Values(a.locators)), name)
	})
}

// compareSets compares rows that hold a set. One that nothing asks for stays, without the set.
func (a *audit) compareSets(prefix, attribute string, sets map[change.Key][]string, known func(id string) bool) {
	want := map[change.Key]wanted{}
	for key, members := range sets {
		row := change.Item{attribute: change.Set(change.KindStringSet, members), "listed": {}}
		if len(members) > 1 {
			row["listed"] = change.Bool(true)
		}
		want[key] = wanted{idIn(key.Partition), row}
	}
	a.compare(prefix, want, func(id string, row change.Item) bool {
		return known(id) && row[attribute].Kind() == change.KindAbsent && row["listed"].Kind() == change.KindAbsent
	})
}
