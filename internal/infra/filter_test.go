package infra

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/proof/population"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/internal/sim/pattern"
)

// fataler is a *testing.T or a *rapid.T.
type fataler interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

func load(t testing.TB, src string) *rules.Set {
	t.Helper()
	set, err := rules.Load("dynamill.yaml", []byte(src), projections.Kinds)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func example(t testing.TB, name string) *rules.Set {
	t.Helper()
	src, err := os.ReadFile("../../examples/" + name + "/dynamill.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return load(t, string(src))
}

// filter is a mapping's filters as Lambda applies them.
type filter []*pattern.Pattern

func filterOf(t fataler, set *rules.Set) filter {
	t.Helper()
	texts := Filters(set, nil)
	if len(texts) > 5 {
		t.Fatalf("%d filters: Lambda takes 5", len(texts))
	}
	f := filter{}
	for _, text := range texts {
		if len([]rune(text)) > 4096 {
			t.Fatalf("a pattern of %d characters: Lambda takes 4096", len(text))
		}
		p, err := pattern.Parse([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		f = append(f, p)
	}
	return f
}

func (f filter) passes(t fataler, event string) bool {
	t.Helper()
	for _, p := range f {
		ok, err := p.Match([]byte(event))
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			return true
		}
	}
	return len(f) == 0
}

// event writes the part of a stream record that filters see.
func event(t fataler, table rules.Table, key change.Key, numbers [2]bool) string {
	t.Helper()
	typed := func(text string, number bool) map[string]string {
		if number {
			return map[string]string{"N": text}
		}
		return map[string]string{"S": text}
	}
	keys := map[string]any{table.PartitionKey: typed(key.Partition, numbers[0])}
	if table.SortKey != "" {
		keys[table.SortKey] = typed(key.Sort, numbers[1])
	}
	text, err := json.Marshal(map[string]any{"eventName": "MODIFY", "dynamodb": map[string]any{"Keys": keys}})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestFiltersOfTheExamples(t *testing.T) {
	for name, want := range map[string][]string{
		"blog": {
			`{"dynamodb":{"Keys":{"pk":{"S":[{"prefix":"POST#"}]},"sk":{"S":[{"prefix":"COMMENT#"},"METADATA"]}}}}`,
			`{"dynamodb":{"Keys":{"pk":{"S":[{"prefix":"USER#"}]},"sk":{"S":[{"prefix":"POST#"},"PROFILE"]}}}}`,
		},
		"groups": {
			`{"dynamodb":{"Keys":{"pk":{"S":[{"prefix":"GROUP#"}]},"sk":{"S":["METADATA",{"prefix":"USER#"}]}}}}`,
			`{"dynamodb":{"Keys":{"pk":{"S":[{"prefix":"USER#"}]},"sk":{"S":[{"prefix":"GROUP#"},"PROFILE"]}}}}`,
		},
		"likes": {
			`{"dynamodb":{"Keys":{"PK":{"S":[{"prefix":"ORG#"}]},"SK":{"S":[{"prefix":"MEMBER#"},"METADATA",{"prefix":"TEAM#"}]}}}}`,
			`{"dynamodb":{"Keys":{"PK":{"S":[{"prefix":"USER#"}]},"SK":{"S":[{"prefix":"LIKE#POST#"},{"prefix":"POST#"},"PROFILE"]}}}}`,
		},
	} {
		if diff := cmp.Diff(want, Filters(example(t, name), nil)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

func TestFiltersDropRecordsOfUnrelatedKeys(t *testing.T) {
	for name, keys := range map[string][]change.Key{
		"blog": {{Partition: "ORDER#1", Sort: "METADATA"}, {Partition: "USER#ada", Sort: "SESSION#1"}, {Partition: "POST#1", Sort: "DRAFT#1"},
			{Partition: "USER#ada", Sort: "profile"}},
		"groups": {{Partition: "GROUP#1", Sort: "INVITE#1"}, {Partition: "USER#ada", Sort: "METADATA"}, {Partition: "X", Sort: "PROFILE"}},
		"likes": {{Partition: "POST#1", Sort: "COMMENT#1"}, {Partition: "USER#ada", Sort: "FOLLOWS#1"},
			{Partition: "USER#ada", Sort: "LIKE#COMMENT#1"}},
	} {
		set := example(t, name)
		f := filterOf(t, set)
		for _, key := range keys {
			if f.passes(t, event(t, set.Table, key, [2]bool{})) {
				t.Errorf("%s: a record of %v passes", name, key)
			}
		}
	}
}

// TestFiltersPassTheEntitiesOfEachKindAlone has one rule in each file. Records of entities that no rule reads or writes are dropped.
func TestFiltersPassTheEntitiesOfEachKindAlone(t *testing.T) {
	keys := map[string]change.Key{
		"Post": {Partition: "POST#1", Sort: "METADATA"}, "Comment": {Partition: "POST#1", Sort: "COMMENT#1"},
		"Folder": {Partition: "FOLDER#1", Sort: "METADATA"}, "Session": {Partition: "SESSION#1", Sort: "METADATA"},
		"Day": {Partition: "DAY#1", Sort: "METADATA"},
	}
	for rule, want := range map[string][]string{
		"count: Comment, as: Post.commentCount":                                        {"Comment", "Post"},
		"max: at, of: Comment, as: Post.latest":                                        {"Comment", "Post"},
		"last: 3, of: Comment, as: Post.recent, attributes: [text], order: at":         {"Comment", "Post"},
		"first: text as firstText, of: Comment, to: Post, order: at":                   {"Comment", "Post"},
		"min: at, of: Comment, as: Day.first, by: day":                                 {"Comment", "Day"},
		"tree: Folder, by: { folderId: parentId }, path: name as path":                 {"Folder"},
		"delete: Comment, with: Post":                                                  {"Comment", "Post"},
		"delete: Comment, with: Folder, by: { code: folderCode }":                      {"Comment", "Folder"},
		"set: { GSI1PK: COMMENTS, GSI1SK: '${at}' }, of: Comment, where: open == true": {"Comment"},
	} {
		src := `
version: 1
table: { keys: [pk, sk] }
entities:
  Post:    { key: { pk: "POST#${postId}", sk: "METADATA" } }
  Comment: { key: { pk: "POST#${postId}", sk: "COMMENT#${commentId}" } }
  Folder:  { key: { pk: "FOLDER#${folderId}", sk: "METADATA" }, unique: code }
  Session: { key: { pk: "SESSION#${id}",  sk: "METADATA" } }
`
		if strings.Contains(rule, "Day") { // which is refused without rules
			src += "  Day: { key: { pk: \"DAY#${day}\", sk: METADATA }, derived: true }\n"
		}
		set := load(t, src+"rules: { r: { "+rule+" } }\n")
		f, got := filterOf(t, set), []string{}
		for name, key := range keys {
			if f.passes(t, event(t, set.Table, key, [2]bool{})) {
				got = append(got, name)
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: entities whose records pass (-want +got)\n%s", rule, diff)
		}
	}
}

func TestKeysWithLittleOrNoFixedText(t *testing.T) {
	const count = "rules: { n: { count: B, as: A.n, by: { %s: owner } } }\n"
	for name, c := range map[string]struct {
		src  string
		want []string
	}{
		"number keys": {
			"version: 1\ntable: { keys: [id] }\nentities:\n  A: { key: { id: \"${a}\" }, match: { kind: a } }\n  B: { key: { id: \"${b}\" }, " +
				"match: { kind: b } }\n" + fmt.Sprintf(count, "a"),
			nil,
		},
		"no sort key": {
			"version: 1\ntable: { keys: [id] }\nentities:\n  A: { key: { id: \"A#${a}\" } }\n  B: { key: { id: \"B#${b}\" } }\n" +
				fmt.Sprintf(count, "a"),
			[]string{`{"dynamodb":{"Keys":{"id":{"S":[{"prefix":"A#"},{"prefix":"B#"}]}}}}`},
		},
		"a number behind a fixed partition": {
			"version: 1\ntable: { keys: [pk, number] }\nentities:\n  A: { key: { pk: A, number: \"${a}\" } }\n  B: { key: { pk: B, number: " +
				"\"${b}\" } }\n" + fmt.Sprintf(count, "a"),
			[]string{`{"dynamodb":{"Keys":{"pk":{"S":["A","B"]}}}}`},
		},
		"fixed at the end": {
			"version: 1\ntable: { keys: [id] }\nentities:\n  A: { key: { id: \"${a}#A\" } }\n  B: { key: { id: \"${b}#B\" } }\n" +
				fmt.Sprintf(count, "a"),
			[]string{`{"dynamodb":{"Keys":{"id":{"S":[{"suffix":"#A"},{"suffix":"#B"}]}}}}`},
		},
		"quotes and angles": {
			"version: 1\ntable: { keys: [id] }\nentities:\n  A: { key: { id: 'A\"<${a}' } }\n  B: { key: { id: \"B#${b}\" } }\n" +
				fmt.Sprintf(count, "a"),
			[]string{`{"dynamodb":{"Keys":{"id":{"S":[{"prefix":"A\"<"},{"prefix":"B#"}]}}}}`},
		},
	} {
		if diff := cmp.Diff(c.want, Filters(load(t, c.src), nil)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

// TestFiltersPassWhatFormerRulesWrote: a worker with the former file may write a mirror item late, and the function takes it back.
func TestFiltersPassWhatFormerRulesWrote(t *testing.T) {
	const entities = "version: 1\ntable: { keys: [pk, sk] }\nentities:\n  Group: { key: { pk: \"GROUP#${groupId}\", sk: INFO } }\n" +
		"  Membership: { key: { pk: \"USER#${userId}\", sk: \"GROUP#${groupId}\" } }\n"
	now := load(t, entities+"rules: { n: { count: Membership, as: Group.members } }\n")
	former := load(t, entities+"  Member: { key: { pk: \"GROUP#${groupId}\", sk: \"USER#${userId}\" } }\n"+
		"rules: { list: { mirror: Membership, as: Member } }\n")
	const member = `{"dynamodb":{"Keys":{"pk":{"S":[{"prefix":"GROUP#"}]},"sk":{"S":["INFO",{"prefix":"USER#"}]}}}}`
	if patterns := Filters(now, nil); slices.Contains(patterns, member) {
		t.Errorf("without the former rules: %v", patterns)
	}
	if patterns := Filters(now, former); !slices.Contains(patterns, member) {
		t.Errorf("with the former rules: %v", patterns)
	}
}

// manyEntities writes a rule file whose entities share neither partition nor sort key.
func manyEntities(n, length int) string {
	var b strings.Builder
	b.WriteString("version: 1\ntable: { keys: [pk, sk] }\nentities:\n")
	for i := range n {
		name := fmt.Sprintf("%s%03d", strings.Repeat("X", length), i)
		fmt.Fprintf(&b, "  E%d: { key: { pk: \"%s#${id}\", sk: \"S%s\" } }\n", i, name, name)
	}
	b.WriteString("rules:\n")
	for i := 1; i < n; i++ {
		fmt.Fprintf(&b, "  r%d: { count: E%d, as: E0.n%d, by: { id: owner } }\n", i, i, i)
	}
	return b.String()
}

// However many entities there are and however long their names, the filters
// stay within Lambda's bounds and drop nothing that matters.
func TestManyEntitiesShareFivePatterns(t *testing.T) {
	for _, c := range []struct{ entities, length int }{{5, 1}, {6, 1}, {60, 1}, {60, 200}, {200, 40}} {
		set := load(t, manyEntities(c.entities, c.length))
		f := filterOf(t, set)
		for i := range c.entities {
			name := fmt.Sprintf("%s%03d", strings.Repeat("X", c.length), i)
			if !f.passes(t, event(t, set.Table, change.Key{Partition: name + "#1", Sort: "S" + name}, [2]bool{})) {
				t.Errorf("%d entities: a record of entity %d is dropped", c.entities, i)
			}
		}
		if f.passes(t, event(t, set.Table, change.Key{Partition: "OTHER#1", Sort: "OTHER"}, [2]bool{})) {
			t.Errorf("%d entities of %d characters: an unrelated record passes", c.entities, c.length)
		}
	}
}

// Whatever the rules, a record that some rule is concerned with passes, by its
// old or its new image.
func TestNoRecordThatARuleReadsIsDropped(t *testing.T) {
	filtered, dropped := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		p := population.Draw(r, projections.Kinds)
		f := filterOf(t, p.Set)
		if len(f) > 0 {
			filtered++
		}
		numbers := [2]bool{p.PartitionKind == change.KindNumber, p.SortKind == change.KindNumber}
		for range 60 {
			item := p.Item(r)
			key := p.Key(item)
			passes := f.passes(t, event(t, p.Set.Table, key, numbers))
			if !passes {
				dropped++
			}
			for _, image := range []change.Item{item, p.Vary(r, item)} {
				match, known := p.Set.Identify(key, image)
				if known && readOrWritten(p.Set, match.Entity) && !passes {
					t.Fatalf("a record of %v, a %s, is dropped under\n%s", key, match.Entity.Name, p.File)
				}
			}
		}
	})
	if filtered == 0 || dropped == 0 {
		t.Errorf("%d rule sets with filters, %d records dropped: the test says nothing", filtered, dropped)
	}
}

func readOrWritten(set *rules.Set, e *rules.Entity) bool {
	return slices.ContainsFunc(set.Rules, func(r *rules.Rule) bool { return r.Source == e || r.Target == e })
}
