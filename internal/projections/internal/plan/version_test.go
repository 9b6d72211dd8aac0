package plan_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
)

func drawPosition(t *rapid.T, name string) change.Position {
	if rapid.Bool().Draw(t, name+" is none") {
		return change.Position{}
	}
	label := rapid.SampledFrom([]string{"2026-01-01T00:00:00.000", "2026-02-01T00:00:00.000"}).Draw(t, name+" label")
	p, err := change.NewPosition(label, fmt.Sprint(rapid.Uint64().Draw(t, name+" sequence")))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestVersionsSortByEpochThenPositionThenTimesRederived(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type place struct {
			epoch int
			at    change.Position
			n     int64
		}
		draw := func(name string) (place, plan.Version) {
			p := place{rapid.IntRange(1, 12).Draw(t, name+" epoch"), drawPosition(t, name), rapid.Int64Range(0, 12).Draw(t, name+" rederived")}
			v := plan.VersionAt(p.epoch, p.at)
			if p.n > 0 {
				v = v.Rederived(p.n)
			}
			return p, v
		}
		a, va := draw("a")
		b, vb := draw("b")
		want := a.epoch < b.epoch || a.epoch == b.epoch && (a.at.Compare(b.at) < 0 || a.at.Compare(b.at) == 0 && a.n < b.n)
		if got := va < vb; got != want {
			t.Fatalf("%q < %q is %v, want %v", va, vb, got, want)
		}
		// DynamoDB compares stamps, in which the version is followed by a space and the digest.
		sa, sb := plan.Stamp{"c", va, "ffff"}.String(), plan.Stamp{"c", vb, "0000"}.String()
		if want && sa >= sb {
			t.Fatalf("stamp %q does not sort before %q", sa, sb)
		}
	})
}

func TestAStampCountsOnlyInItsContext(t *testing.T) {
	key, other := change.Key{Partition: "G#1", Sort: "M"}, change.Key{Partition: "G#2", Sort: "M"}
	context := plan.StampContext("i1", key, "group")
	text := plan.Stamp{context, plan.VersionOf(1, 7), "d"}.String()
	for name, c := range map[string]struct {
		value   change.Value
		context string
		want    bool
	}{
		"its own":                  {s(text), context, true},
		"on another item":          {s(text), plan.StampContext("i1", other, "group"), false},
		"of another state table":   {s(text), plan.StampContext("i2", key, "group"), false},
		"of another group":         {s(text), plan.StampContext("i1", key, "other"), false},
		"of another type":          {change.Number("5"), context, false},
		"that somebody scribbled":  {s(context), context, false},
		"that is not there at all": {change.Value{}, context, false},
	} {
		if _, got := plan.ReadStamp(c.value, c.context); got != c.want {
			t.Errorf("a stamp %s counts: %v, want %v", name, got, c.want)
		}
	}
}

func TestForeignWritesAreTold(t *testing.T) {
	b := socialPlanner(t).ByID("member-count")
	key := change.Key{Partition: "GROUP#g1", Sort: "METADATA"}
	context := plan.StampContext("i", key, "g")
	image := func(count string, ops int64, of string) change.Image {
		value := change.Number(count)
		return change.Item{"memberCount": value, b.Stamp: s(plan.Stamp{context, plan.VersionOf(1, ops),
			change.Digest(change.Number(of))}.String())}
	}
	plain := change.Item{"name": s("x")}
	for name, c := range map[string]struct {
		old, new change.Image
		want     bool
	}{
		"our first write":                    {plain, image("1", 1, "1"), false},
		"our next write":                     {image("1", 1, "1"), image("2", 2, "2"), false},
		"another value under our stamp":      {image("1", 1, "1"), image("9", 1, "1"), true},
		"an older state put back":            {image("2", 2, "2"), image("1", 1, "1"), true},
		"the stamp taken off":                {image("1", 1, "1"), change.Item{"memberCount": change.Number("1")}, true},
		"an insertion, with stamps and all":  {nil, image("1", 1, "1"), true},
		"a put that wipes value and stamp":   {image("1", 1, "1"), plain, true},
		"the same version with another sum":  {image("1", 1, "1"), image("2", 1, "2"), true},
		"our write over a stamp of another":  {change.Item{b.Stamp: s("other 1 d")}, image("2", 2, "2"), false},
		"a higher stamp over another value ": {image("1", 1, "1"), image("3", 5, "4"), true},
	} {
		if got := plan.Foreign(b, context, c.old, c.new); got != c.want {
			t.Errorf("%s: foreign is %v, want %v", name, got, c.want)
		}
	}
}
