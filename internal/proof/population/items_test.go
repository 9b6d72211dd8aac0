package population

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/rules"
)

const populations, writes = 300, 50

func TestItemsAreOfAllEntitiesAndOfNone(t *testing.T) {
	var entities, unseen, made, nobodys, meddled int
	for seed := range populations {
		r := source(seed)
		p := Draw(r, projections.Kinds)
		seen := map[*rules.Entity]bool{}
		for range writes {
			it := p.Item(r)
			m, ok := p.Set.Identify(p.Key(it), it)
			switch {
			case !ok:
				nobodys++
			case len(m.Entity.Makers) > 0:
				made++
			default:
				seen[m.Entity] = true
				if hasDerived(m.Entity, it) {
					meddled++
				}
			}
			checkItem(t, p, it)
		}
		for _, e := range p.Set.Entities {
			if len(e.Makers) == 0 {
				entities++
				if !seen[e] {
					unseen++
				}
			}
		}
	}
	const total = populations * writes
	t.Logf("%d of %d entities without items; of %d items %d are nobody's, %d of entities that rules make, %d hold what rules write", unseen,
		entities, total, nobodys, made, meddled)
	if unseen*200 > entities {
		t.Errorf("%d of %d entities have no item among %d", unseen, entities, writes)
	}
	if nobodys*100 < total || nobodys*10 > total {
		t.Errorf("%d of %d items are nobody's", nobodys, total)
	}
	if meddled*200 < total || meddled*20 > total {
		t.Errorf("%d of %d items hold what rules write", meddled, total)
	}
	if made*100 < total || made*10 > total {
		t.Errorf("%d of %d items are of an entity whose items a rule makes", made, total)
	}
}

func hasDerived(e *rules.Entity, it change.Item) bool {
	for _, r := range slices.Concat(e.Displays, e.Children) {
		for _, name := range r.Writes {
			if it[name].Kind() != change.KindAbsent {
				return true
			}
		}
	}
	return false
}

// checkItem checks what DynamoDB asks of an item, and what the engine's own is.
func checkItem(t *testing.T, p *Population, it change.Item) {
	t.Helper()
	for i, name := range p.keyNames() {
		if v := it[name]; v.Kind() != p.keyKind(i) || v.Text() == "" {
			t.Errorf("%s: the key %s is a %s, %q", p.Name, name, v.Kind(), v.Text())
		}
	}
	for name, v := range it {
		if strings.HasPrefix(name, "_dm") || v.Kind() == change.KindAbsent {
			t.Errorf("%s: an item has %s of type %s", p.Name, name, v.Kind())
		}
	}
}

func TestVariationsKeepTheKeyAndChangeOneOrTwoAttributes(t *testing.T) {
	var same, total, turned int
	for seed := range populations {
		r := source(seed)
		p := Draw(r, projections.Kinds)
		for range writes {
			it := p.Item(r)
			was := maps.Clone(it)
			varied := p.Vary(r, it)
			if !maps.EqualFunc(it, was, change.Value.Equal) {
				t.Fatalf("seed %d: Vary changes what it is given", seed)
			}
			if p.Key(varied) != p.Key(it) {
				t.Fatalf("seed %d: the key changes from %s to %s", seed, p.Key(it), p.Key(varied))
			}
			checkItem(t, p, varied)
			changed := differences(it, varied)
			if len(changed) > 2 {
				t.Errorf("seed %d: %v change", seed, changed)
			}
			total++
			if len(changed) == 0 {
				same++
			}
			before, was1 := p.Set.Identify(p.Key(it), it)
			after, is1 := p.Set.Identify(p.Key(it), varied)
			if was1 && is1 && before.Entity != after.Entity {
				turned++
			}
		}
	}
	t.Logf("of %d variations %d change nothing, %d make an item of another entity", total, same, turned)
	if same*50 > total {
		t.Errorf("%d of %d variations change nothing", same, total)
	}
	if turned < total/200 {
		t.Errorf("%d of %d variations make an item of another entity", turned, total)
	}
}

