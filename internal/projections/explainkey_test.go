package projections

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/audits"
)

// explained is what both tables hold of an item, a line for each sentence, and makes sure that looking changes nothing.
func (w *world) explained(key change.Key) []string {
	w.t.Helper()
	before := [][]change.Item{w.items(), w.scan("app-dynamill")}
	a, err := audits.Open(w.ctx, audits.Config{Client: w.sim, Table: "app", Rules: loadRules(w.t, w.file)})
	if err != nil {
		w.t.Fatal(err)
	}
	x, err := a.ExplainKey(w.ctx, key)
	if err != nil {
		w.t.Fatal(err)
	}
	if diff := cmp.Diff(before, [][]change.Item{w.items(), w.scan("app-dynamill")}); diff != "" {
		w.t.Errorf("explaining changed the tables:\n%s", diff)
	}
	lines := []string{fmt.Sprintf("%s %q, there: %t, made: %t", x.Key, x.Entity, x.Exists, x.Made)}
	add := func(parts ...string) {
		lines = append(lines, varying.ReplaceAllString(strings.Join(parts, " | "), "$1 N"))
	}
	for _, s := range x.Stamps {
		add("stamp", s.Rule, s.Says)
	}
	for _, r := range x.Rows {
		add(r.Row, r.Rule, r.Says)
	}
	for _, l := range x.Lines {
		add("asks", l.Rule, l.Effect)
	}
	return lines
}

// varying are the parts of the sentences that are not the same in each run.
var varying = regexp.MustCompile(`(record|since|at) [0-9][0-9TZ:-]+[0-9Z]( of stream [0-9T:.-]+)?`)

// expectExplained checks the lines that hold a text; "" is all of them.
func (w *world) expectExplained(key change.Key, holding string, want ...string) {
	w.t.Helper()
	var found []string
	for _, line := range w.explained(key) {
		if strings.Contains(line, holding) {
			found = append(found, line)
		}
	}
	if diff := cmp.Diff(want, found); diff != "" {
		w.t.Errorf("%s:\n%s", key, diff)
	}
}

var (
	profile1     = change.Key{Partition: "USER#u1", Sort: "PROFILE"}
	firstComment = change.Key{Partition: "POST#p1", Sort: "COMMENT#c1"}
)

// social is a table on which all is derived.
func social(t *testing.T) (*world, *Engine) {
	w := newWorld(t, socialRules)
	e := w.seeded()
	w.putGroup()
	w.rename("Ann")
	w.putMember("admin")
	w.put(comment("c1", change.Item{"userId": s("u1"), "score": change.Number("2.5")}))
	w.put(comment("c2", change.Item{"userId": s("u1"), "score": s("high")}))
	w.drain(e, 0)
	return w, e
}

