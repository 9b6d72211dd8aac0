package verify_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/proof/oracle"
)

// What the seeded corruptions do not draw: values of another type, keys of
// another item, stamps that are none.

const forumRules = `version: 1
table: { keys: [pk, sk] }
entities:
  User:       { key: { pk: "USER#${userId}",     sk: "PROFILE" } }
  Group:      { key: { pk: "GROUP#${groupId}",   sk: "METADATA" } }
  Membership: { key: { pk: "USER#${userId}",     sk: "GROUP#${groupId}" } }
  Member:     { key: { pk: "GROUP#${groupId}",   sk: "USER#${userId}" } }
  Post:       { key: { pk: "AUTHOR#${authorId}", sk: "POST#${postId}" }, unique: postId }
  Comment:    { key: { pk: "COMMENT#${commentId}", sk: "METADATA" } }
  Voter:      { key: { pk: "VOTER#${userId}",    sk: "METADATA" } }
rules:
  member-list:    { mirror: Membership, as: Member, attributes: [role] }
  member-name:    { copy: name as userName, from: User, to: Member }
  member-count:   { count: Membership, as: Group.memberCount, write_shards: 4 }
  comment-author: { copy: name as userName, from: User, to: Comment, by: userId }
  comment-count:  { count: Comment, as: Post.commentCount, by: postId }
  points:         { sum: points, of: Comment, as: User.points, by: userId }
  voters:         { mirror: Comment, as: Voter, attributes: [color], by: userId }
`

// forum is a table with something of every kind, as an engine leaves it.
func forum(t *testing.T) *world {
	t.Helper()
	w := worldOf(t, "forum", forumRules)
	for _, it := range []change.Item{
		texts("pk", "USER#1", "sk", "PROFILE", "name", "Ada"), texts("pk", "USER#2", "sk", "PROFILE", "name", "Bob"),
		texts("pk", "GROUP#1", "sk", "METADATA"), texts("pk", "AUTHOR#1", "sk", "POST#1"),
		texts("pk", "USER#1", "sk", "GROUP#1", "role", "m"), texts("pk", "USER#2", "sk", "GROUP#1", "role", "m"),
		comment("1", "1", "red"), comment("2", "1", "blue"), comment("3", "2", "red"),
	} {
		w.put("app", it)
	}
	w.follow()
	return w
}

func comment(id, user, color string) change.Item {
	it := texts("pk", "COMMENT#"+id, "sk", "METADATA", "userId", user, "postId", "1", "color", color)
	it["points"] = change.Number("3")
	return it
}

// item returns an item of the application's table, or a row of the state table.
func (w *world) item(table, pk, sk string) change.Item {
	w.t.Helper()
	for _, it := range w.scan(table) {
		if strings.HasPrefix(it["pk"].Text(), pk) && (sk == "" || it["sk"].Text() == sk) {
			return maps.Clone(it)
		}
	}
	w.t.Fatalf("%s has no item %s %s", table, pk, sk)
	return nil
}

// spoilt is something done by hand to one item.
type spoilt struct {
	table, pk, sk string
	do            func(w *world, it change.Item)
}

func set(name string, v change.Value) func(*world, change.Item) {
	return func(_ *world, it change.Item) { it[name] = v }
}

func without(name string) func(*world, change.Item) {
	return func(_ *world, it change.Item) { delete(it, name) }
}

func effect(id, text string) func(*world, change.Item) {
	return func(_ *world, it change.Item) {
		effects := oracle.EffectsIn(it)
		effects[id] = text
		it["e"] = oracle.EffectsValue(effects)
	}
}

// stampName is the attribute that holds a rule's stamp.
func stampName(rule string) string { return "_dm_" + oracle.RuleID(rule) }

// stampOver is a stamp of another context over one value.
func stampOver(v change.Value) change.Value {
	return change.String("contexts000-" + oracle.ShortDigest(8, v))
}

// withVersion is a stamp with another version, behind which the number of times rederived stands.
func withVersion(stamp change.Value, version string) change.Value {
	s, _ := oracle.ReadStamp(stamp.Text())
	return change.String(s.Context + version + s.Digest)
}

// stampOf has a displayed value be wrong beside a stamp of its own context.
func stampOf(rule, version string) func(*world, change.Item) {
	return func(_ *world, it change.Item) {
		it[stampName(rule)] = withVersion(it[stampName(rule)], version)
		for _, name := range []string{"memberCount", "commentCount"} {
			if _, ok := it[name]; ok {
				it[name] = change.Number("77")
			}
		}
	}
}

