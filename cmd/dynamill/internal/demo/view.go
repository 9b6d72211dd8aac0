package demo

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/rules"
)

const valueCharactersMax = 24

type snapshot map[change.Key]change.Item

func keys(a, b snapshot) []change.Key {
	all := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.SortFunc(all, func(x, y change.Key) int {
		return cmp.Or(cmp.Compare(x.Partition, y.Partition), cmp.Compare(x.Sort, y.Sort))
	})
	return slices.Compact(all)
}

// view knows how the items of a rule set are shown: which attributes matter to the rules, which of them are derived, and
// how wide the keys are.
type view struct {
	set             *rules.Set
	partition, sort int // widths
}

func (v *view) widen(key change.Key) {
	v.partition = max(v.partition, utf8.RuneCountInString(key.Partition))
	v.sort = max(v.sort, utf8.RuneCountInString(key.Sort))
}

// attributes returns the names of the attributes that a rule reads, and of those that a rule writes, on this item.
func (v *view) attributes(key change.Key, items ...change.Item) (base, own []string) {
	var entity *rules.Entity
	for _, item := range items {
		if m, ok := v.set.Identify(key, item); ok && entity == nil {
			entity = m.Entity
		}
	}
	if entity == nil {
		return nil, nil
	}
	for _, rule := range slices.Concat(entity.Makers, entity.Children, entity.Displays, entity.Own) {
		for _, name := range rule.Writes {
			if !slices.Contains(own, name) { // the rules that make a derived item display their values there, too
				own = append(own, name)
			}
		}
	}
	for _, rule := range slices.Concat(entity.Sources, entity.Parents, entity.Own) {
		base = append(base, rule.Reads...)
	}
	for _, rule := range entity.Children {
		base = append(base, rule.JoinReads...)
	}
	hidden := func(name string) bool {
		return name == v.set.Table.TypeAttribute || name == v.set.Table.PartitionKey || name == v.set.Table.SortKey
	}
	if entity.ExpireAttribute != "" {
		own = append(own, entity.ExpireAttribute)
	}
	slices.Sort(base)
	base = slices.DeleteFunc(slices.Compact(base), func(name string) bool { return hidden(name) || slices.Contains(own, name) })
	own = slices.DeleteFunc(own, hidden)
	return base, own
}

// timed is an item of a derived entity that expires, with the days until then in the place of its time to live.
func (v *view) timed(key change.Key, item change.Item) change.Item {
	m, ok := v.set.Identify(key, item)
	if !ok || m.Entity.ExpireAttribute == "" {
		return item
	}
	seconds, err := strconv.ParseInt(item.Lookup(m.Entity.ExpireAttribute).Text(), 10, 64)
	if err != nil {
		return item
	}
	item = maps.Clone(item)
	days := math.Round(time.Until(time.Unix(seconds, 0)).Hours() / 24)
	item[m.Entity.ExpireAttribute] = change.String(fmt.Sprintf("in %.0f days", days))
	return item
}

func (v *view) head(key change.Key) string {
	return fmt.Sprintf("%-*s  %s", v.partition, key.Partition, key.Sort)
}

// markWidth is the room for "put", "~" and the like.
const markWidth = 4

// marked is the beginning of a line that shows what becomes of an item.
func (v *view) marked(mark string, s style, key change.Key) span {
	return append(ink(fmt.Sprintf("  %-*s", markWidth, mark), s), ink(v.head(key), plain)...)
}

func (v *view) indent() int { return v.partition + 2 + v.sort + 2 }

// whole shows an item with all attributes that matter.
func (v *view) whole(p *paper, key change.Key, item change.Item) {
	item = v.timed(key, item)
	base, own := v.attributes(key, item)
	var parts []span
	for i, name := range slices.Concat(base, own) {
		s := plain
		if i >= len(base) {
			s = derived
		}
		if value := item.Lookup(name); value.Kind() != change.KindAbsent {
			parts = append(parts, ink(name+"="+short(value), s))
		}
	}
	p.columns(ink("  "+v.head(key), plain), 2+v.indent(), parts, 2)
}

func short(v change.Value) string {
	text, most := shown(v), valueCharactersMax
	if len(v.List()) > 0 && v.List()[0].Kind() == change.KindMap {
		most /= 2 // the first of several items tells most
	}
	if utf8.RuneCountInString(text) > most {
		text = string([]rune(text)[:most-1]) + "…"
	}
	return text
}

func shown(v change.Value) string {
	switch v.Kind() {
	case change.KindAbsent:
		return "none"
	case change.KindString, change.KindNumber:
		return v.Text()
	case change.KindBool:
		return strconv.FormatBool(v.Bool())
	case change.KindNull:
		return "null"
	case change.KindList:
		var elements []string
		for _, element := range v.List() {
			elements = append(elements, shown(element))
		}
		return strings.Join(elements, ",")
	case change.KindMap:
		var fields []string
		for _, name := range slices.Sorted(maps.Keys(v.Map())) {
			fields = append(fields, shown(v.Map()[name]))
		}
		return strings.Join(fields, "/")
	}
	return "(" + v.Kind().String() + ")"
}

// difference shows what was made, changed and removed between two snapshots, and returns the number of such items.
func (v *view) difference(p *paper, before, after snapshot) int {
	shown := 0
	for _, key := range keys(before, after) {
		old, hadOld := before[key]
		now, hasNow := after[key]
		mark, markStyle := "~", changed
		var parts []span
		if hasNow {
			old, now = v.timed(key, old), v.timed(key, now)
			base, own := v.attributes(key, now, old)
			for _, name := range slices.Concat(base, own) {
				parts = appendChange(parts, name, old.Lookup(name), now.Lookup(name))
			}
		}
		switch {
		case !hasNow:
			mark, markStyle = "-", gone
		case !hadOld:
			mark = "+"
		case len(parts) == 0:
			continue // nothing but stamps
		}
		p.columns(v.marked(mark, markStyle, key), 2+markWidth+v.indent(), parts, 2)
		shown++
	}
	return shown
}

func appendChange(parts []span, name string, old, now change.Value) []span {
	switch {
	case old.Equal(now):
		return parts
	case now.Kind() == change.KindAbsent:
		return append(parts, ink(name+" removed, was "+short(old), gone))
	case old.Kind() == change.KindAbsent:
		return append(parts, ink(name+"="+short(now), changed))
	}
	return append(parts, slices.Concat(ink(name+": ", plain), ink(short(old)+" → ", faint), ink(short(now), changed)))
}