func TestExplainedKeyTellsAllOfItsItem(t *testing.T) {
	w, _ := social(t)
	w.expectExplained(firstComment, "",
		`POST#p1/COMMENT#c1 "Comment", there: true, made: false`,
		"stamp | comment-author | rules epoch 1, record N, filled or rederived since: 1; as dynamill wrote it: userName, userAvatar",
		"ledger entry |  | processed up to rules epoch 1, record N",
		"ledger entry | comment-count | asks for 1 in POST#p1/METADATA",
		"ledger entry | comment-score | asks for 2.5 in POST#p1/METADATA",
		"reference | comment-author | takes its copies from USER#u1/PROFILE, as of rules epoch 1, record N",
		"parent's position | comment-author | USER#u1/PROFILE is written to its children, as of rules epoch 1, record N",
		"asks | comment-author | refers to USER#u1/PROFILE",
		"asks | comment-count | asks for 1 in POST#p1/METADATA",
		"asks | comment-score | asks for 2.5 in POST#p1/METADATA",
	)
	w.expectExplained(group1, "",
		`GROUP#g1/METADATA "Group", there: true, made: false`,
		"stamp | admin-count | rules epoch 1, 1 operation; as dynamill wrote it: adminCount",
		"stamp | member-count | rules epoch 1, 1 operation; as dynamill wrote it: memberCount",
		"accumulator | member-count | 1 from 1 source, after 1 operation",
		"accumulator | admin-count | 1 from 1 source, after 1 operation",
	)
	w.expectExplained(change.Key{Partition: "GROUP#g1", Sort: "USER#u1"}, "member-list",
		"stamp | member-list | rules epoch 1, record N; as dynamill wrote it: role, joinedAt")
	w.expectExplained(change.Key{Partition: "GROUP#g1", Sort: "USER#u1"}, "made: true", `GROUP#g1/USER#u1 "Member", there: true, made: true`)
	w.expectExplained(change.Key{Partition: "POST#p1", Sort: "COMMENT#c2"}, "comment-score",
		"ledger entry | comment-score | asks for nothing, being unreadable: value.type",
		`parked record | comment-score | value.type since N: sum of Comment: score is the string "high"; a sum needs a number`,
		`asks | comment-score | asks for nothing, being unreadable: sum of Comment: score is the string "high"; a sum needs a number`)
	w.expectExplained(change.Key{Partition: "POST#p9", Sort: "METADATA"}, "", `POST#p9/METADATA "", there: false, made: false`)
}

func TestExplainedStampTellsWhatBecameOfIt(t *testing.T) {
	w, _ := social(t)
	stamp := stampOf("comment-author")
	const written = "stamp | comment-author | rules epoch 1, record N, filled or rederived since: 1; "
	w.update(firstComment, change.Item{"userAvatar": s("x.png")})
	w.expectExplained(firstComment, "stamp", written+"as dynamill wrote it: userName; written by another rule or program since: userAvatar")
	w.update(firstComment, change.Item{"userName": s("Eve")})
	w.expectExplained(firstComment, "stamp", written+"written by another rule or program since: userName, userAvatar")
	w.update(firstComment, change.Item{"userId": s("u2")})
	w.expectExplained(firstComment, "stamp",
		written+"it counts as none: it is of another item, parent or group, or of a former state table")
	w.update(firstComment, change.Item{"userId": change.Value{}})
	w.expectExplained(firstComment, "stamp", written+"the rule writes nothing on the item as it is now")
	w.update(firstComment, change.Item{StampPrefix + "zz9": w.get(firstComment)[stamp], stamp: s("mine")})
	w.expectExplained(firstComment, "stamp", "stamp | comment-author | no stamp: another program wrote it",
		"stamp | a rule that is no longer there | rules epoch 1, record N, filled or rederived since: 1")
}

func TestExplainedItemOfAFormerRuleSaysSo(t *testing.T) {
	w, _ := social(t)
	w.file = strings.Replace(socialRules, "  comment-author:", "  #", 1)
	w.file = strings.Replace(w.file, "  comment-count:", "  #", 1)
	if _, err := OpenChanging(w.ctx, Config{Client: w.sim, Table: "app", Rules: loadRules(t, w.file)}, 1); err != nil {
		t.Fatal(err)
	}
	w.expectExplained(firstComment, "not in force any more",
		"stamp | comment-author, not in force any more | rules epoch 1, record N, filled or rederived since: 1; "+
			"as dynamill wrote it: userName, userAvatar",
		"ledger entry | comment-count, not in force any more | asks for 1 in POST#p1/METADATA")
}