func under(pk, sk string) func(*world, change.Item) {
	return func(_ *world, it change.Item) { it["pk"], it["sk"] = change.String(pk), change.String(sk) }
}

const (
	app   = "app"
	state = "app-dynamill"

	member = "i/USER#1/GROUP#1"
	unique = "locator/"
)

var (
	sumRow  = "sum/" + oracle.RuleID("member-count") + "/"
	claimed = "claims/" + oracle.RuleID("voters") + "/VOTER#1"
	refers  = "ref/" + oracle.RuleID("comment-author") + "/USER#1"
)

func TestOddDamageIsFoundAndMended(t *testing.T) {
	str, number := change.String, change.Number
	for name, s := range map[string]spoilt{
		"an effect that cannot be read": {state, member, "", effect(oracle.RuleID("member-count"), "garbage")},
		"an empty effect":               {state, member, "", effect(oracle.RuleID("member-count"), "")},
		"effects that are numbers":      {state, member, "", set("e", change.Set(change.KindNumberSet, []string{"1"}))},
		"two effects under one rule": {state, member, "", func(_ *world, it change.Item) {
			texts := []string{oracle.RuleID("member-count") + "+2 GROUP#1/METADATA"}
			for _, v := range it["e"].List() {
				texts = append(texts, v.Text())
			}
			it["e"] = change.Set(change.KindStringSet, texts)
		}},
		"effects that are a text":     {state, member, "", set("e", str("none"))},
		"no effects":                  {state, member, "", without("e")},
		"an effect on another group":  {state, member, "", effect(oracle.RuleID("member-count"), "*GROUP#9/METADATA")},
		"an effect of another amount": {state, member, "", effect(oracle.RuleID("member-count"), "+5 GROUP#1/METADATA")},
		"an effect with another target": {state, member, "",
			effect(oracle.RuleID("member-list"), "=0000GROUP#9/USER#1")},
		"an effect of another rule":            {state, member, "", effect(oracle.RuleID("points"), "+5 USER#1/PROFILE")},
		"a contribution of a mirror rule":      {state, member, "", effect(oracle.RuleID("member-list"), "*GROUP#1/METADATA")},
		"a mirror item of a count":             {state, member, "", effect(oracle.RuleID("member-count"), "=0000GROUP#1/METADATA")},
		"a mirror item that cannot be":         {state, member, "", effect(oracle.RuleID("member-list"), "=0000NOWHERE")},
		"a contribution to nothing":            {state, member, "", effect(oracle.RuleID("member-count"), "*NOWHERE")},
		"an effect of a copy rule":             {state, member, "", effect(oracle.RuleID("comment-author"), "*x")},
		"a unique value of a rule":             {state, member, "", effect(oracle.RuleID("member-count"), "@x")},
		"a contribution of a locator":          {state, "i/AUTHOR#1", "", effect("@Post", "*x")},
		"an entry of the last epoch":           {state, member, "", set("a", str("qNPV-"))},
		"an entry at no position":              {state, member, "", set("a", str("0zzz"))},
		"an entry, rederived 0 times":          {state, member, "", set("rederived", number("0"))},
		"an entry, rederived half a time":      {state, member, "", set("rederived", number("0.5"))},
		"a locator with 0 changes":             {state, unique, "", set("changes", number("0"))},
		"claims with 0 changes":                {state, claimed, "", set("changes", number("0"))},
		"claims with very many changes":        {state, claimed, "", set("changes", number("1e30"))},
		"an accumulator with -3 operations":    {state, sumRow, "", set("ops", number("-3"))},
		"an accumulator, very many operations": {state, sumRow, "", set("ops", number("1e30"))},
		"a parent at no position": {state, "parent/" + oracle.RuleID("comment-author") + "/USER#1", "",
			set("a", str("0zzz"))},
		"a displayed value, its stamp of a later epoch": {app, "GROUP#1", "METADATA", stampOf("member-count", "800-")},
		"a displayed value, its stamp beyond counting":  {app, "GROUP#1", "METADATA", stampOf("member-count", "00y6zzzzzzzzzz-")},
		"a displayed value, its stamp beyond repair":    {app, "AUTHOR#1", "POST#1", stampOf("comment-count", "00w65jp8YF---")},
		"a displayed value, its stamp an odd one":       {app, "GROUP#1", "METADATA", stampOf("member-count", "2zzz")},
		"an entry without at":                           {state, member, "", without("a")},
		"an entry whose at is a number":                 {state, member, "", set("a", number("7"))},
		"an entry whose at is garbage":                  {state, member, "", set("a", str("x"))},
		"an entry, rederived no number":                 {state, member, "", set("rederived", str("3"))},
		"a locator, changes no number":                  {state, unique, "", set("changes", str("3"))},
		"claims, changes no number":                     {state, claimed, "", set("changes", str("3"))},
		"an entry under another key":                    {state, member, "", under("i/USER#8/GROUP#1", "e")},
		"an accumulator's value as a text":              {state, sumRow, "", set("value", str("7"))},
		"an accumulator's right value as text": {state, sumRow, "",
			func(_ *world, it change.Item) { it["value"] = str(it["value"].Text()) }},
		"an accumulator's value no number":    {state, sumRow, "", set("value", str("many"))},
		"an accumulator without value":        {state, sumRow, "", without("value")},
		"an accumulator's members as text":    {state, sumRow, "", set("members", str("1"))},
		"an accumulator's members no whole":   {state, sumRow, "", set("members", number("1.5"))},
		"an accumulator, very many members":   {state, sumRow, "", set("members", number("1e30"))},
		"an accumulator with other members":   {state, sumRow, "", set("members", number("-3"))},
		"an accumulator without members":      {state, sumRow, "", without("members")},
		"an accumulator without operations":   {state, sumRow, "", without("ops")},
		"an accumulator's operations as text": {state, sumRow, "", set("ops", str("1"))},
		"an accumulator of nobody":            {state, sumRow, "", under("sum/"+oracle.RuleID("member-count")+"/GROUP#9%2FMETADATA/0", "a")},
		"a locator that is a text":            {state, unique, "", set("items", str("x"))},
		"a locator without changes":           {state, unique, "", without("changes")},
		"a locator of another item":           {state, unique, "", set("items", change.Set(change.KindStringSet, []string{"AUTHOR#9/POST#1"}))},
		"a locator of another value":          {state, unique, "", under("locator/Post/9", "locator")},
		"claims that are a text":              {state, claimed, "", set("sources", str("x"))},
		"claims of another item": {state, claimed, "",
			set("sources", change.Set(change.KindStringSet, []string{"COMMENT#0/METADATA"}))},
		"claims on another item":               {state, claimed, "", under("claims/"+oracle.RuleID("voters")+"/VOTER#9/METADATA", "claims")},
		"a parent's position that is a number": {state, "parent/" + oracle.RuleID("comment-author") + "/USER#1", "", set("a", number("5"))},
		"a parent's position that is garbage":  {state, "parent/" + oracle.RuleID("comment-author") + "/USER#1", "", set("a", str("x"))},
		"a reference to another parent": {state, refers, "",
			under("ref/"+oracle.RuleID("comment-author")+"/USER#2/PROFILE", "COMMENT#1/METADATA")},
		"a reference to no parent": {state, refers, "", under("ref/"+oracle.RuleID("comment-author")+"/USER#9/PROFILE", "COMMENT#1/METADATA")},
		"a reference of nobody without at": {state, refers, "",
			func(w *world, it change.Item) { under(it["pk"].Text(), "COMMENT#9/METADATA")(w, it); delete(it, "a") }},
		"a reference of nobody, far ahead": {state, refers, "", func(w *world, it change.Item) {
			under(it["pk"].Text(), "COMMENT#9/METADATA")(w, it)
			it["a"] = str("8-")
		}},
		"a displayed value as a text":      {app, "GROUP#1", "METADATA", set("memberCount", str("2"))},
		"a displayed value that is null":   {app, "GROUP#1", "METADATA", set("memberCount", change.Null())},
		"a displayed value that is a list": {app, "GROUP#1", "METADATA", set("memberCount", change.List(nil))},
		"a displayed value, its stamp a number": {app, "GROUP#1", "METADATA", func(_ *world, it change.Item) {
			it["memberCount"], it[stampName("member-count")] = number("9"), number("9")
		}},
		"a displayed value with a stamp that is garbage": {app, "GROUP#1", "METADATA", func(_ *world, it change.Item) {
			it["memberCount"], it[stampName("member-count")] = number("9"), str("x y z")
		}},
		"a displayed value by a unique value": {app, "AUTHOR#1", "POST#1", set("commentCount", str("3"))},
		"a copy that is a number":             {app, "COMMENT#1", "METADATA", set("userName", number("1"))},
		"a copy that is null":                 {app, "COMMENT#1", "METADATA", set("userName", change.Null())},
		"a copy, its stamp a number": {app, "COMMENT#1", "METADATA", func(_ *world, it change.Item) {
			it["userName"], it[stampName("comment-author")] = str("Eve"), number("9")
		}},
		"a copy, its stamp far ahead": {app, "COMMENT#1", "METADATA", func(_ *world, it change.Item) {
			it["userName"], it[stampName("comment-author")] = str("Eve"), withVersion(it[stampName("comment-author")], "0zzz")
		}},
		"a mirror item, its stamp a number": {app, "GROUP#1", "USER#1", set(stampName("member-list"), number("1"))},
		"a mirror item without a stamp":     {app, "GROUP#1", "USER#1", without(stampName("member-list"))},
		"a mirror item with null":           {app, "GROUP#1", "USER#1", set("role", change.Null())},
		"a contested mirror item":           {app, "VOTER#1", "METADATA", set("color", str("blue"))},
		"a contested mirror item, ahead": {app, "VOTER#1", "METADATA", func(_ *world, it change.Item) {
			it["color"], it[stampName("voters")] = str("green"), withVersion(it[stampName("voters")], "00p0Y-")
		}},
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			w := forum(t)
			w.expectRight("before")
			w.damage(s)
			w.lose()
			found, _ := w.verify(false)
			if len(found) == 0 {
				t.Error("nothing was found")
			}
			for _, f := range found {
				t.Log(text(f))
			}
			again, _ := w.verify(true)
			w.expectMended(again)
			w.follow()
			w.expectRight("after the repair")
			w.goOn()
			w.expectRight("after it has gone on")
		}))
	}
}