func differences(a, b change.Item) []string {
	var names []string
	for name, v := range a {
		if !v.Equal(b[name]) {
			names = append(names, name)
		}
	}
	for name := range b {
		if a[name].Kind() == change.KindAbsent {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func TestItemsMeetAndGoWrong(t *testing.T) {
	const enough = populations / 20 // populations in which a thing happens at least once
	happened := map[string]int{}
	for seed := range populations {
		r := source(seed)
		p := Draw(r, projections.Kinds)
		var items []change.Item
		for range 2 * writes {
			items = append(items, p.Item(r))
		}
		for what, yes := range mishaps(p, items) {
			if yes {
				happened[what]++
			}
		}
	}
	for _, what := range []string{
		"one key written again", "contested mirror item", "contested unique value", "no join value",
		"key.smuggled", "value.type", "number.overflow", "number.division",
		"several elements", "an element twice, or an empty one", "a set of elements",
		"fractional amount", "where tells apart", "number as a reference", "one aggregate of several",
	} {
		t.Logf("%-24s in %3d of %d populations", what, happened[what], populations)
		if happened[what] < enough {
			t.Errorf("%s happens in %d of %d populations, at least %d should have it", what, happened[what], populations, enough)
		}
	}
}

// noteElements says what is in the list of which a rule takes every element.
func noteElements(r *rules.Rule, m *rules.Match, it change.Item, had map[string]bool) {
	if !r.Each.Given() {
		return
	}
	taken := 0
	_ = r.ForEach(m, it, func(string, *rules.Match) error {
		taken++
		return nil
	})
	all := it[r.Each.List].List()
	had["several elements"] = had["several elements"] || taken > 1
	had["an element twice, or an empty one"] = had["an element twice, or an empty one"] || taken > 0 && taken < len(all)
	had["a set of elements"] = had["a set of elements"] || it[r.Each.List].Kind() == change.KindStringSet
}

// mishaps says what of interest happens among the items, were they all there at once.
func mishaps(p *Population, items []change.Item) map[string]bool {
	had := map[string]bool{}
	keys := map[change.Key]bool{}
	mirrored := map[*rules.Rule]map[change.Key]change.Key{}   // target → one source
	located := map[*rules.Entity]map[string]change.Key{}      // unique value → one item
	added := map[*rules.Rule]map[string]map[change.Key]bool{} // aggregate → sources
	refused := func(err error) {
		if bad := (*rules.ItemError)(nil); errors.As(err, &bad) {
			had[bad.Code] = true
		}
	}
	for _, it := range items {
		key := p.Key(it)
		had["one key written again"] = had["one key written again"] || keys[key]
		keys[key] = true
		m, ok := p.Set.Identify(key, it)
		if !ok {
			continue
		}
		if value, ok, err := m.Entity.UniqueValue(&m, it); m.Entity.Located && ok && err == nil {
			other := remember(located, m.Entity, value, key)
			had["contested unique value"] = had["contested unique value"] || other != key
		}
		for _, r := range m.Entity.Sources {
			if r.MakesItems() && !r.Derives() {
				refused(r.ForEach(&m, it, func(_ string, m *rules.Match) error {
					mirror, ok, err := r.Form.(rules.Maker).Item(m, it)
					if ok && err == nil && remember(mirrored, r, mirror.Key, key) != key {
						had["contested mirror item"] = true
					}
					return err
				}))
				continue
			}
			adder, adds := r.Form.(rules.Adder)
			if !adds {
				continue
			}
			refused(r.ForEach(&m, it, func(_ string, m *rules.Match) error {
				c, ok, err := adder.Contribution(m, it)
				switch {
				case !ok:
					had["where tells apart"] = true
				case err == nil:
					had["fractional amount"] = had["fractional amount"] || strings.Contains(c.Amount.String(), ".")
					if added[r] == nil {
						added[r] = map[string]map[change.Key]bool{}
					}
					if added[r][c.Group] == nil {
						added[r][c.Group] = map[change.Key]bool{}
					}
					added[r][c.Group][key] = true
					had["one aggregate of several"] = had["one aggregate of several"] || len(added[r][c.Group]) > 1
				}
				return err
			}))
			noteElements(r, &m, it, had)
		}
		for _, r := range m.Entity.Children {
			_, ok, err := r.JoinedKey(&m, it)
			refused(err)
			had["no join value"] = had["no join value"] || !ok && err == nil
			for _, name := range r.JoinReads {
				had["number as a reference"] = had["number as a reference"] || it[name].Kind() == change.KindNumber
			}
		}
	}
	return had
}

// remember keeps the first item that is known by something, and returns it.
func remember[R, K comparable](known map[R]map[K]change.Key, by R, value K, item change.Key) change.Key {
	if known[by] == nil {
		known[by] = map[K]change.Key{}
	}
	if first, ok := known[by][value]; ok {
		return first
	}
	known[by][value] = item
	return item
}