func TestExplainedLedgerEntryTellsItsState(t *testing.T) {
	w, e := social(t)
	entry := w.row("i/POST#p1/COMMENT#c1", "e")
	entry["due"], entry["rederived"] = change.Set(change.KindStringSet, []string{idOf("comment-count") + " POST#p1/METADATA"}),
		change.Number("2")
	w.putState(entry)
	w.expectExplained(firstComment, "ledger entry |  |", "ledger entry |  | processed up to rules epoch 1, record N, rederived since: 2")
	w.expectExplained(firstComment, "brought",
		"ledger entry | comment-count | POST#p1/METADATA is still to be brought up to date")
	entry["a"] = s("nonsense")
	w.putState(entry)
	w.expectExplained(firstComment, "ledger entry", "ledger entry |  | row i/POST#p1/COMMENT#c1 of the state table cannot be read: "+
		`it holds the position "nonsense"; run `+"`dynamill verify --repair`")

	member := change.Key{Partition: "USER#u1", Sort: "GROUP#g1"}
	entry = w.row("i/USER#u1/GROUP#g1", "e")
	var effects []string
	for _, effect := range entry["e"].List() {
		effects = append(effects, strings.Replace(effect.Text(), idOf("member-list")+"=", idOf("member-list")+"~", 1))
	}
	entry["e"] = change.Set(change.KindStringSet, effects)
	w.putState(entry)
	w.expectExplained(member, "ledger entry | member-list",
		"ledger entry | member-list | asks for mirror item GROUP#g1/USER#u1, which DynamoDB's time to live deleted")

	from := len(w.records())
	c2 := change.Key{Partition: "POST#p1", Sort: "COMMENT#c2"}
	w.delete(c2)
	w.drain(e, from)
	w.expectExplained(c2, "ledger entry",
		"ledger entry |  | processed up to rules epoch 1, record N; the item has no effect any more, and the row expires at N")
	w.put(comment("c3", change.Item{"userId": s("u1")}))
	w.expectExplained(change.Key{Partition: "POST#p1", Sort: "COMMENT#c3"}, "there is none",
		"ledger entry |  | there is none: the item has no effect yet",
		"reference | comment-author | there is none at its parent USER#u1/PROFILE")
}

func TestExplainedParentTellsWhatIsPending(t *testing.T) {
	w, open := crowd(t)
	e := open(w.sim)
	from := w.drain(e, 0)
	w.rename("Bob")
	w.drain(e, from)
	w.expectExplained(profile1, "task",
		"task | comment-author | writes the remaining children of USER#u1/PROFILE: 5 items looked at so far, "+
			"5 of them its children; kept since N")
	task := w.row("tasks", idOf("comment-author")+"/USER#u1/PROFILE")
	task["ranges"], task["rangesEnded"] = change.Number("4"), change.Number("1")
	w.putState(task)
	w.expectExplained(change.Key{Partition: "POST#p1", Sort: "COMMENT#c00"}, "task",
		"task | comment-author | writes the remaining children of "+
			"USER#u1/PROFILE: 5 items looked at so far, 5 of them its children; 4 ranges cut off, 1 done; kept since N")
	task["changes"] = s("many")
	w.putState(task)
	w.expectExplained(profile1, "task",
		"task | comment-author | row tasks of the state table cannot be read: it holds no valid task; run "+
			"`dynamill verify --repair`")
	position := w.row("parent/"+idOf("comment-author")+"/USER#u1/PROFILE", "position")
	position["a"] = s("nonsense")
	w.putState(position)
	w.expectExplained(profile1, "position | comment-author",
		"parent's position | comment-author | USER#u1/PROFILE is written to its children, "+
			"as of a version that cannot be read")
}