func TestItemsShowTheTargetWhereTheLocatorIsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		more spoilt
		want []string // what is found, beside the locator
	}{
		"its display removed, too": {spoilt{app, "AUTHOR#1", "POST#1", without("commentCount")}, []string{"item AUTHOR#1/POST#1"}},
		"its accumulator deleted, too": {spoilt{state, "sum/" + oracle.RuleID("comment-count") + "/", "", under("gone", "gone")},
			[]string{"sum comment-count 1"}},
		"the display also on the other": {spoilt{app, "AUTHOR#2", "POST#1", set("commentCount", change.Number("3"))},
			[]string{"item AUTHOR#2/POST#1"}},
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			w := forum(t)
			w.put("app", texts("pk", "AUTHOR#2", "sk", "POST#1"))
			w.follow()
			w.damage(spoilt{state, unique, "", set("items", change.Set(change.KindStringSet, []string{"AUTHOR#2/POST#1"}))})
			w.damage(c.more)
			w.lose()
			spoiled := map[string]string{"locator unique Post 1": "its first item removed"}
			for _, where := range c.want {
				spoiled[where] = name
			}
			found, _ := w.verify(false)
			w.compare(found, spoiled)
			again, _ := w.verify(true)
			w.expectMended(again)
			w.follow()
			w.expectRight("after the repair")
		}))
	}
}

