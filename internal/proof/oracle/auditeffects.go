package oracle

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/rules"
)

// contentDigits are those of the digest of a mirror item's content in a ledger entry.
const contentDigits = 4

// tombstoneDays is how long an entry without effects is kept.
const tombstoneDays = 8

// parking is one (item, rule) that must be parked.
type parking struct {
	rule string // its id, or "@" and the entity
	item change.Key
	code string
}

func (p parking) id() string { return p.rule + "/" + p.item.String() }

// work works out what every item causes and what must be parked, then takes
// from the ledger what was refused, where the caller lets that pass.
func (a *audit) work() {
	for _, key := range sortedKeys(a.items.actual) {
		item := a.items.actual[key]
		m, ok := a.set.Identify(key, item)
		if !ok {
			continue
		}
		effects := map[string]string{}
		for _, rule := range a.set.Rules {
			id := a.names[rule]
			if rule.HasParent() && rule.Target == m.Entity {
				if _, nested := nester(rule); nested {
					if c := a.items.deep(rule, a.items.actual, key); c.code != "" {
						a.mustPark(parking{id, key, c.code})
					}
					p := parking{rule: id, item: key}
					full := a.items.full(rule, a.items.actual)
					a.unsure[p.id()] = full[key] || a.items.isBelow(rule, a.items.actual, key, full)
				} else if _, _, err := rule.JoinedKey(&m, item); err != nil {
					a.mustPark(parking{id, key, code(err)})
				}
			} else if rule.WritesSource() && rule.Target == m.Entity {
				if _, bad := workedOut(rule, &m, item); bad != "" {
					a.mustPark(parking{id, key, bad})
				}
			} else if rule.Folds() && rule.Source == m.Entity {
				if _, err := shares(rule, &m, item); err != nil {
					a.mustPark(parking{id, key, code(err)})
				}
			} else if !rule.HasParent() && rule.Source == m.Entity {
				a.causes(effects, key, rule, &m, item)
			}
		}
		if m.Entity.Located {
			value, ok, err := m.Entity.UniqueValue(&m, item)
			a.cause(effects, key, "@"+a.locators[m.Entity.Name], effectText(ok, err, func() string { return "@" + value }))
		}
		if len(effects) > 0 {
			a.effects[key] = effects
		}
	}
	a.occupied()
	a.takeRefused()
}

// occupied works out which mirror items are parked because the application has
// an item of another entity where they belong.
func (a *audit) occupied() {
	for _, rule := range a.set.Rules {
		if !makesAlone(rule) {
			continue
		}
		for key := range a.items.given(rule) {
			if a.items.occupied(rule, key) {
				a.mustPark(parking{a.names[rule], key, "mirror.occupied"})
			}
		}
	}
}

func (a *audit) mustPark(p parking) { a.parkings[p.id()] = p }

// cause adds an effect, if it is one, under a name.
func (a *audit) cause(effects map[string]string, item change.Key, name, effect string) {
	if effect == "" {
		return
	}
	effects[name] = effect
	if code, ok := strings.CutPrefix(effect, "!"); ok {
		a.mustPark(parking{ruleOf(name), item, code})
	}
}

// causes adds what an item causes under a rule, as a ledger entry holds it.
func (a *audit) causes(effects map[string]string, key change.Key, rule *rules.Rule, m *rules.Match, item change.Item) {
	id := a.names[rule]
	if !makesAlone(rule) {
		all, err := shares(rule, m, item)
		a.cause(effects, key, id, effectText(false, err, nil))
		for _, c := range all {
			if c.place != nil {
				a.cause(effects, key, effectName(id, c.element), c.place.effect())
				continue
			}
			if hasEffect(rule, c.Contribution) {
				a.cause(effects, key, effectName(id, c.element), contributionText(c.Contribution))
			}
		}
		return
	}
	all, err := images(rule, m, item)
	a.cause(effects, key, id, effectText(false, err, nil))
	for _, mirror := range all {
		values := make([]change.Value, len(rule.Writes))
		for i, name := range slices.Sorted(slices.Values(rule.Writes)) {
			values[i] = mirror.Attributes[name]
		}
		a.cause(effects, key, effectName(id, mirror.element), "="+ShortDigest(contentDigits, values...)+mirror.Key.String())
	}
}

func contributionText(c rules.Contribution) string {
	if c.Per != "" {
		value := strings.ReplaceAll(strings.ReplaceAll(c.Per, "%", "%25"), " ", "%20")
		return ":" + value + " " + contributionText(rules.Contribution{Group: c.Group, Amount: c.Amount})
	}
	if amount := c.Amount.String(); amount != "1" {
		return "+" + amount + " " + c.Group
	}
	return "*" + c.Group
}

func effectText(ok bool, err error, text func() string) string {
	if err != nil {
		return "!" + code(err)
	}
	if !ok {
		return ""
	}
	return text()
}

func code(err error) string {
	if bad := (*rules.ItemError)(nil); errors.As(err, &bad) {
		return bad.Code
	}
	return "item.unreadable"
}

// displayPrefix begins the id of the row of a target on which a rule's value cannot be shown.
const displayPrefix = "display:"

func parksDisplay(row change.Item) bool { return strings.HasPrefix(row["id"].Text(), displayPrefix) }

