package projections

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/groups"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

const reactionRules = `
version: 1
table: { keys: [pk, sk] }
entities:
  Post:     { key: { pk: "USER#${userId}", sk: "POST#${postId}" }, unique: postId }
  Reaction: { key: { pk: "POST#${postId}", sk: "BY#${userId}" } }
  Album:    { key: { pk: "ALBUM#${albumId}", sk: "METADATA" } }
  Mood:     { key: { pk: "MOOD#${mood}", sk: "METADATA" }, derived: true }
rules:
  reactions: { count: Reaction, as: Post.reactions, by: postId, per: emoji }
  weights:   { sum: weight, of: Reaction, as: Post.weights, by: postId, per: emoji, where: emoji != "boo", write_shards: 3, if_none: absent }
  by-user:   { count: Reaction, as: Album.users, by: { albumId: album }, per: userId }
  by-tag:    { count: Reaction, each: tags as tag, as: Album.tags, by: { albumId: album }, per: tag }
  by-day:    { count: Reaction, as: Album.days, by: { albumId: album }, per: "at[0:2]" }
  moods:     { sum: weight, of: Reaction, as: Mood.weights, by: { mood: mood }, per: emoji, write_shards: 2 }
  mood-size: { count: Reaction, as: Mood.size, by: { mood: mood } }
`

var (
	onePost = change.Key{Partition: "USER#u", Sort: "POST#p"}
	album   = change.Key{Partition: "ALBUM#a", Sort: "METADATA"}
	calm    = change.Key{Partition: "MOOD#calm", Sort: "METADATA"}
)

// mapped is a map of numbers, from "like=5".
func mapped(entries ...string) change.Value {
	all := map[string]change.Value{}
	for _, e := range entries {
		var per string
		var n string
		for i := range e {
			if e[i] == '=' {
				per, n = e[:i], e[i+1:]
			}
		}
		all[per] = number(n)
	}
	return change.Map(all)
}

func (w *world) react(user string, with change.Item) {
	it := change.Item{"pk": s("POST#p"), "sk": s("BY#" + user), "album": s("a"), "mood": s("calm")}
	for name, v := range with {
		it[name] = v
	}
	w.put(it)
}

func (w *world) perItems() {
	w.put(change.Item{"pk": s(onePost.Partition), "sk": s(onePost.Sort)})
	w.put(change.Item{"pk": s(album.Partition), "sk": s(album.Sort)})
}