// damage does something to one item; one that has another key then is moved.
func (w *world) damage(s spoilt) {
	w.t.Helper()
	it := w.item(s.table, s.pk, s.sk)
	was := maps.Clone(it)
	s.do(w, it)
	if it["pk"].Text() != was["pk"].Text() || it["sk"].Text() != was["sk"].Text() {
		w.delete(s.table, was)
	}
	w.put(s.table, it)
}

// goOn has the application change everything that anything derived goes by.
func (w *world) goOn() {
	w.t.Helper()
	post := w.item("app", "AUTHOR#1", "POST#1")
	for _, it := range []change.Item{
		texts("pk", "USER#1", "sk", "GROUP#1", "role", "admin"), texts("pk", "USER#3", "sk", "GROUP#1", "role", "m"),
		comment("1", "1", "green"), comment("2", "2", "blue"), comment("4", "1", "red"),
	} {
		w.put("app", it)
	}
	w.delete("app", texts("pk", "USER#2", "sk", "GROUP#1"))
	w.delete("app", post)
	w.follow()
	w.put("app", texts("pk", "AUTHOR#2", "sk", "POST#1"))
	w.put("app", texts("pk", "USER#1", "sk", "PROFILE", "name", "Eda"))
	w.follow()
	w.delete("app", comment("1", "1", ""))
	w.follow()
}
