package audit_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/kinds"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/rules"
)

const testRules = `version: 1
table: { keys: [pk, sk] }
entities:
  User:    { key: { pk: "USER#${userId}", sk: "PROFILE" } }
  Post:    { key: { pk: "BLOG#${blogId}", sk: "POST#${nr}" }, unique: postId }
  Comment: { key: { pk: "C#${commentId}", sk: "COMMENT" } }
  Mention: { key: { pk: "M#${userId}", sk: "MENTION" } }
rules:
  comments: { count: Comment, as: Post.comments, by: postId }
  author:   { copy: name as author, from: User, to: Comment, by: userId }
  mentions: { mirror: Comment, as: Mention, attributes: [text], by: userId }
`

func newAuditor(t *testing.T) *audit.Auditor {
	t.Helper()
	return auditorOf(t, testRules)
}

func auditorOf(t *testing.T, text string) *audit.Auditor {
	t.Helper()
	set, err := rules.Load("test", []byte(text), kinds.All)
	if err != nil {
		t.Fatal(err)
	}
	if err := set.CheckKeys(change.KindString, change.KindString); err != nil {
		t.Fatal(err)
	}
	ids := map[*rules.Rule]string{}
	for _, r := range set.Rules {
		ids[r] = r.Name
	}
	p := &plan.Planner{Bindings: plan.Bind(set, ids), Incarnation: "i", Epoch: 1}
	all := func(*plan.Binding) bool { return true }
	return audit.New(p, audit.Scope{Rules: all, Shown: all, Formers: true})
}

// item makes an item of texts: "pk/sk name=value name=value".
func item(text string) change.Item {
	fields := strings.Fields(text)
	key := change.ParseKey(fields[0])
	it := change.Item{"pk": change.String(key.Partition), "sk": change.String(key.Sort)}
	for _, f := range fields[1:] {
		name, value, _ := strings.Cut(f, "=")
		it[name] = change.String(value)
		if strings.HasPrefix(value, "#") {
			it[name] = change.Number(value[1:])
		}
	}
	return it
}

func entry(key string, effects ...string) change.Item {
	var texts []string
	for i := 0; i < len(effects); i += 2 {
		key := effects[i]
		if strings.HasPrefix(key, "@") {
			key += " "
		}
		texts = append(texts, key+effects[i+1])
	}
	row := change.Item{"pk": change.String("i/" + key), "sk": change.String("e"), "a": change.String("0-"), "ttl": change.Number("1")}
	if len(texts) > 0 {
		row["e"] = change.Set(change.KindStringSet, texts)
	}
	return row
}

func set(partition, sort, name string, members ...string) change.Item {
	return change.Item{"pk": change.String(partition), "sk": change.String(sort), name: change.Set(change.KindStringSet, members)}
}

func parkedRow(rule, item, code string) change.Item {
	row := change.Item{"pk": change.String("parked"), "rule": change.String(rule), "item": change.String(item), "code": change.String(code)}
	row["sk"] = change.String(rule + "/" + item)
	row["id"] = row["sk"]
	return row
}

func contestedRow(t audit.ContestedTarget) change.Item {
	row := parkedRow(t.ID, t.Text(), t.Code())
	row["sk"], row["id"] = change.String(t.RowID()), change.String(t.RowID())
	return row
}

