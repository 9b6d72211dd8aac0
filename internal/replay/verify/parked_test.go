package verify_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/proof/oracle"
)

// deskRules let items be parked by a copy, a sum and a unique value, and let an
// item become one of another entity.
const deskRules = `version: 1
table: { keys: [pk, sk] }
entities:
  User:   { key: { pk: "USER#${userId}",     sk: "PROFILE" } }
  Post:   { key: { pk: "POST#${authorId}",   sk: "POST#${nr}" }, unique: postId }
  Ticket: { key: { pk: "DESK#${ticketId}",   sk: "INFO" }, match: { kind: ticket } }
  Bill:   { key: { pk: "DESK#${ticketId}",   sk: "INFO" }, match: { kind: bill } }
rules:
  author:  { copy: name as author, from: User, to: Ticket, by: userId }
  effort:  { sum: effort, of: Ticket, as: User.effort, by: userId }
  tickets: { count: Ticket, as: Post.tickets, by: postId }
  bills:   { count: Bill, as: Ticket.bills, by: { ticketId: of } }
`

func ticket(id string, namesAndValues ...string) change.Item {
	it := texts(append([]string{"pk", "DESK#" + id, "sk", "INFO", "kind", "ticket"}, namesAndValues...)...)
	it["effort"] = change.Number("3")
	return it
}

// desk is a table with something parked of every kind, as an engine leaves it.
func desk(t *testing.T) *world {
	t.Helper()
	w := worldOf(t, "desk", deskRules)
	post := texts("pk", "POST#1", "sk", "POST#2")
	post["postId"] = change.List(nil)
	lazy := ticket("3", "userId", "1")
	lazy["effort"] = change.String("much")
	for _, it := range []change.Item{
		texts("pk", "USER#1", "sk", "PROFILE", "name", "Ada"), texts("pk", "POST#1", "sk", "POST#1", "postId", "p"), post,
		ticket("1", "userId", "1", "postId", "p"), ticket("2", "userId", "1#2"), lazy,
	} {
		w.put("app", it)
	}
	w.follow()
	return w
}

var (
	badChild  = oracle.RuleID("author") + "/DESK#2/INFO"
	badSource = oracle.RuleID("effort") + "/DESK#3/INFO"
)

const (
	badUnique = "@Post/POST#1/POST#2"
)

func parkedRow(sk string, do func(*world, change.Item)) spoilt {
	return spoilt{state, "parked", sk, do}
}

// again puts a row once more under another sort key.
func again(rule, item, code string) func(*world, change.Item) {
	return func(w *world, it change.Item) {
		other := maps.Clone(it)
		if !strings.HasPrefix(rule, "@") {
			rule = oracle.RuleID(rule)
		}
		id := rule + "/" + item
		for name, value := range map[string]string{"sk": id, "id": id, "rule": rule, "item": item, "code": code} {
			other[name] = change.String(value)
		}
		w.put(state, other)
	}
}

// parkedDisplay adds the parked record of a display; without a code, it is torn.
func parkedDisplay(rule, item, code string) func(w *world, it change.Item) {
	return func(w *world, it change.Item) {
		other := maps.Clone(it)
		id := oracle.RuleID(rule)
		for name, value := range map[string]string{"sk": "display:" + id + "/" + item, "id": "display:" + id + "/" + item, "rule": id,
			"item": item, "code": code} {
			other[name] = change.String(value)
		}
		w.put(state, other)
	}
}

var gone = under("nowhere", "nowhere")

