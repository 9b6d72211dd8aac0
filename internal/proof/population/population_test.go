package population

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections"
)

func TestTheSameSeedDrawsTheSame(t *testing.T) {
	for seed := range 100 {
		one, other := source(seed), source(seed)
		p, q := Draw(one, projections.Kinds), Draw(other, projections.Kinds)
		if p.Name != q.Name || p.File != q.File {
			t.Fatalf("seed %d draws two rule files:\n%s\n%s", seed, p.File, q.File)
		}
		for n := range 50 {
			a, b := p.Item(one), q.Item(other)
			if diff := cmp.Diff(a, b, cmp.Comparer(change.Value.Equal)); diff != "" {
				t.Fatalf("seed %d, item %d:\n%s", seed, n, diff)
			}
			if diff := cmp.Diff(p.Vary(one, a), q.Vary(other, b), cmp.Comparer(change.Value.Equal)); diff != "" {
				t.Fatalf("seed %d, variation %d:\n%s", seed, n, diff)
			}
		}
	}
}

func TestMostPopulationsAreDrawnAndAllWrittenOnesOccur(t *testing.T) {
	const draws = 500
	count := map[string]int{}
	for seed := range draws {
		count[Draw(source(seed), projections.Kinds).Name]++
	}
	if count["drawn"] <= draws/2 || count["drawn"] == draws {
		t.Errorf("%d of %d populations have a drawn rule set", count["drawn"], draws)
	}
	for _, p := range Written(projections.Kinds) {
		if count[p.Name] == 0 {
			t.Errorf("%s is never drawn", p.Name)
		}
	}
	for _, name := range []string{"blog", "groups", "likes", "metrics", "social", "shop", "odd", "numbers", "deep"} {
		if count[name] == 0 {
			t.Errorf("%s is not among the written ones", name)
		}
	}
}

func TestAnyRuleFileHasAPopulation(t *testing.T) {
	p, err := New("any", `
version: 1
table: { keys: [p, s] }
entities:
  A: { key: { p: "${a}#${b}", s: "S#${c...}" }, unique: u, match: { kind: a, on: true, level: 2 } }
  B: { key: { p: "B#${b}",    s: "${c}" } }
rules:
  n: { count: A, as: B.n, by: { b: u, c: other }, where: true }
  m:
    count: B
    as: A.m
    by: [a, b, c]
    where: |
      !closed && (item["user name"] != "x" || "vip" in tags)
      && 5 < size
  t: { sum: 'size * 2', of: B, as: A.t, by: u }
`, projections.Kinds)
	if err != nil {
		t.Fatal(err)
	}
	if p.PartitionKind != change.KindString || p.SortKind != change.KindString {
		t.Errorf("the keys are %s and %s", p.PartitionKind, p.SortKind)
	}
	want := map[string][]change.Value{ // values that must be among an attribute's
		"closed":    {change.Bool(true), change.Bool(false)},
		"user name": {change.String("x"), {}, change.Null()},
		"tags":      {change.List([]change.Value{change.String("vip")})},
		"size":      {change.Number("5"), change.String("high")},
		"u":         {change.String(""), change.Number("5"), change.String("5"), change.String("o1"), change.String("o1#x")},
		"other":     {change.String("c1"), change.String("c2")},
		"kind":      {change.String("a"), {}},
	}
	want["u"][3], want["u"][4] = change.String("b1"), change.String("b1#x") // u is joined with b
	r := source(1)
	for range 5000 {
		it := p.Item(r)
		for name, values := range want {
			for i, value := range values {
				if it[name].Equal(value) {
					want[name] = append(values[:i:i], values[i+1:]...)
					break
				}
			}
		}
	}
	for name, values := range want {
		for _, value := range values {
			t.Errorf("%s is never %s %q", name, value.Kind(), value.Text())
		}
	}
}

func TestKeysAreAsRecordsHaveThem(t *testing.T) {
	tests := map[string]struct {
		file            string
		partition, sort change.Kind
		item            change.Item
		want            change.Key
	}{
		"a number as the sort key": {
			"{ keys: [pk, n] }\nentities: { A: { key: { pk: \"A#${a}\", n: \"${b}\" } } }", change.KindString, change.KindNumber,
			change.Item{"pk": change.String("A#01"), "n": change.Number("1.50")}, change.Key{Partition: "A#01", Sort: "1.5"},
		},
		"a number as the partition key": {
			"{ keys: [id, sk] }\nentities: { A: { key: { id: \"${a}\", sk: A } } }", change.KindNumber, change.KindString,
			change.Item{"id": change.Number("007"), "sk": change.String("A")}, change.Key{Partition: "7", Sort: "A"},
		},
		"no sort key": {
			"{ keys: [id] }\nentities: { A: { key: { id: \"A#${a}\" } } }", change.KindString, change.KindAbsent,
			change.Item{"id": change.String("A#1")}, change.Key{Partition: "A#1"},
		},
	}
	for name, test := range tests {
		p, err := New(name, "version: 1\ntable: "+test.file+"\nrules: { n: { count: A, as: A.total } }\n", projections.Kinds)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if p.PartitionKind != test.partition || p.SortKind != test.sort {
			t.Errorf("%s: the keys are %s and %s", name, p.PartitionKind, p.SortKind)
		}
		if got := p.Key(test.item); got != test.want {
			t.Errorf("%s: the key is %s, want %s", name, got, test.want)
		}
	}
}

func TestARuleFileThatIsRefusedHasNoPopulation(t *testing.T) {
	if _, err := New("bad", "version: 1", projections.Kinds); err == nil {
		t.Error("a rule file without rules has a population")
	}
}

func BenchmarkDraw(b *testing.B) {
	r := source(1)
	Written(projections.Kinds)
	for b.Loop() {
		Draw(r, projections.Kinds)
	}
}

func BenchmarkItem(b *testing.B) {
	r := source(1)
	var all []*Population
	for range 50 {
		all = append(all, Draw(r, projections.Kinds))
	}
	for n := 0; b.Loop(); n++ {
		all[n%len(all)].Item(r)
	}
}
