package projections

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/audits"
)

const elementRules = `
version: 1
table: { keys: [pk, sk] }
entities:
  Post:    { key: { pk: "POST#${postId}", sk: "METADATA" } }
  TagPost: { key: { pk: "TAG#${tag}", sk: "POST#${postId}" } }
  Tag:     { key: { pk: "TAG#${tag}", sk: "METADATA" } }
  Site:    { key: { pk: "SITE#${site}", sk: "METADATA" } }
rules:
  tag-index: { mirror: Post, each: tags as tag, as: TagPost, attributes: [title, tag as label], where: tag != "draft" }
  tag-count: { count: Post, each: tags as tag, as: Tag.postCount }
  parts:     { sum: part, of: Post, each: parts as part, as: Site.parts, by: site, where: part > 0 }
  mean-part: { average: part, of: Post, each: parts as part, as: Site.meanPart, by: site }
  indexed:   { count: TagPost, as: Tag.indexed }
  post-tags: { count: TagPost, as: Post.tagCount }
`

func tagged(tags ...string) change.Value { return listOf(texts(tags)...) }

func texts(all []string) (values []change.Value) {
	for _, text := range all {
		values = append(values, s(text))
	}
	return values
}

func listOf(values ...change.Value) change.Value { return change.List(values) }

// many are different tags, from the one of a number on.
func many(from, n int) (tags []string) {
	for i := range n {
		tags = append(tags, fmt.Sprintf("t%03d", from+i))
	}
	return tags
}

func tagKey(tag, post string) change.Key {
	return change.Key{Partition: "TAG#" + tag, Sort: "POST#" + post}
}

func (w *world) putTagged(post string, with change.Item) {
	it := change.Item{"pk": s("POST#" + post), "sk": s("METADATA"), "title": s("Title of " + post), "site": s("a")}
	for name, v := range with {
		it[name] = v
	}
	w.put(it)
}

func (w *world) putTags(tags ...string) {
	for _, tag := range tags {
		w.put(change.Item{"pk": s("TAG#" + tag), "sk": s("METADATA")})
	}
	w.put(change.Item{"pk": s("SITE#a"), "sk": s("METADATA")})
}

