package change

import (
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestPositionsCompareAsIntegersWithinAStream(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) (Position, string, *big.Int) {
			label := rapid.SampledFrom([]string{"2026-01-01T00:00:00.000", "2026-01-01T00:00:00", "2027-01-01T00:00:00.000"}).Draw(t, name+" label")
			digits := rapid.StringMatching(`[0-9]{1,40}`).Draw(t, name)
			p, err := NewPosition(label, digits)
			if err != nil {
				t.Fatal(err)
			}
			n, _ := new(big.Int).SetString(digits, 10)
			return p, label, n
		}
		p, pl, pn := draw("p")
		q, ql, qn := draw("q")
		want := pn.Cmp(qn)
		if pl != ql {
			want = map[bool]int{true: -1, false: 1}[pl < ql]
		}
		if got := p.Compare(q); got != want {
			t.Fatalf("%s compared with %s is %d, want %d", p, q, got, want)
		}
		if (p.String() < q.String()) != (want < 0) {
			t.Fatalf("the texts %q and %q sort otherwise than the positions", p, q)
		}
		if back, err := ParsePosition(p.String()); err != nil || back != p {
			t.Fatalf("%q reads back as %q (%v)", p, back, err)
		}
		if p.SequenceNumber() != pn.String() {
			t.Fatalf("sequence number %s, want %s", p.SequenceNumber(), pn)
		}
		if (Position{}).Compare(p) >= 0 {
			t.Fatalf("no position is not before %s", p)
		}
	})
}

func TestWhatIsNoPositionIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ label, sequence string }{
		"no digits":       {"label", ""},
		"a letter":        {"label", "12a"},
		"a sign":          {"label", "-1"},
		"too many digits": {"label", "12345678901234567890123456789012345678901"},
		"no label":        {"", "1"},
		"# in the label":  {"a#b", "1"},
	} {
		if p, err := NewPosition(c.label, c.sequence); err == nil {
			t.Errorf("%s: read as %q", name, p)
		}
	}
	if _, err := ParsePosition("nonsense"); err == nil {
		t.Error("nonsense is parsed")
	}
}

func TestAKeyReadsBackFromItsText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.StringMatching(`[a%/2F5#é ]{1,8}`)
		k := Key{Partition: part.Draw(t, "partition")}
		if rapid.Bool().Draw(t, "has a sort key") {
			k.Sort = part.Draw(t, "sort")
		}
		if back := ParseKey(k.String()); back != k {
			t.Fatalf("%#v reads back as %#v from %q", k, back, k)
		}
	})
}

// drawValue draws a value of any kind, nested up to depth.
func drawValue(t *rapid.T, depth int) Value {
	text := rapid.StringMatching(`[ab0-9]{0,3}`)
	kinds := 8
	if depth > 0 {
		kinds = 10
	}
	switch rapid.IntRange(0, kinds).Draw(t, "kind") {
	case 0:
		return Value{}
	case 1:
		return String(text.Draw(t, "S"))
	case 2:
		return Number(rapid.StringMatching(`[1-9][0-9]{0,2}`).Draw(t, "N"))
	case 3:
		return Binary([]byte(text.Draw(t, "B")))
	case 4:
		return Bool(rapid.Bool().Draw(t, "BOOL"))
	case 5:
		return Null()
	case 6, 7, 8:
		kind := rapid.SampledFrom([]Kind{KindStringSet, KindNumberSet, KindBinarySet}).Draw(t, "set")
		return Set(kind, rapid.SliceOfNDistinct(rapid.StringMatching(`[1-9]`), 1, 3, rapid.ID).Draw(t, "members"))
	case 9:
		var vs []Value
		for range rapid.IntRange(0, 2).Draw(t, "L") {
			vs = append(vs, drawValue(t, depth-1))
		}
		return List(vs)
	}
	m := map[string]Value{}
	for range rapid.IntRange(0, 2).Draw(t, "M") {
		m[text.Draw(t, "name")] = drawValue(t, depth-1)
	}
	return Map(m)
}

func TestEqualValuesAndNoOthersHaveEqualDigests(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v, w := drawValue(t, 2), drawValue(t, 2)
		if v.Equal(w) != w.Equal(v) {
			t.Fatalf("Equal depends on the side: %v, %v", v, w)
		}
		if v.Equal(w) != (Digest(v) == Digest(w)) {
			t.Fatalf("equal %v, digests %s and %s: %v, %v", v.Equal(w), Digest(v), Digest(w), v, w)
		}
		if Digest(v, w) == Digest(List([]Value{v, w})) {
			t.Fatal("two values digest like a list of them")
		}
	})
}

func TestAFieldThatIsAbsentIsNoOtherField(t *testing.T) {
	v, w := Map(map[string]Value{"": {}}), Map(map[string]Value{"0": String("")})
	if v.Equal(w) || w.Equal(v) {
		t.Error("two maps with different fields are equal")
	}
}

func TestTheOrderOfASetHasNoMeaning(t *testing.T) {
	v, w := Set(KindStringSet, []string{"a", "b", "c"}), Set(KindStringSet, []string{"c", "a", "b"})
	if !v.Equal(w) || Digest(v) != Digest(w) {
		t.Error("the same members in another order are another set")
	}
	if v.Equal(Set(KindStringSet, []string{"a", "b", "d"})) || v.Equal(Set(KindNumberSet, []string{"a", "b", "c"})) {
		t.Error("other members or another kind are the same set")
	}
}

func TestAnItemIsAnImageOfItsAttributes(t *testing.T) {
	it := Item{"a": String("x"), "b": Number("1")}
	var names []string
	for name, v := range it.All() {
		names = append(names, name)
		if !v.Equal(it.Lookup(name)) {
			t.Errorf("%s is %v in one place and %v in the other", name, v, it.Lookup(name))
		}
	}
	slices.Sort(names)
	if !slices.Equal(names, []string{"a", "b"}) || it.Lookup("c").Kind() != KindAbsent {
		t.Errorf("attributes %v, and c is %v", names, it.Lookup("c"))
	}
}
