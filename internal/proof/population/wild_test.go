package population

import (
	"errors"
	"strings"
	"testing"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/rules"
)

// rarest happens in so few populations that more are drawn until it does.
const rarest = "too many elements"

// TestWildItemsGoToTheEdges counts the wild populations in which each thing happens at least once.
func TestWildItemsGoToTheEdges(t *testing.T) {
	happened := map[string]int{}
	count := func(seed int) {
		r := source(seed)
		p := Draw(r, projections.Kinds).Wild(r)
		had := map[string]bool{}
		for range 2 * writes {
			it := p.Item(r)
			checkItem(t, p, it)
			noteEdges(p, it, had)
		}
		for what, yes := range had {
			if yes {
				happened[what]++
			}
		}
	}
	for seed := range populations {
		count(seed)
	}
	for seed := populations; seed < 4*populations && happened[rarest] == 0; seed++ {
		count(seed)
	}
	for what, least := range map[string]int{
		"a full partition key": 5, "a full sort key": 10, "a reference that is too long": 10, "a mirror's key that is too long": 10,
		"a prefix that is too long": 2, rarest: 1,
		"/": 40, "%": 40, "!": 2, "@": 2, "~": 5, " ": 20, "\x00": 2, "\u00e9": 5, "e\u0301": 5, "\U0001f600": 5,
		"SS": 30, "NS": 30, "BS": 30, "M": 30, "L": 30, "NULL": 100, "an empty B": 30, "1e125": 20, "-1e125": 5, "1e-125": 5, "1e40": 5,
		"where a mirror item belongs, of another entity": 20, "where a mirror item belongs": 60,
	} {
		t.Logf("%-40q in %3d of %d populations", what, happened[what], populations)
		if happened[what] < least {
			t.Errorf("%q happens in %d of %d populations, at least %d should have it", what, happened[what], populations, least)
		}
	}
}

// noteEdges notes what of interest an item has.
func noteEdges(p *Population, it change.Item, had map[string]bool) {
	key := p.Key(it)
	had["a full partition key"] = had["a full partition key"] || len(key.Partition) == keyBytesMax[0]
	had["a full sort key"] = had["a full sort key"] || len(key.Sort) == keyBytesMax[1]
	for _, mark := range []string{"/", "%", "!", "@", "~", " ", "\x00", "\u00e9", "e\u0301", "\U0001f600"} {
		had[mark] = had[mark] || strings.Contains(key.Partition+key.Sort, mark)
	}
	for _, v := range it {
		had[v.Kind().String()] = true
		had["an empty B"] = had["an empty B"] || v.Kind() == change.KindBinary && v.Text() == ""
		if v.Kind() == change.KindNumber {
			had[v.Text()] = true
		}
	}
	refused := func(what string, err error) {
		bad := (*rules.ItemError)(nil)
		had[what] = had[what] || errors.As(err, &bad) && bad.Code == "key.too_long"
	}
	m, ok := p.Set.Identify(key, it)
	for _, k := range p.makes {
		if k.entity.HasKey(key) {
			had["where a mirror item belongs"] = true
			had["where a mirror item belongs, of another entity"] = had["where a mirror item belongs, of another entity"] || m.Entity != k.entity
		}
	}
	if !ok {
		return
	}
	for _, r := range m.Entity.Sources {
		if r.MakesItems() && !r.Derives() {
			err := r.ForEach(&m, it, func(_ string, m *rules.Match) error {
				_, _, err := r.Form.(rules.Maker).Item(m, it)
				return err
			})
			refused("a mirror's key that is too long", err)
			bad := (*rules.ItemError)(nil)
			had[rarest] = had[rarest] || errors.As(err, &bad) && bad.Code == "each.too_many"
		}
	}
	for _, r := range m.Entity.Parents {
		if r.Collection && len(key.Sort) > keyBytesMax[1]-50 {
			_, _, ok := r.Join.CollectionOf(key)
			had["a prefix that is too long"] = had["a prefix that is too long"] || !ok
		}
	}
	for _, r := range m.Entity.Children {
		_, _, err := r.JoinedKey(&m, it)
		refused("a reference that is too long", err)
	}
}