func TestEveryElementOfAListHasItsEffect(t *testing.T) {
	w := newWorld(t, elementRules)
	w.putTags("go", "db", "5", "a#b")
	number := change.Number
	n, e := 0, w.seeded()
	for _, step := range []struct {
		name   string
		item   change.Item
		parked string
		index  []string // tags under which the post stands
	}{
		{"two tags", change.Item{"tags": tagged("go", "db")}, "", []string{"go", "db"}},
		{"a tag twice, an empty one and NULL", change.Item{"tags": listOf(s("go"), s(""), s("go"), change.Null())}, "", []string{"go"}},
		{"a number, and the text that reads alike", change.Item{"tags": listOf(number("5"), s("5"), s("db"))}, "", []string{"5", "db"}},
		{"a tag for which where does not hold", change.Item{"tags": tagged("draft", "go")}, "", []string{"go"}},
		{"a set of strings", change.Item{"tags": change.Set(change.KindStringSet, []string{"go", "5"})}, "", []string{"go", "5"}},
		{"a set of numbers", change.Item{"tags": change.Set(change.KindNumberSet, []string{"5", "1.50"})}, "", []string{"5", "1.5"}},
		{"a list without elements", change.Item{"tags": listOf()}, "", nil},
		{"again two tags", change.Item{"tags": tagged("go", "db")}, "", []string{"go", "db"}},
		{"NULL", change.Item{"tags": change.Null()}, "", nil},
		{"an element of another type", change.Item{"tags": listOf(s("go"), change.Bool(true))}, "value.type", nil},
		{"again one tag", change.Item{"tags": tagged("go")}, "", []string{"go"}},
		{"no list", change.Item{"tags": s("go")}, "value.type", nil},
		{"a tag that would be another key", change.Item{"tags": tagged("go", "a#b")}, "key.smuggled", nil},
		{"as many as can be", change.Item{"tags": tagged(append(many(0, 199), "", "t000", "go")...)}, "", append(many(0, 199), "go")},
		{"as many others", change.Item{"tags": tagged(many(200, 200)...)}, "", many(200, 200)},
		{"one more than can be", change.Item{"tags": tagged(many(0, 201)...)}, "each.too_many", nil},
		{"no tags", nil, "", nil},
		{"numbers, and 0", change.Item{"parts": listOf(number("2"), number("0"), number("2.0"), number("4"))}, "", nil},
		{"a text among numbers", change.Item{"parts": listOf(number("2"), s("x"))}, "", nil},
	} {
		w.putTagged("p1", step.item)
		n = w.drain(e, n)
		w.expectRight()
		got := map[string]bool{}
		for _, it := range w.items() {
			if label := it["label"]; label.Kind() != change.KindAbsent {
				got[label.Text()] = true
			}
		}
		for _, tag := range step.index {
			if !got[tag] {
				t.Errorf("%s: the post is not under %s", step.name, tag)
			}
		}
		if len(got) != len(step.index) {
			t.Errorf("%s: the post is under %v", step.name, got)
		}
		parked, err := e.Parked(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		code := ""
		for _, p := range parked {
			if p.Rule == "tag-index" {
				code += p.Code
			}
		}
		if code != step.parked {
			t.Errorf("%s: parked as %q, want %q", step.name, code, step.parked)
		}
		if t.Failed() {
			t.FailNow()
		}
		if step.name == "numbers, and 0" {
			w.expect(change.Key{Partition: "SITE#a", Sort: "METADATA"}, "parts", number("6"))
			w.expect(change.Key{Partition: "SITE#a", Sort: "METADATA"}, "meanPart", number("2"))
		}
	}
}

// TestALargeMoveSurvivesACrashBetweenAnyTwoSteps has a worker crash before and after each transaction in turn.
func TestALargeMoveSurvivesACrashBetweenAnyTwoSteps(t *testing.T) {
	w := newWorld(t, elementRules)
	w.putTags("t000", "t100", "t199")
	n := w.drain(w.seeded(), 0)
	for at := 0; ; at++ {
		w.putTagged("p1", change.Item{"tags": tagged(many(at%2*50, 120)...)})
		f, sent := &faulty{Client: w.sim, around: passAll}, 0
		e := w.engine(f)
		f.around = func(op string, pass func() error) error {
			if sent > at/2 {
				return errCrash
			}
			if op != "TransactWriteItems" {
				return pass()
			}
			if sent++; sent > at/2 && at%2 == 0 {
				return errCrash
			}
			return pass()
		}
		_, err := e.Process(w.ctx, w.records()[n:])
		if err != nil && !errors.Is(err, errCrash) {
			t.Fatal(err)
		}
		n = w.drain(w.engine(nil), n)
		w.expectRight()
		if t.Failed() {
			t.Fatalf("after a crash at transaction %d", at/2+1)
		}
		if err == nil {
			if sent < 3 {
				t.Errorf("the move took %d transactions, want several", sent)
			}
			return
		}
	}
}

// TestAMirrorItemOfOneElementHeals has another program delete, overwrite and invent items among those of one list.
func TestAMirrorItemOfOneElementHeals(t *testing.T) {
	w := newWorld(t, elementRules)
	w.putTags("go", "db")
	w.putTagged("p1", change.Item{"tags": tagged("go", "db", "ai")})
	n, e := 0, w.seeded()
	n = w.drain(e, n)
	for name, do := range map[string]func(){
		"deleted":               func() { w.delete(tagKey("db", "p1")) },
		"overwritten":           func() { w.update(tagKey("go", "p1"), change.Item{"title": s("x"), "label": s("y")}) },
		"put whole":             func() { w.put(change.Item{"pk": s("TAG#ai"), "sk": s("POST#p1"), "title": s("mine")}) },
		"at an element not had": func() { w.put(change.Item{"pk": s("TAG#no"), "sk": s("POST#p1"), "title": s("mine")}) },
		"cloned": func() {
			it := w.get(tagKey("go", "p1"))
			it["pk"] = s("TAG#clone")
			w.put(it)
		},
	} {
		do()
		n = w.drain(e, n)
		if w.expectRight(); t.Failed() {
			t.Fatal(name)
		}
	}
	w.expect(tagKey("db", "p1"), "title", s("Title of p1"))
}

// TestEachComesAndGoesWithTheRules changes what a rule takes: a list, another one, one attribute, and the list again.
func TestEachComesAndGoesWithTheRules(t *testing.T) {
	w := newWorld(t, elementRules)
	w.putTags("go", "db", "ai")
	w.putTagged("p1", change.Item{"tags": tagged("go", "db"), "topics": tagged("ai", "go"), "tag": s("db")})
	w.putTagged("p2", change.Item{"tags": tagged("go"), "parts": listOf(change.Number("1.5"))})
	n := w.drain(w.seeded(), 0)
	single := strings.NewReplacer("each: tags as tag, as: TagPost", "as: TagPost, by: tag", "each: tags as tag, as: Tag.postCount",
		"as: Tag.postCount, by: tag").Replace(elementRules)
	for _, file := range []string{strings.ReplaceAll(elementRules, "each: tags", "each: topics"), single, elementRules} {
		e := w.changing(file, nil)
		if err := e.Seed(w.ctx, nil); err != nil {
			t.Fatal(err)
		}
		n = w.drain(e, n)
		w.replay(e)
		n = w.drain(e, n)
		w.putTagged("p2", change.Item{"tags": tagged("go", fmt.Sprint("n", n)), "tag": s("ai")})
		n = w.drain(e, n)
		w.expectTrue()
	}
	w.expect(change.Key{Partition: "TAG#go", Sort: "METADATA"}, "postCount", change.Number("2"))
}

func TestARecordIsExplainedElementByElement(t *testing.T) {
	expectEffects(t, elementRules, change.Record{
		Key: change.Key{Partition: "POST#p1", Sort: "METADATA"},
		Old: change.Item{"tags": tagged("go", "db"), "title": s("T")}, New: change.Item{"tags": tagged("db", "ai"), "title": s("T")},
	}, "tag-count: asks for 1 in TAG#ai/METADATA", "tag-count: takes back 1 in TAG#go/METADATA",
		"tag-index: asks for mirror item TAG#ai/POST#p1", "tag-index: takes back mirror item TAG#go/POST#p1")
}

// expectEffects checks how a record is explained: the rules and what the record changes under them.
func expectEffects(t *testing.T, ruleFile string, rec change.Record, want ...string) {
	t.Helper()
	var got []string
	for _, line := range audits.Explain(loadRules(t, ruleFile), rec).Lines {
		got = append(got, line.Rule+": "+line.Effect)
	}
	if !slices.Equal(got, want) {
		t.Errorf("explained as\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestExpressionOfByReadsTheElementItself has one element that is a text, and one that is a number, beside an attribute of their name.
func TestExpressionOfByReadsTheElementItself(t *testing.T) {
	w := newWorld(t, strings.Replace(elementRules,
		"each: tags as tag, as: Tag.postCount", `each: tags as one, as: Tag.postCount, by: { tag: "lower(one)" }`, 1))
	w.put(change.Item{"pk": s("TAG#a"), "sk": s("METADATA")})
	e := w.seeded()
	n := 0
	for _, step := range []struct {
		element change.Value
		want    string
	}{{s("A"), "1"}, {number("2"), "0"}, {s("a"), "1"}} {
		w.put(change.Item{"pk": s("POST#p"), "sk": s("METADATA"), "one": s("B"), "tags": listOf(step.element)})
		n = w.drain(e, n)
		if got := w.get(change.Key{Partition: "TAG#a", Sort: "METADATA"})["postCount"].Text(); got != step.want {
			t.Errorf("with %v postCount is %q, want %q", step.element, got, step.want)
		}
		w.expectRight()
	}
}