func TestParkedRecordIsHeldToItsItem(t *testing.T) {
	str := change.String
	for name, c := range map[string]struct {
		spoilt
		want drift.What // "": it stays as it is
	}{
		"of a child is missing":            {parkedRow(badChild, gone), drift.Missing},
		"of a source is missing":           {parkedRow(badSource, gone), drift.Missing},
		"of a unique value is missing":     {parkedRow(badUnique, gone), drift.Missing},
		"of a child has another code":      {parkedRow(badChild, set("code", str("value.type"))), drift.Wrong},
		"of a source has another code":     {parkedRow(badSource, set("code", str("key.smuggled"))), drift.Wrong},
		"of a child has no code":           {parkedRow(badChild, without("code")), drift.Wrong},
		"of a child names no rule":         {parkedRow(badChild, without("rule")), drift.Wrong},
		"of a source names another item":   {parkedRow(badSource, set("item", str("DESK#1/INFO"))), drift.Wrong},
		"of a child, code is a number":     {parkedRow(badChild, set("code", change.Number("7"))), drift.Wrong},
		"of a good child":                  {parkedRow(badChild, again("author", "DESK#1/INFO", "key.smuggled")), drift.Surplus},
		"of a child that is gone":          {parkedRow(badChild, again("author", "DESK#9/INFO", "key.smuggled")), drift.Surplus},
		"of an item that cannot be":        {parkedRow(badChild, again("author", "DESK#9", "key.smuggled")), drift.Surplus},
		"of a good source":                 {parkedRow(badChild, again("effort", "DESK#1/INFO", "value.type")), drift.Surplus},
		"of a good source with an entry":   {parkedRow(badChild, again("effort", "DESK#3/INFO", "value.type")), ""},
		"of a source that is gone":         {parkedRow(badChild, again("effort", "DESK#9/INFO", "value.type")), drift.Surplus},
		"of a good unique value":           {parkedRow(badChild, again("@Post", "POST#1/POST#1", "value.type")), drift.Surplus},
		"of a target, as of a source":      {parkedRow(badChild, again("effort", "USER#1/PROFILE", "value.type")), drift.Surplus},
		"of a display":                     {parkedRow(badChild, parkedDisplay("effort", "USER#1/PROFILE", "value.type")), drift.Surplus},
		"of a display, without a code":     {parkedRow(badChild, parkedDisplay("effort", "USER#1/PROFILE", "")), drift.Surplus},
		"of a display of no display rule":  {parkedRow(badChild, parkedDisplay("author", "DESK#1/INFO", "write.rejected")), drift.Surplus},
		"of an unknown rule":               {parkedRow(badChild, again("newer", "DESK#1/INFO", "value.type")), ""},
		"of an unknown locator":            {parkedRow(badChild, again("@User", "DESK#1/INFO", "value.type")), ""},
		"stays, for a write was rejected":  {parkedRow(badChild, again("author", "DESK#1/INFO", "write.rejected")), ""},
		"stays, for healing was contested": {parkedRow(badChild, parkedDisplay("effort", "USER#1/PROFILE", "heal.contested")), ""},
		"stays, for a sum fits no number":  {parkedRow(badChild, parkedDisplay("effort", "USER#1/PROFILE", "number.overflow")), ""},
		"stays in place of what is asked":  {parkedRow(badChild, set("code", str("write.rejected"))), ""},
		"of a stream record": {parkedRow(badChild, func(w *world, it change.Item) {
			other := texts("pk", "parked", "sk", "record/1", "id", "record/1", "code", "record.json", "raw", "{")
			w.put(state, other)
		}), ""},
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			w := desk(t)
			w.expectRight("before")
			w.damage(c.spoilt)
			w.lose()
			before := len(w.scan(state))
			found, _ := w.verify(false)
			if c.want == "" {
				for _, f := range found {
					t.Errorf("found: %s", text(f))
				}
				return
			}
			if len(found) != 1 || found[0].Kind != drift.Parked || found[0].What != c.want {
				t.Errorf("found %v, want one %s parked record", found, c.want)
			}
			if after := len(w.scan(state)); after != before {
				t.Errorf("a dry run took %d rows to %d", before, after)
			}
			repaired, _ := w.verify(true)
			w.expectMended(repaired)
			w.expectRight("after the repair")
		}))
	}
}

// bill has a ticket carry the stamps of a ticket as a bill.
func bill(_ *world, it change.Item) { it["kind"] = change.String("bill") }