func TestExplainedTargetTellsItsClaimants(t *testing.T) {
	w := newWorld(t, oddRules)
	e := w.seeded()
	for _, id := range []string{"1", "2"} {
		w.put(change.Item{"pk": s("DOC#" + id), "kind": s("doc"), "code": s("c"), "folder": s("f"), "size": change.Number("3"),
			"ownerId": s("o")})
		w.put(change.Item{"pk": s("FOLDER#" + id), "slug": s("f")})
	}
	w.drain(e, 0)
	w.expectExplained(change.Key{Partition: "CODE#c"}, "by-code",
		"stamp | by-code | rules epoch 1, 1 operation; as dynamill wrote it: title, ownerId",
		"claims | by-code | items that ask for this mirror item: DOC#1, DOC#2; the first one gives its content",
		"parked record | by-code | item.contested since N: several items claim it, and the one with the smallest key wins")
	w.expectExplained(change.Key{Partition: "FOLDER#2"}, "unique",
		"ledger entry | unique Folder | asks for being found as f",
		"locator | unique Folder | items with the value f: FOLDER#1, FOLDER#2; the first one displays what is found by it",
		"parked record | unique Folder | unique.contested since N: several items claim it, and the one with the smallest key wins",
		"asks | unique Folder | asks for being found as f")
	locator, many := w.row("locator/Folder/f", "locator"), []string{}
	for i := range 12 {
		many = append(many, fmt.Sprintf("F#%02d", i))
	}
	locator["items"] = change.Set(change.KindStringSet, many)
	w.putState(locator)
	w.expectExplained(change.Key{Partition: "FOLDER#2"}, "locator", "locator | unique Folder | items with the value f: "+
		strings.Join(many[:10], ", ")+" and 2 more; the first one displays what is found by it")
	sum := w.row("sum/"+idOf("size")+"/OWNER#o/0", "a")
	if sum == nil {
		sum = w.row("sum/"+idOf("size")+"/OWNER#o/1", "a")
	}
	sum["value"] = s("much")
	w.putState(sum)
	w.expectExplained(change.Key{Partition: "OWNER#o"}, "accumulator | size",
		"accumulator | size | \"much\" is not a number: run `dynamill verify --repair`")
}

func TestKeyThatTheTableCannotHoldIsRefused(t *testing.T) {
	w := newWorld(t, `
version: 1
table: { keys: [pk, n] }
entities:
  Line:  { key: { pk: "ORDER#${orderId}", n: "${line}" } }
  Order: { key: { pk: "ORDER#${orderId}#order", n: "${zero}" } }
rules:
  lines: { copy: name, from: Order, to: Line, by: { orderId: orderId, zero: zero } }
`)
	w.seeded()
	a, err := audits.Open(w.ctx, audits.Config{Client: w.sim, Table: "app", Rules: w.set})
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []change.Key{{Partition: "ORDER#1", Sort: "first"}, {Partition: "ORDER#1"},
		{Partition: strings.Repeat("x", 3000), Sort: "1"}} {
		if _, err := a.ExplainKey(w.ctx, key); !errors.Is(err, audits.ErrKeyImpossible) {
			t.Errorf("%.20s: %v", key, err)
		}
	}
	w.put(change.Item{"pk": s("ORDER#1"), "n": change.Number("5")})
	w.expectExplained(change.Key{Partition: "ORDER#1", Sort: "5.0"}, "there:", `ORDER#1/5 "Line", there: true, made: false`)
}

// row is a row of the state table; nil if there is none.
func (w *world) row(pk, sk string) change.Item {
	w.t.Helper()
	for _, row := range w.scan("app-dynamill") {
		if row["pk"].Text() == pk && row["sk"].Text() == sk {
			return row
		}
	}
	return nil
}

func TestAMirrorWithoutAttributesIsExplained(t *testing.T) {
	w := newWorld(t, `
version: 1
table: { keys: [pk, sk] }
entities:
  Membership: { key: { pk: "USER#${userId}",   sk: "GROUP#${groupId}" } }
  Member:     { key: { pk: "GROUP#${groupId}", sk: "USER#${userId}" } }
rules:
  member-list: { mirror: Membership, as: Member }
`)
	e := w.seeded()
	from := w.drain(e, 0)
	w.put(change.Item{"pk": s("USER#a"), "sk": s("GROUP#g")})
	w.drain(e, from)
	lines := w.explained(change.Key{Partition: "GROUP#g", Sort: "USER#a"})
	if len(lines) < 2 || !strings.HasPrefix(lines[1], "stamp | member-list | rules epoch 1, record ") {
		t.Errorf("%q", lines)
	}
}