func TestATargetShowsANumberForEachValue(t *testing.T) {
	w := newWorld(t, reactionRules)
	w.perItems()
	e := w.seeded()
	w.expect(onePost, "reactions", mapped())
	w.expect(onePost, "weights", change.Value{})
	n := 0
	for _, step := range []struct {
		name string
		do   func()
		key  change.Key
		attr string
		want change.Value
	}{
		{"one value", func() { w.react("1", change.Item{"emoji": s("like"), "weight": number("2")}) }, onePost, "weights", mapped("like=2")},
		{"again", func() { w.react("2", change.Item{"emoji": s("like"), "weight": number("0.5")}) }, onePost, "weights", mapped("like=2.5")},
		{"another value", func() { w.react("3", change.Item{"emoji": s("a b%/é"), "weight": number("1")}) }, onePost, "reactions",
			mapped("like=2", "a b%/é=1")},
		{"a change of the value", func() { w.react("2", change.Item{"emoji": s("heart"), "weight": number("3")}) }, onePost, "weights",
			mapped("like=2", "heart=3", "a b%/é=1")},
		{"an empty value", func() { w.react("3", change.Item{"emoji": s("")}) }, onePost, "reactions", mapped("like=1", "heart=1")},
		{"NULL", func() { w.react("2", change.Item{"emoji": change.Null()}) }, onePost, "reactions", mapped("like=1")},
		{"a number", func() { w.react("2", change.Item{"emoji": number("5.0")}) }, onePost, "reactions", mapped("like=1", "5=1")},
		{"the text of the number", func() { w.react("3", change.Item{"emoji": s("5")}) }, onePost, "reactions", mapped("like=1", "5=2")},
		{"a condition", func() { w.react("3", change.Item{"emoji": change.Bool(true)}) }, onePost, "reactions", mapped("like=1", "5=1", "true=1")},
		{"a list", func() { w.react("3", change.Item{"emoji": change.List(nil)}) }, onePost, "reactions", mapped("like=1", "5=1")},
		{"a value of zero", func() { w.react("3", change.Item{"emoji": s("nil"), "weight": number("0")}) }, onePost, "weights",
			mapped("like=2", "nil=0")},
		{"where", func() { w.react("3", change.Item{"emoji": s("boo"), "weight": number("7")}) }, onePost, "weights", mapped("like=2")},
		{"a variable of the key", func() {}, album, "users", mapped("1=1", "2=1", "3=1")},
		{"elements", func() { w.react("3", change.Item{"emoji": s("x"), "tags": tagged("go", "db", "go")}) }, album, "tags", mapped("go=1", "db=1")},
		{"more elements", func() { w.react("2", change.Item{"tags": tagged("go", "${}", "a b")}) }, album, "tags",
			mapped("go=2", "db=1", "${}=1", "a b=1")},
		{"an expression", func() { w.react("2", change.Item{"at": s("2026-11")}) }, album, "days", mapped("20=1")},
		{"an expression of another type", func() { w.react("2", change.Item{"at": number("7")}) }, album, "days", mapped()},
		{"a text that is too long", func() { w.react("2", change.Item{"emoji": s(strings.Repeat("x", 257))}) }, onePost, "reactions",
			mapped("like=1", "x=1")},
		{"a derived item", func() { w.react("2", change.Item{"emoji": s("x"), "weight": number("-1")}) }, calm, "weights", mapped("like=2", "x=-1")},
		{"the application overwrites it", func() { w.update(onePost, change.Item{"reactions": mapped("like=9")}) }, onePost, "reactions",
			mapped("like=1", "x=2")},
		{"nothing is left", func() {
			for _, user := range []string{"1", "2", "3"} {
				w.delete(change.Key{Partition: "POST#p", Sort: "BY#" + user})
			}
		}, onePost, "reactions", mapped()},
	} {
		step.do()
		n = w.drain(e, n)
		w.expect(step.key, step.attr, step.want)
		w.expectRight()
		if t.Failed() {
			t.Fatal("after ", step.name)
		}
	}
	w.expect(onePost, "weights", change.Value{})
}