func TestLeftoverOfARuleInForceIsFoundAndTakenOff(t *testing.T) {
	by := func(rule string, v change.Value) func(*world, change.Item) {
		return func(_ *world, it change.Item) {
			attribute := map[string]string{"author": "author", "bills": "bills"}[rule]
			it[attribute] = v
			it[stampName(rule)] = stampOver(v)
		}
	}
	for name, c := range map[string]struct {
		do    func(*world, change.Item)
		stays string
	}{
		"an item becomes another":           {bill, ""},
		"an item becomes none":              {set("kind", change.String("letter")), ""},
		"a copy by hand":                    {func(w *world, it change.Item) { bill(w, it); by("author", change.String("Eve"))(w, it) }, ""},
		"a count by hand":                   {func(w *world, it change.Item) { bill(w, it); by("bills", change.Number("7"))(w, it) }, ""},
		"an attribute that was overwritten": {func(w *world, it change.Item) { bill(w, it); it["author"] = change.String("mine") }, "author"},
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			w := desk(t)
			w.damage(spoilt{app, "DESK#1", "INFO", c.do})
			w.lose()
			kinds := map[drift.Kind]bool{}
			found, _ := w.verify(false)
			for _, f := range found {
				kinds[f.Kind] = true
			}
			if !kinds[drift.Leftover] || !kinds[drift.Entry] {
				t.Errorf("found %v", found)
			}
			w.verify(true)
			w.follow()
			w.expectRight("after the repair")
			it := w.item(app, "DESK#1", "INFO")
			for _, name := range []string{stampName("author"), "author", stampName("bills"), "bills"} {
				if _, ok := it[name]; ok && name != c.stays {
					t.Errorf("the item still carries %s: %v", name, it)
				}
			}
		}))
	}
}

func TestAnItemPutAsAnotherWithItsStampsLosesThem(t *testing.T) {
	w := desk(t)
	it := w.item(app, "DESK#1", "INFO")
	w.delete(app, it)
	w.follow()
	bill(w, it)
	w.put(app, it)
	w.follow()
	w.expectRight("after the stream")
}

func TestADryRunForeseesParkedRecordsAndLeftovers(t *testing.T) {
	w := desk(t)
	w.damage(parkedRow(badChild, under("nowhere", "nowhere")))
	w.damage(spoilt{app, "DESK#1", "INFO", bill})
	w.lose()
	found, _ := w.ahead(w.rows())
	for _, what := range []string{"author: missing parked record", "author: surplus leftover"} {
		if found[what] != 1 {
			t.Errorf("%s: %d, want 1 (%v)", what, found[what], found)
		}
	}
}

func TestClearingSparesNewlyParkedEffects(t *testing.T) {
	bad := map[string]change.Item{"author": ticket("1", "userId", "1#2"), "effort": ticket("1", "userId", "1")}
	bad["effort"]["effort"] = change.String("much")
	for rule, item := range bad {
		t.Run(rule, inBubble(func(t *testing.T) {
			w := desk(t)
			w.damage(parkedRow(badChild, again(rule, "DESK#1/INFO", "key.smuggled")))
			w.lose()
			a := w.audit()
			suspect := drift.Suspect{Kind: drift.Parked, Rule: oracle.RuleID(rule), Item: change.Key{Partition: "DESK#1", Sort: "INFO"}}
			readings, err := a.Read(w.ctx, []drift.Suspect{suspect})
			w.must(err)
			if len(readings[0].Findings) != 1 {
				t.Fatalf("found %v", readings[0].Findings)
			}
			w.put(app, item)
			w.follow()
			if done, err := a.Mend(w.ctx, readings[0]); done || err != nil {
				t.Errorf("cleared: %v, %v", done, err)
			}
			w.item(state, "parked", oracle.RuleID(rule)+"/DESK#1/INFO")
			w.expectRight("in the end")
		}))
	}
}

// sizedRules let a sum be parked of a post that another rule indexes by its tags.
const sizedRules = `
version: 1
table: { keys: [pk, sk] }
entities:
  User:    { key: { pk: "USER#${userId}", sk: "PROFILE" } }
  Post:    { key: { pk: "POST#${postId}", sk: "METADATA" } }
  TagPost: { key: { pk: "TAG#${tag}", sk: "POST#${postId}" } }
rules:
  thirds:    { sum: size / 3, of: Post, as: User.thirds, by: userId }
  tag-index: { mirror: Post, each: tags as tag, as: TagPost }
`