// right is a small world in which all is right.
func right(a *audit.Auditor) (items, rows []change.Item) {
	mention := item("M#u/MENTION text=hi")
	digest := stamp.ShortDigest(stamp.DigestDigits, change.String("hi"))
	mention["_dm_mentions"] = change.String(stamp.Stamp{
		Context: stamp.Context("i", change.Key{Partition: "M#u", Sort: "MENTION"}, ""), Version: "0-", Digest: digest,
	}.String())
	items = []change.Item{
		item("USER#u/PROFILE name=Ada"), item("BLOG#b/POST#1 postId=p comments=#2"), item("BLOG#b/POST#2 postId=p"), item("BLOG#b/POST#3"),
		item("C#1/COMMENT postId=p userId=u text=hi author=Ada"), item("C#2/COMMENT postId=p text=ho"), mention,
	}
	rows = []change.Item{
		entry("C#1/COMMENT", "comments", "*p", "mentions", "="+digest[:4]+"M#u/MENTION"), entry("C#2/COMMENT", "comments", "*p"),
		entry("BLOG#b/POST#1", "@Post", "@p"), entry("BLOG#b/POST#2", "@Post", "@p"),
		set("locator/Post/p", "locator", "items", "BLOG#b/POST#1", "BLOG#b/POST#2"),
		set("claims/mentions/M#u/MENTION", "claims", "sources", "C#1/COMMENT"),
		item("ref/author/USER#u%2FPROFILE/x"),
		{"pk": change.String("sum/comments/p/0"), "sk": change.String("a"), "value": change.Number("2"),
			"members": change.Number("2")},
	}
	rows = append(rows, contestedRow(audit.ContestedTarget{ID: "@Post", Value: "p"}))
	rows[6]["pk"], rows[6]["sk"] = change.String("ref/author/USER#u/PROFILE"), change.String("C#1/COMMENT")
	return items, rows
}

// judged sorts and combines facts, as the sorter does, and returns the suspects.
func judged(a *audit.Auditor, items, rows []change.Item) []string {
	return judgedAndPointed(a, items, rows, nil)
}

// judgedAndPointed also tells at which targets sources point.
func judgedAndPointed(a *audit.Auditor, items, rows []change.Item, pointed func(audit.PointedTarget)) []string {
	var facts []drift.Fact
	add := func(f drift.Fact) { facts = append(facts, f) }
	for _, it := range items {
		a.Facts(change.Key{Partition: it["pk"].Text(), Sort: it["sk"].Text()}, it, add)
	}
	for _, row := range rows {
		a.RowFacts(row, add)
	}
	slices.SortFunc(facts, func(x, y drift.Fact) int {
		return strings.Compare(x.About+"\x00"+x.Sub+"\x00"+string(x.Tag), y.About+"\x00"+y.Sub+"\x00"+string(y.Tag))
	})
	var got []string
	j := a.Judge(func(s drift.Suspect) {
		got = append(got, strings.TrimRight(fmt.Sprintf("%s %s%s %s", s.Kind, s.Rule, s.Item, s.Group), " "))
	}, pointed)
	for i := 0; i < len(facts); i++ {
		f := facts[i]
		for i+1 < len(facts) && facts[i+1].About == f.About && facts[i+1].Sub == f.Sub && facts[i+1].Tag == f.Tag {
			sum, ok := a.Combine(f.About, f.Tag, f.Data, facts[i+1].Data)
			if !ok {
				break
			}
			f.Data = sum
			i++
		}
		j.Add(f)
	}
	j.End()
	return got
}