// takeRefused takes over what the ledger has in force for an (item, rule) that
// is parked because DynamoDB refused a write or cannot hold a sum. Where it
// refused to take back what the item caused before, the whole entry stays.
func (a *audit) takeRefused() {
	for _, row := range a.under("parked") {
		r := a.rows[row]
		id, item := r["rule"].Text(), change.ParseKey(r["item"].Text())
		entry, inLedger := a.rows[stateKey("i/"+item.String(), "e")]
		if !inLedger || parksDisplay(r) || !a.excepted(r) || r["code"].Text() == string(ContestedHeals) {
			continue
		}
		a.takeRefusedOf(id, item, EffectsIn(entry))
	}
}

// takeRefusedOf takes over what is in force of one rule on one item.
func (a *audit) takeRefusedOf(id string, item change.Key, inForce map[string]string) {
	effects := maps.Clone(a.effects[item])
	names := maps.Clone(inForce)
	maps.Copy(names, effects)
	for name := range names {
		if ruleOf(name) != id {
			continue
		}
		switch text, asked := inForce[name], effects[name]; {
		case text == asked: // what is refused stands beside the ledger
		case strings.HasPrefix(text, "!") && asked == "": // what is not asked for was not refused
		case strings.HasPrefix(text, "!"):
			effects[name] = text
		default:
			if delete(a.effects, item); len(inForce) > 0 {
				a.effects[item] = inForce
			}
			return
		}
	}
	if effects != nil {
		a.effects[item] = effects
	}
}

// entries compares the ledger: an entry for every item with effects, with
// exactly these; every other one is a tombstone.
func (a *audit) entries() {
	want := map[change.Key]wanted{}
	for item, effects := range a.effects {
		key := stateKey("i/"+item.String(), "e")
		inForce := EffectsIn(a.rows[key])
		texts := map[string]string{}
		for name, text := range effects {
			if texts[name] = text; a.expired(text, inForce[name]) {
				texts[name] = inForce[name]
			}
		}
		row := change.Item{"e": EffectsValue(texts), "ttl": {}, "item": {}}
		if key.Partition != "i/"+item.String() {
			row["item"] = change.String(item.String())
		}
		want[key] = wanted{"", row}
	}
	a.compare("i/", want, func(string, change.Item) bool { return true })
	for _, key := range a.under("i/") {
		entry := a.rows[key]
		a.version(key)
		if due := entry["due"]; due.Kind() != change.KindAbsent && !a.except[SeededDueMarks] {
			a.differs("", key, "due", change.Value{}, due)
		}
		if _, ok := want[key]; ok {
			continue
		}
		if effects := entry["e"]; effects.Kind() != change.KindAbsent {
			a.differs("", key, "e", change.Value{}, effects)
		}
		a.expires(key, tombstoneDays*24*time.Hour)
	}
}

// expired reports whether a ledger entry notes of a mirror that is asked for that
// DynamoDB's time to live deleted its item, and that item is away.
func (a *audit) expired(asked, inForce string) bool {
	content, ok := strings.CutPrefix(asked, "=")
	if !ok || inForce != "~"+content {
		return false
	}
	_, there := a.items.actual[change.ParseKey(mirrorIn(asked))]
	return !there
}

// mirrorIn is the mirror item for which an effect asks: its text has a mark and a digest before it.
func mirrorIn(effect string) string { return effect[1+contentDigits:] }

// expires checks that a row has a ttl that lies ahead, but not further than it may.
func (a *audit) expires(key change.Key, within time.Duration) {
	ttl := a.rows[key]["ttl"]
	seconds, err := strconv.ParseInt(ttl.Text(), 10, 64)
	latest := a.now.Add(within).Unix()
	if ttl.Kind() != change.KindNumber || err != nil || seconds <= a.now.Unix() || seconds > latest {
		a.differs("", key, "ttl", change.Number(strconv.FormatInt(latest, 10)), ttl)
	}
}

// parked compares what is parked with what must be.
func (a *audit) parked() {
	want, may := a.contestedRows(), a.crowdedRows()
	for key, c := range may {
		if c.must {
			want[key] = c.wanted
		}
	}
	for id, p := range a.parkings {
		key := stateKey("parked", id)
		if a.excepted(a.rows[key]) || a.unsure[id] && strings.HasPrefix(p.code, "tree.") {
			continue // what was refused came later, and tells of the same (item, rule)
		}
		want[key] = wanted{p.rule, change.Item{
			"id": change.String(id), "rule": change.String(p.rule), "item": change.String(p.item.String()), "code": change.String(p.code),
		}}
	}
	a.compare("parked", want, func(_ string, row change.Item) bool {
		c, listed := may[change.Key{Partition: row["pk"].Text(), Sort: row["sk"].Text()}]
		unsure := a.unsure[row["id"].Text()] && strings.HasPrefix(row["code"].Text(), "tree.")
		return a.excepted(row) || unsure || listed && c.row["code"].Equal(row["code"])
	})
}

// excepted reports whether a parked row may stay: of those that do, the caller lets it pass, or no number holds the sum.
func (a *audit) excepted(row change.Item) bool {
	code := Exception(row["code"].Text())
	if rule := a.ids[row["rule"].Text()]; rule != nil {
		if parksDisplay(row) && !rule.Displays() {
			return false
		}
		if code == ContestedHeals && rule.Displays() && !parksDisplay(row) { // another program overwrites a display, never a source
			return false
		}
	}
	stays := []Exception{RejectedWrites, ContestedHeals}
	return slices.Contains(stays, code) && a.except[code] || a.overflows(row)
}
