package computed

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/effects"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/rules"
)

// Changes are what set rules ask for: items that do not hold what they must.
type Changes struct {
	Items plan.OrderedMap[plan.ItemRule, Item]
}

// Item is one item as it was seen last.
type Item struct {
	First      int
	Position   change.Position
	Image      change.Image // nil: it is gone, or of another entity
	Wanted     Wanted       // of that image
	WasBad     bool         // an image before could not be read: what was parked is cleared
	Correction bool         // a correction of a foreign write: it counts against the bound
	Repark     bool         // park the item anew even if it is parked
}

// Wanted is what an item must hold under a rule.
type Wanted struct {
	Values []change.Value   // of the rule's Writes
	Stamp  change.Value     // absent if all values are
	Bad    *rules.ItemError // why the rule cannot read the item: all values are absent
}

// wantedOf is what an item of the rule's entity must hold. The stamp is the same as long as the
// rule is in force and the values are: so a write that would change nothing is recognised.
func wantedOf(p *plan.Planner, b *plan.Binding, key change.Key, m *rules.Match, img change.Image) Wanted {
	values, err := Of(b.Rule).Values(m, img)
	w := Wanted{Values: values}
	if err != nil {
		w.Bad = effects.AsItemError(err)
	}
	for _, v := range values {
		if v.Kind() != change.KindAbsent {
			s := stamp.Stamp{Context: stamp.Context(p.Incarnation, key, ""), Version: stamp.VersionAt(b.Epoch, change.Position{}),
				Digest: plan.Digest(b, values)}
			w.Stamp = change.String(s.String())
		}
	}
	return w
}

// wantedIn is what an item must hold as it was read; false if it is gone, or of another entity.
func wantedIn(p *plan.Planner, id plan.ItemRule, img change.Image) (Wanted, bool) {
	if img == nil {
		return Wanted{}, false
	}
	m, ok := p.Set.Identify(id.Key, img)
	if !ok || m.Entity != id.Rule.Target {
		return Wanted{}, false
	}
	return wantedOf(p, id.Binding, id.Key, &m, img), true
}

// holds reports whether an item holds these values.
func (w Wanted) holds(b *plan.Binding, img change.Image) bool {
	for i, name := range b.Rule.Writes {
		if !same(w.Values[i], img.Lookup(name)) {
			return false
		}
	}
	return true
}

// isOn reports whether an item holds these values, and the stamp.
func (w Wanted) isOn(b *plan.Binding, img change.Image) bool {
	return w.Stamp.Equal(img.Lookup(b.Stamp)) && w.holds(b, img)
}

// same reports whether two values are equal, numbers also if they are written in different ways.
func same(v, w change.Value) bool {
	if v.Kind() != change.KindNumber || w.Kind() != change.KindNumber {
		return v.Equal(w)
	}
	x, err := decimal.Parse(v.Text())
	y, err2 := decimal.Parse(w.Text())
	return v.Equal(w) || err == nil && err2 == nil && x.Cmp(y) == 0
}

// equal reports whether two images must hold the same.
func (w Wanted) equal(other Wanted) bool {
	return change.Digest(w.Values...) == change.Digest(other.Values...)
}

// Asks implements plan.Asker.
func (kind) Asks(b *plan.Binding, m *rules.Match, img change.Image, attribute string) bool {
	values, _ := Of(b.Rule).Values(m, img)
	i := slices.Index(b.Rule.Writes, attribute)
	return values[i].Kind() != change.KindAbsent && same(values[i], img.Lookup(attribute))
}

// Classify implements plan.Family: it notes an item whose new image does not hold what it must. A write of
// the engine's own needs no recognising: its image holds it.
func (kind) Classify(p *plan.Planner, pl *plan.Changes, b *plan.Binding, s *plan.Sides) bool {
	v, ok := s.As(b.Rule.Target)
	if !ok || v.Old != nil && v.New != nil && !plan.Changed(b.Rule.Reads, v.Old, v.New) && plan.Untouched(b, v.Old, v.New) {
		return false
	}
	id := plan.ItemRule{Binding: b, Key: v.Record.Key}
	var before, after Wanted
	was, is := false, v.New == nil // whether the images held what they must
	if v.Old != nil {
		before = wantedOf(p, b, id.Key, v.OldMatch, v.Old)
		was = before.isOn(b, v.Old)
	}
	if v.New != nil {
		after = wantedOf(p, b, id.Key, v.NewMatch, v.New)
		is = after.isOn(b, v.New) && after.Bad == nil
	}
	items := &plan.PartOf[Changes](pl).Items
	if is && before.Bad == nil && items.Of(id) == nil {
		return false
	}
	it := items.OrPut(id, Item{First: v.Index})
	it.Position, it.Image, it.Wanted = v.Record.Position, v.New, after
	it.WasBad = it.WasBad || before.Bad != nil
	it.Correction = it.Correction || v.Old != nil && v.New != nil && was && !after.isOn(b, v.New) && before.equal(after)
	return true
}

// Tell implements plan.Family: it tells whether an image cannot be read.
func (kind) Tell(late *plan.Late, b *plan.Binding, m *rules.Match, img change.Image) {
	if m.Entity == b.Rule.Target {
		_, err := Of(b.Rule).Values(m, img)
		late.Unread = late.Unread || err != nil
	}
}

// Rederive implements plan.Family: it notes an item that does not hold what it must, and one that may be parked.
func (kind) Rederive(p *plan.Planner, pl *plan.Changes, b *plan.Binding, it *plan.Item) {
	if !b.Rule.Target.HasKey(it.Key) {
		return
	}
	asked := &Item{Position: it.Late.Position, WasBad: it.Late.Unread, Repark: it.Scope == plan.Everything}
	due := asked.WasBad
	if it.Match.Entity == b.Rule.Target {
		asked.Image, asked.Wanted = it.Image, wantedOf(p, b, it.Key, &it.Match, it.Image)
		due = due || asked.Wanted.Bad != nil || !asked.Wanted.isOn(b, it.Image)
	}
	if due {
		plan.PartOf[Changes](pl).Items.Put(plan.ItemRule{Binding: b, Key: it.Key}, asked)
	}
}

// Explain implements plan.Family.
func (kind) Explain(pl *plan.Changes, b *plan.Binding, tell func(effect, write string)) {
	for id, it := range plan.PartOf[Changes](pl).Items.All() {
		switch {
		case id.Binding != b || it.Image == nil:
		case it.Wanted.Bad != nil:
			tell("cannot read the item: "+it.Wanted.Bad.Reason, fmt.Sprintf("park it (%s), take %s off", it.Wanted.Bad.Code,
				plan.Listed(b.Rule.Writes)))
		case it.Wanted.holds(b, it.Image): // a stamp of the table, which explaining does not know
		case it.Wanted.Stamp.Kind() == change.KindAbsent:
			tell("asks for none of its attributes", "take "+plan.Listed(b.Rule.Writes)+" off")
		default:
			var parts []string
			for i, name := range b.Rule.Writes {
				parts = append(parts, name+" = "+audit.Text(it.Wanted.Values[i]))
			}
			tell("asks for other values", "set "+strings.Join(parts, ", "))
		}
	}
}