func TestWhatIsSuspectInFacts(t *testing.T) {
	type world struct{ items, rows []change.Item }
	without := func(list []change.Item, i int) []change.Item { return slices.Delete(list, i, i+1) }
	for name, c := range map[string]struct {
		spoil func(w *world)
		want  []string
	}{
		"nothing":                  {func(*world) {}, nil},
		"an entry that is missing": {func(w *world) { w.rows = without(w.rows, 1) }, []string{"ledger entry C#2/COMMENT"}},
		"an entry of an item that is gone": {func(w *world) { w.rows = append(w.rows, entry("C#3/COMMENT", "comments", "*p")) },
			[]string{"ledger entry C#3/COMMENT"}},
		"an entry of an unknown rule": {func(w *world) { w.rows = append(w.rows, entry("C#3/COMMENT", "unknown", "*p")) }, nil},
		"an accumulator":              {func(w *world) { w.rows[7]["value"] = change.Number("3") }, []string{"accumulator comments p"}},
		"another suffix makes it right": {func(w *world) {
			w.rows[7]["value"], w.rows[7]["members"] = change.Number("1"), change.Number("-1")
			w.rows = append(w.rows, change.Item{"pk": change.String("sum/comments/p/1"), "value": change.Number("1"), "members": change.Number("3")})
		}, nil},
		"members of an accumulator":        {func(w *world) { w.rows[7]["members"] = change.Number("3") }, []string{"accumulator comments p"}},
		"an accumulator without members":   {func(w *world) { delete(w.rows[7], "members") }, []string{"accumulator comments p"}},
		"members that are not whole":       {func(w *world) { w.rows[7]["members"] = change.Number("2.5") }, []string{"accumulator comments p"}},
		"an accumulator's members as text": {func(w *world) { w.rows[7]["members"] = change.String("2") }, []string{"accumulator comments p"}},
		"a display": {func(w *world) { w.items[1]["comments"] = change.Number("7") },
			[]string{"displayed value commentsBLOG#b/POST#1 p"}},
		"a display that carries a higher count than its accumulators": {func(w *world) {
			target := change.Key{Partition: "BLOG#b", Sort: "POST#1"}
			w.items[1]["_dm_comments"] = change.String(stamp.Stamp{Context: stamp.Context("i", target, "p"), Version: stamp.VersionOf(1, 8),
				Digest: "d"}.String())
			w.rows[7]["ops"] = change.Number("7")
		}, []string{"displayed value commentsBLOG#b/POST#1 p"}},
		"a display that carries the count of its accumulators and its locator": {func(w *world) {
			target := change.Key{Partition: "BLOG#b", Sort: "POST#1"}
			w.items[1]["_dm_comments"] = change.String(stamp.Stamp{Context: stamp.Context("i", target, "p"), Version: stamp.VersionOf(1, 8),
				Digest: "d"}.String())
			w.rows[7]["ops"], w.rows[4]["changes"] = change.Number("6"), change.Number("2")
		}, nil},
		"a display that is 2.0": {func(w *world) { w.items[1]["comments"] = change.Number("2.0") }, nil},
		"a display of no number": {func(w *world) { w.items[1]["comments"] = change.String("2") },
			[]string{"displayed value commentsBLOG#b/POST#1 p"}},
		"a display on the one that lost": {func(w *world) { w.items[2]["comments"] = change.Number("2") },
			[]string{"displayed value commentsBLOG#b/POST#2 p"}},
		"a 0 on one without a group": {func(w *world) { w.items[3]["comments"] = change.Number("0") },
			[]string{"displayed value commentsBLOG#b/POST#3"}},
		"a copy":                          {func(w *world) { w.items[4]["author"] = change.String("Bob") }, []string{"copy authorC#1/COMMENT"}},
		"a copy that is missing":          {func(w *world) { delete(w.items[4], "author") }, []string{"copy authorC#1/COMMENT"}},
		"a copy of a parent that is gone": {func(w *world) { w.items = without(w.items, 0) }, []string{"copy authorC#1/COMMENT"}},
		"a copy without a parent":         {func(w *world) { w.items[5]["author"] = change.String("Ada") }, []string{"copy authorC#2/COMMENT"}},
		"a reference that is missing": {func(w *world) { w.rows = without(w.rows, 6) },
			[]string{"reference authorC#1/COMMENT USER#u/PROFILE"}},
		"a reference too many": {func(w *world) {
			w.rows = append(w.rows, change.Item{"pk": w.rows[6]["pk"], "sk": change.String("C#9/COMMENT")})
		}, []string{"reference authorC#9/COMMENT USER#u/PROFILE"}},
		"a mirror item that is missing":    {func(w *world) { w.items = without(w.items, 6) }, []string{"mirror item M#u/MENTION"}},
		"a mirror item with other content": {func(w *world) { w.items[6]["text"] = change.String("ha") }, []string{"mirror item M#u/MENTION"}},
		"a mirror item without its stamp":  {func(w *world) { delete(w.items[6], "_dm_mentions") }, []string{"mirror item M#u/MENTION"}},
		"a mirror item nobody asks for": {func(w *world) {
			delete(w.items[4], "userId")
			delete(w.items[4], "author")
			w.rows = without(w.rows, 6)
			w.rows[0] = entry("C#1/COMMENT", "comments", "*p")
			w.rows = slices.DeleteFunc(w.rows, func(r change.Item) bool { return strings.HasPrefix(r["pk"].Text(), "claims/") })
		}, []string{"mirror item M#u/MENTION"}},
		"an item of the mirror's shape that the application made": {func(w *world) { w.items = append(w.items, item("M#v/MENTION text=mine")) },
			nil},
		"claims": {func(w *world) {
			w.rows[5]["sources"] = change.Set(change.KindStringSet, []string{"C#1/COMMENT", "C#2/COMMENT"})
		}, []string{"claims mentionsM#u/MENTION"}},
		"a parent's position that is none": {func(w *world) {
			w.rows = append(w.rows, change.Item{"pk": change.String("parent/author/USER#u/PROFILE"), "a": change.Number("5")})
		}, []string{"parent's position authorUSER#u/PROFILE"}},
		"an entry without a version": {func(w *world) { delete(w.rows[0], "a") }, []string{"ledger entry C#1/COMMENT"}},
		"an entry that was rederived often": {func(w *world) { w.rows[0]["rederived"] = change.String("often") },
			[]string{"ledger entry C#1/COMMENT"}},
		"an effect that cannot be read": {func(w *world) { w.rows[1] = entry("C#2/COMMENT", "comments", "*p", "gone", "?") },
			[]string{"ledger entry C#2/COMMENT"}},
		"an accumulator of the right text": {func(w *world) { w.rows[7]["value"] = change.String("2") }, []string{"accumulator comments p"}},
		"an accumulator that counts with text": {func(w *world) { w.rows[7]["ops"] = change.String("0") },
			[]string{"accumulator comments p"}},
		"claims that count with text": {func(w *world) { w.rows[5]["changes"] = change.String("1") }, []string{"claims mentionsM#u/MENTION"}},
		"a child that cannot name its parent": {func(w *world) { w.items[5]["userId"] = change.String("u#x") },
			[]string{"ledger entry C#2/COMMENT", "parked record authorC#2/COMMENT", "parked record mentionsC#2/COMMENT"}},
		"a child that cannot name its parent, and is parked": {func(w *world) {
			w.items[5]["userId"] = change.String("u#x")
			w.rows[1] = entry("C#2/COMMENT", "comments", "*p", "mentions", "!key.smuggled")
			w.rows = append(w.rows, parkedRow("author", "C#2/COMMENT", "key.smuggled"), parkedRow("mentions", "C#2/COMMENT", "key.smuggled"))
		}, nil},
		"a parked record that no item asks for": {func(w *world) { w.rows = append(w.rows, parkedRow("author", "C#2/COMMENT", "key.smuggled")) },
			[]string{"parked record authorC#2/COMMENT"}},
		"a parked record of a locator": {func(w *world) { w.rows = append(w.rows, parkedRow("@Post", "C#2/COMMENT", "key.smuggled")) },
			[]string{"parked record @PostC#2/COMMENT"}},
		"a parked record under a cut key": {func(w *world) {
			row := parkedRow("author", "C#2/COMMENT", "key.smuggled")
			row["sk"] = change.String("author/C#~" + strings.Repeat("0", 64))
			w.rows = append(w.rows, row)
		}, []string{"parked record authorC#2/COMMENT"}},
		"parked records that wait for a retry or a discard": {func(w *world) {
			for _, code := range []string{"write.rejected", "heal.contested", "record.json"} {
				w.rows = append(w.rows, parkedRow("author", "C#2/COMMENT", code))
			}
			w.rows = append(w.rows, parkedRow("comments", "C#2/COMMENT", "number.overflow"))
		}, nil},
		"an expression that once had too large a result": {func(w *world) {
			w.rows = append(w.rows, parkedRow("author", "C#2/COMMENT", "number.overflow"))
		}, []string{"parked record authorC#2/COMMENT"}},
		"a contested value that is not listed": {func(w *world) { w.rows = w.rows[:8] }, []string{"locator @Post p"}},
		"a listed value of one item": {func(w *world) {
			w.items[2] = item("BLOG#b/POST#2")
			w.rows[3] = entry("BLOG#b/POST#2")
			w.rows[4]["items"] = change.Set(change.KindStringSet, []string{"BLOG#b/POST#1"})
		}, []string{"locator @Post p"}},
		"a listed mirror item of one source": {func(w *world) {
			w.rows = append(w.rows, contestedRow(audit.ContestedTarget{ID: "mentions", Target: change.Key{Partition: "M#u", Sort: "MENTION"}}))
		}, []string{"claims mentionsM#u/MENTION"}},
		"a listed target of an unknown rule": {func(w *world) {
			w.rows = append(w.rows, contestedRow(audit.ContestedTarget{ID: "gone", Target: change.Key{Partition: "M#u", Sort: "MENTION"}}))
		}, nil},
		"a locator": {func(w *world) { w.rows[4]["items"] = change.Set(change.KindStringSet, []string{"BLOG#b/POST#2"}) },
			[]string{"locator @Post p"}},
	} {
		a := newAuditor(t)
		w := &world{}
		w.items, w.rows = right(a)
		c.spoil(w)
		if diff := cmp.Diff(c.want, judged(a, w.items, w.rows)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestSumsBeyondEveryNumberAreNotJudged(t *testing.T) {
	a := newAuditor(t)
	about := audit.About(audit.AboutSum, "comments", "p")
	beyond, ok := a.Combine(about, audit.TagWant, "1e125", "1/1")
	if !ok || beyond != "beyond/1/0" {
		t.Errorf("1e125 + 1 is %s", beyond)
	}
	if got, ok := a.Combine(about, audit.TagWant, beyond, "1"); !ok || got != beyond {
		t.Errorf("what is beyond came back: %s", got)
	}
	if _, ok := a.Combine(audit.About(audit.AboutEntry, "", "C#1/COMMENT"), audit.TagHave, "1", "1"); ok {
		t.Error("facts that are no amounts were added up")
	}
}

// TestRowTellsItsFactsOnce has two kinds of one family in the rule file.
func TestRowTellsItsFactsOnce(t *testing.T) {
	text := testRules + "  votes: { sum: votes, of: Comment, as: Post.votes, by: postId }\n"
	a := auditorOf(t, text)
	for name, c := range map[string]struct {
		row  change.Item
		want int
	}{
		"an accumulator": {change.Item{"pk": change.String("sum/comments/p/0"), "sk": change.String("a"), "value": change.Number("2")},
			1},
		// One for each rule.
		"a locator": {change.Item{"pk": change.String("locator/Post/p"), "sk": change.String("locator"), "changes": change.Number("2")}, 2},
	} {
		told := 0
		a.RowFacts(c.row, func(drift.Fact) { told++ })
		if told != c.want {
			t.Errorf("%s tells %d facts, want %d", name, told, c.want)
		}
	}
}

// TestTargetsOfSourcesAreTold takes the posts and the user away at which comments point.
func TestTargetsOfSourcesAreTold(t *testing.T) {
	a := newAuditor(t)
	items, rows := right(a)
	items = append(items, item("C#3/COMMENT postId=q userId=v"), item("C#4/COMMENT postId=q userId=v"), item("USER#w/PROFILE name=Cid"))
	told := func() map[string]audit.PointedTarget {
		found := map[string]audit.PointedTarget{}
		judgedAndPointed(a, items, rows, func(p audit.PointedTarget) { found[p.Rule+" "+p.Target] = p })
		return found
	}
	want := map[string]audit.PointedTarget{
		"comments p":            {"comments", "p", 2, true},
		"comments q":            {"comments", "q", 2, false},
		"author USER#u/PROFILE": {"author", "USER#u/PROFILE", 1, true},
		"author USER#v/PROFILE": {"author", "USER#v/PROFILE", 2, false},
	}
	if diff := cmp.Diff(want, told()); diff != "" {
		t.Errorf("want (-) and got (+):\n%s", diff)
	}
	items = items[3:] // without USER#u and the posts of p
	want["comments p"] = audit.PointedTarget{"comments", "p", 2, false}
	want["author USER#u/PROFILE"] = audit.PointedTarget{"author", "USER#u/PROFILE", 1, false}
	if diff := cmp.Diff(want, told()); diff != "" {
		t.Errorf("without targets, want (-) and got (+):\n%s", diff)
	}
}
