package stamp_test

import (
	"cmp"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
)

// drawLabel draws a stream label. All labels of one table have the same form.
func drawLabel(t *rapid.T, name string, times bool) string {
	if !times {
		return rapid.StringMatching(`[a-zA-Z0-9:.\-]{1,5}`).Draw(t, name+" label")
	}
	ms := rapid.OneOf(rapid.Int64Range(1_700_000_000_000, 1_700_000_000_100), rapid.Int64Range(200_000_000_000, 4_300_000_000_000))
	return time.UnixMilli(ms.Draw(t, name+" label")).UTC().Format("2006-01-02T15:04:05.000")
}

func drawPosition(t *rapid.T, name string, times bool) change.Position {
	if rapid.IntRange(0, 9).Draw(t, name+" is none") == 0 {
		return change.Position{}
	}
	sequence := rapid.OneOf(rapid.StringMatching(`[0-9]{1,40}`), rapid.StringMatching(`4421584500000000017450439[0-9]{1,3}`),
		rapid.StringMatching(`0{0,3}[0-9]{1,3}`), rapid.StringMatching(`9{8,19}|10{8,19}`)).Draw(t, name+" sequence")
	p, err := change.NewPosition(drawLabel(t, name, times), sequence)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// place is what a version orders by.
type place struct {
	epoch int
	at    change.Position
	count int64
	n     int64
}

func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(p.epoch, q.epoch), p.at.Compare(q.at), cmp.Compare(p.count, q.count), cmp.Compare(p.n, q.n))
}

func (p place) version(counted bool) stamp.Version {
	v := stamp.VersionAt(p.epoch, p.at)
	if counted {
		v = stamp.VersionOf(p.epoch, p.count)
	}
	if p.n > 0 {
		v = v.Rederived(p.n)
	}
	return v
}

// drawPlace draws a place near those at which the length of a number changes, as well as far from them.
func drawPlace(t *rapid.T, name string, counted, times bool) place {
	p := place{epoch: rapid.OneOf(rapid.IntRange(1, 70), rapid.IntRange(4090, 4100), rapid.IntRange(1, stamp.EpochMax)).Draw(t, name+" epoch")}
	number := rapid.OneOf(rapid.Int64Range(0, 70), rapid.Int64Range(4090, 4100), rapid.Int64Range(0, 999_999_999_999))
	if counted {
		p.count = rapid.OneOf(number, rapid.Int64Min(0)).Draw(t, name+" count")
		return p
	}
	p.at, p.n = drawPosition(t, name, times), number.Draw(t, name+" rederived")
	return p
}

func TestVersionsSortByEpochThenPositionThenTimesRederived(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		counted, times := rapid.Bool().Draw(t, "counted"), rapid.Bool().Draw(t, "labels are times")
		a, b := drawPlace(t, "a", counted, times), drawPlace(t, "b", counted, times)
		if rapid.Bool().Draw(t, "same epoch") {
			b.epoch = a.epoch
		}
		if rapid.Bool().Draw(t, "same position") {
			b.at = a.at
		}
		va, vb := a.version(counted), b.version(counted)
		if got := cmp.Compare(va, vb); got != a.compare(b) {
			t.Fatalf("%q compares with %q as %d, want %d", va, vb, got, a.compare(b))
		}
		// DynamoDB compares stamps, in which the digest follows the version.
		sa, sb := stamp.Stamp{"contexts", va, "zzzzzzzz"}.String(), stamp.Stamp{"contexts", vb, "--------"}.String()
		if a.compare(b) < 0 && sa >= sb {
			t.Fatalf("stamp %q does not sort before %q", sa, sb)
		}
		if epoch := stamp.VersionAt(a.epoch, change.Position{}); va < epoch || va >= stamp.BehindEpoch(a.epoch) ||
			stamp.BehindEpoch(a.epoch) >= stamp.VersionAt(a.epoch+1, change.Position{}) {
			t.Fatalf("%q is not within its epoch, %q to %q", va, epoch, stamp.BehindEpoch(a.epoch))
		}
	})
}

func TestVersionsAndStampsReadBackAsTheyWereWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		counted := rapid.Bool().Draw(t, "counted")
		p := drawPlace(t, "p", counted, rapid.Bool().Draw(t, "labels are times"))
		v := p.version(counted)
		if read, ok := stamp.ParseVersion(string(v)); !ok || read != v {
			t.Fatalf("%q is read as %q: %v", v, read, ok)
		}
		if got, want := v.Parts(), (stamp.Parts{Epoch: p.epoch, Position: p.at, Count: p.count, Counted: counted, Times: p.n}); got != want {
			t.Fatalf("%q has the parts %v, want %v", v, got, want)
		}
		digest := rapid.StringMatching(`[\-0-9A-Z_a-z]{0,12}`).Draw(t, "digest")
		want := stamp.Stamp{Context: "contexts", Version: v, Digest: digest}
		if got, ok := stamp.Read(change.String(want.String()), "contexts"); !ok || got != want {
			t.Fatalf("%q is read as %v: %v", want, got, ok)
		}
	})
}

func TestNoStampHoldsAVersionThatCannotBeRead(t *testing.T) {
	const digits = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(drawPlace(t, "p", false, true).version(false).Rederived(0) + "digests0")
		for range rapid.IntRange(1, 3).Draw(t, "changes") {
			text[rapid.IntRange(0, len(text)-1).Draw(t, "at")] = digits[rapid.IntRange(0, len(digits)-1).Draw(t, "digit")]
		}
		s, ok := stamp.Parse(change.String("contexts" + string(text)))
		if _, readable := stamp.ParseVersion(string(s.Version)); ok && !readable {
			t.Fatalf("%q has the version %q", text, s.Version)
		}
	})
}

func TestAStampCountsOnlyInItsContext(t *testing.T) {
	key, other := change.Key{Partition: "G#1", Sort: "M"}, change.Key{Partition: "G#2", Sort: "M"}
	context := stamp.Context("i1", key, "group")
	text := stamp.Stamp{Context: context, Version: stamp.VersionOf(1, 7), Digest: "d"}.String()
	for name, c := range map[string]struct {
		value   change.Value
		context string
		want    bool
	}{
		"its own":                  {s(text), context, true},
		"on another item":          {s(text), stamp.Context("i1", other, "group"), false},
		"of another state table":   {s(text), stamp.Context("i2", key, "group"), false},
		"of another group":         {s(text), stamp.Context("i1", key, "other"), false},
		"of another type":          {change.Number("5"), context, false},
		"that somebody scribbled":  {s(context), context, false},
		"that is not there at all": {change.Value{}, context, false},
	} {
		if _, got := stamp.Read(c.value, c.context); got != c.want {
			t.Errorf("a stamp %s counts: %v, want %v", name, got, c.want)
		}
	}
}

func s(text string) change.Value { return change.String(text) }