// listed are the codes of what is parked under a rule.
func listed(t *testing.T, w *world, e *Engine, rule string) (codes []string) {
	t.Helper()
	parked, err := e.Parked(w.ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range parked {
		if p.Rule == rule {
			codes = append(codes, p.Code)
		}
	}
	return codes
}

func TestTooManyValuesAreNotShown(t *testing.T) {
	w := newWorld(t, reactionRules)
	w.perItems()
	e, n := w.seeded(), 0
	for _, step := range []struct {
		tags   []string
		shown  bool
		parked []string
	}{
		{many(0, 100), true, nil},
		{many(0, 101), false, []string{"per.too_many"}},
		{many(100, 101), false, []string{"per.too_many"}},
		{many(0, 200), false, []string{"per.too_many"}},
		{many(0, 3), true, nil},
		{many(50, 150), false, []string{"per.too_many"}},
		{nil, true, nil},
	} {
		w.react("1", change.Item{"tags": tagged(step.tags...)})
		n = w.drain(e, n)
		w.expectRight()
		if shown := w.get(album)["tags"]; (shown.Kind() == change.KindMap) != step.shown || step.shown && len(shown.Map()) != len(step.tags) {
			t.Errorf("%d tags: the target shows %v", len(step.tags), shown)
		}
		if got := listed(t, w, e, "by-tag"); !slices.Equal(got, step.parked) {
			t.Errorf("%d tags: parked are %v, want %v", len(step.tags), got, step.parked)
		}
		if t.Failed() {
			t.FailNow()
		}
	}
}

// TestRetryOfTooManyValuesKeepsWhatIsParked retries while there are too many, by key and by unique value.
func TestRetryOfTooManyValuesKeepsWhatIsParked(t *testing.T) {
	w := newWorld(t, reactionRules)
	w.perItems()
	e := w.seeded()
	for i := range 101 {
		w.react(fmt.Sprint(i), change.Item{"emoji": s(fmt.Sprint("e", i)), "weight": number("1"), "tags": tagged(fmt.Sprint("t", i))})
	}
	n := w.drain(e, 0)
	parked, err := e.Parked(w.ctx)
	if err != nil || len(parked) != 5 {
		t.Fatalf("%d are parked, %v", len(parked), err)
	}
	for _, p := range parked {
		if p.Code != "per.too_many" || p.Key != onePost && p.Key != album && p.Key != calm {
			t.Errorf("parked is %s of %s", p.Code, p.Key)
		}
		if err := e.RetryParked(w.ctx, p.ID); err != nil {
			t.Error(err)
		}
	}
	w.expectRight()
	w.delete(change.Key{Partition: "POST#p", Sort: "BY#7"})
	w.drain(e, n)
	w.expectRight()
	if parked, err := e.Parked(w.ctx); err != nil || len(parked) != 0 {
		t.Errorf("%d are parked, %v", len(parked), err)
	}
}

// TestEmptyValuesAreRemoved has one source pass through many values.
func TestEmptyValuesAreRemoved(t *testing.T) {
	w := newWorld(t, reactionRules)
	w.perItems()
	e, n := w.seeded(), 0
	for i := range 40 {
		w.react("1", change.Item{"emoji": s(fmt.Sprint("e", i)), "weight": number("2")})
		w.react("2", change.Item{"emoji": s("stays"), "weight": number(fmt.Sprint(i))})
		e.suffix = i // each batch adds under another write suffix
		n = w.drain(e, n)
		w.expectRight()
		if t.Failed() {
			t.FailNow()
		}
	}
	for _, row := range w.scan("app-dynamill") {
		if strings.HasPrefix(row["pk"].Text(), "sum/") && len(row) > 2*(8+3)+8 {
			t.Errorf("%s holds %d attributes", row["pk"].Text(), len(row))
		}
	}
}

func TestPriceOfValues(t *testing.T) {
	rules, _, _ := strings.Cut(strings.Replace(reactionRules, ", derived: true", "", 1), "  weights:")
	w := newWorld(t, rules)
	w.perItems()
	e, n := w.seeded(), 0
	units := func(user, emoji string) float64 {
		w.react(user, change.Item{"emoji": s(emoji)})
		before := w.sim.Usage()
		records := w.records()[n:]
		if done, err := e.Process(w.ctx, records); err != nil || done != len(records) {
			t.Fatal(done, err)
		}
		used := w.sim.Usage().Sub(before).WriteUnits
		n = w.drain(e, n+len(records))
		return used
	}
	for _, tt := range []struct {
		values int
		want   float64
	}{{9, 2 + 2 + 1}, {39, 2 + 2 + 1}, {79, 2 + 4 + 1}, {97, 2 + 6 + 2}} {
		i, want := tt.values, tt.want
		for k := range i {
			w.react(fmt.Sprint("first", k), change.Item{"emoji": s(fmt.Sprintf("emoji%03d", k))})
		}
		n = w.drain(e, n)
		if got := units("last", fmt.Sprint("emoji", 100+i)); got != want {
			t.Errorf("a change of a value among %d costs %v units, want %v", i+1, got, want)
		}
	}
}

// TestPerComesChangesAndGoes changes what a rule tells its sources apart by, there and back, with too many values in between.
func TestPerComesChangesAndGoes(t *testing.T) {
	w := newWorld(t, reactionRules)
	w.perItems()
	w.seeded()
	for i := range 101 {
		w.react(fmt.Sprint(i), change.Item{"emoji": s(fmt.Sprint("e", i%3)), "album": s("a"), "weight": number("1")})
	}
	w.drain(w.engineWith(reactionRules), 0)
	for _, step := range []struct {
		line string
		want change.Value
	}{
		{"reactions: { count: Reaction, as: Post.reactions, by: postId }", number("101")},
		{"reactions: { count: Reaction, as: Post.reactions, by: postId, per: userId }", change.Value{}},
		{"reactions: { count: Reaction, as: Post.reactions, by: postId, per: emoji }", mapped("e0=34", "e1=34", "e2=33")},
		{"reactions: { sum: weight, of: Reaction, as: Post.reactions, by: postId, per: emoji, if_none: absent }",
			mapped("e0=34", "e1=34", "e2=33")},
		{"reactions: { count: Reaction, as: Post.reactions, by: postId, per: emoji, where: emoji == 'none' }", mapped()},
	} {
		e := w.changing(withRule(t, reactionRules, "reactions", step.line), nil)
		w.replay(e)
		w.expect(onePost, "reactions", step.want)
		w.expectTrue()
		if t.Failed() {
			t.Fatal("after ", step.line)
		}
	}
}

// TestAFullAccumulatorIsListed leaves no room in an accumulator for the mark of the list.
func TestAFullAccumulatorIsListed(t *testing.T) {
	w := newWorld(t, reactionRules)
	w.perItems()
	e := w.seeded()
	w.react("1", change.Item{"tags": tagged(many(0, 100)...)})
	n := w.drain(e, 0)
	for _, row := range w.scan("app-dynamill") {
		if _, has := row["v/t001"]; has {
			size := len("filling") + 120 // of what the last value takes
			for name, v := range row {
				size += len(name) + v.Size()
			}
			row["filling"] = s(strings.Repeat("x", 400<<10-size+100))
			w.putState(row)
		}
	}
	w.react("1", change.Item{"tags": tagged(many(0, 101)...)})
	w.drain(e, n)
	w.expect(album, "tags", change.Value{})
	if got := listed(t, w, e, "by-tag"); !slices.Equal(got, []string{"per.too_many"}) {
		t.Errorf("parked are %v", got)
	}
}

// TestExplainedMapsShowTheValuesThemselves has values that are no letters.
func TestExplainedMapsShowTheValuesThemselves(t *testing.T) {
	w := newWorld(t, reactionRules)
	w.perItems()
	e := w.seeded()
	w.react("1", change.Item{"emoji": s("❤️")})
	w.react("2", change.Item{"emoji": s("a b")})
	w.drain(e, 0)
	w.expectExplained(onePost, "accumulator | reactions", "accumulator | reactions | {a b: 1, ❤️: 1} from 2 sources, after 1 operation")
}

// TestManyLargeAccumulatorsHoldUpNoShard counts too many values of a target whose accumulators are larger together than a transaction may
// be: another attribute stands for thousands of long values.
func TestManyLargeAccumulatorsHoldUpNoShard(t *testing.T) {
	w := newWorld(t, `
version: 1
table: { keys: [pk, sk] }
entities:
  Page: { key: { pk: "PAGE#${page}", sk: INFO } }
  Hit:  { key: { pk: "PAGE#${page}", sk: "HIT#${id}" } }
rules:
  urls: { count: Hit, as: Page.urls, per: url, write_shards: 16 }
`)
	e := w.seeded()
	w.put(change.Item{"pk": s("PAGE#p"), "sk": s("INFO")})
	g := plan.GroupRef{Binding: e.planner.InForce[0], Group: "PAGE#p/INFO"}
	for _, key := range groups.Accumulators(nil, g)[1:] {
		row := key.Attributes()
		row["value"], row["members"], row["ops"] = table.Number(0), table.Number(0), table.Number(0)
		row["junk"] = table.Text(strings.Repeat("x", 390<<10))
		if _, err := w.sim.PutItem(w.ctx, &dynamodb.PutItemInput{TableName: new("app-dynamill"), Item: row}); err != nil {
			t.Fatal(err)
		}
	}
	hit := func(i int) change.Item {
		return change.Item{"pk": s("PAGE#p"), "sk": s(fmt.Sprint("HIT#", i)), "url": s(fmt.Sprint(i))}
	}
	for i := range 120 {
		w.put(hit(i))
	}
	read := w.drain(e, 0)
	if all, err := e.Parked(w.ctx); err != nil || len(all) != 1 || all[0].Code != "per.too_many" {
		t.Errorf("these are parked: %v, %v", all, err)
	}
	for i := range 110 {
		it := hit(i)
		w.delete(change.Key{Partition: it["pk"].Text(), Sort: it["sk"].Text()})
	}
	w.drain(e, read)
	if got := len(w.get(change.Key{Partition: "PAGE#p", Sort: "INFO"})["urls"].Map()); got != 10 {
		t.Errorf("in the end, %d values are shown", got)
	}
	if all, err := e.Parked(w.ctx); err != nil || len(all) > 0 {
		t.Errorf("in the end, these are parked: %v, %v", all, err)
	}
}