func sizedPost(id, size, tag string) change.Item {
	post := texts("pk", "POST#"+id, "sk", "METADATA", "userId", "1")
	post["size"], post["tags"] = change.Number(size), change.List([]change.Value{change.String(tag)})
	return post
}

// TestWhatIsParkedUnderOneRuleExcusesNothingUnderAnother has a post that is deleted unseen. No number holds what it would add to a
// sum; another rule made an item of it.
func TestWhatIsParkedUnderOneRuleExcusesNothingUnderAnother(t *testing.T) {
	w := worldOf(t, "posts", sizedRules)
	post := sizedPost("1", "2", "go")
	w.put(app, post)
	w.follow()
	w.item(state, "parked", oracle.RuleID("thirds")+"/POST#1/METADATA")
	w.delete(app, post)
	w.lose()
	found, _ := w.verify(true)
	w.expectMended(found)
	w.expectRight("after the repair")
}

// TestARepairLeavesOutOnlyWhatIsParked has a post that no accumulator has room for, with tags that changed unseen.
func TestARepairLeavesOutOnlyWhatIsParked(t *testing.T) {
	w := worldOf(t, "posts", sizedRules)
	w.put(app, sizedPost("1", strings.Repeat("9", 38), "go"))
	w.follow()
	w.put(app, sizedPost("2", "0.3", "go"))
	w.follow()
	w.item(state, "parked", oracle.RuleID("thirds")+"/POST#2/METADATA")
	w.put(app, sizedPost("2", "0.3", "rust"))
	w.lose()
	for _, repair := range []bool{false, true, false} {
		found, summary := w.verify(repair)
		if repair {
			w.expectMended(found)
		} else if mended := len(found) == 0; mended != (w.isMade("TAG#rust", "POST#2") && !w.isMade("TAG#go", "POST#2")) {
			t.Errorf("found %v", found)
		}
		for _, f := range found {
			if f.Rule != "tag-index" {
				t.Errorf("found %+v, which is parked", f)
			}
		}
		if summary.Parked != 1 {
			t.Errorf("with repair %t, %d are parked, want 1", repair, summary.Parked)
		}
	}
}

func (w *world) isMade(pk, sk string) bool {
	return slices.ContainsFunc(w.scan(app), func(it change.Item) bool { return it["pk"].Text() == pk && it["sk"].Text() == sk })
}

// TestOneRefusedElementExcusesNoOther has a post with two tags: no accumulator of the one has room for its size, the other counts it.
// The other tag changes, and then the post is deleted, both unseen.
func TestOneRefusedElementExcusesNoOther(t *testing.T) {
	w := worldOf(t, "tags", `
version: 1
table: { keys: [pk, sk] }
entities:
  Post: { key: { pk: "POST#${postId}", sk: "METADATA" } }
  Tag:  { key: { pk: "TAG#${tag}", sk: "INFO" }, derived: true }
rules:
  weight: { sum: size, of: Post, each: tags as tag, as: Tag.weight }
`)
	w.put(app, sizedPost("1", strings.Repeat("9", 38), "full"))
	w.follow()
	post := sizedPost("2", "0.3", "full")
	post["tags"] = change.List(append(post["tags"].List(), change.String("free")))
	w.put(app, post)
	w.follow()
	w.item(state, "parked", oracle.RuleID("weight")+"/POST#2/METADATA")
	post["tags"] = change.List(append(post["tags"].List()[:1:1], change.String("other")))
	w.put(app, post)
	w.lose()
	found, summary := w.verify(true)
	w.expectMended(found)
	if summary.Parked != 1 {
		t.Errorf("%d are parked, want 1", summary.Parked)
	}
	w.delete(app, post)
	w.lose()
	found, _ = w.verify(true)
	w.expectMended(found)
	w.expectRight("after the repair")
}
