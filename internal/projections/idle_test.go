package projections

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// writesOf counts the write requests that an engine sends while do runs.
func (w *world) writesOf(open func(table.Client) *Engine, do func(*Engine)) (writes []string) {
	w.t.Helper()
	f := &faulty{Client: w.sim, around: passAll}
	e := open(f)
	f.before = func(op string, in any) {
		switch op {
		case "PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems":
			writes = append(writes, fmt.Sprintf("%s %+v", op, in))
		}
	}
	do(e)
	return writes
}

// fillShop fills a table with something for every rule of shopRules.
func (w *world) fillShop() {
	w.t.Helper()
	for u := range 3 {
		user := fmt.Sprintf("USER#u%d", u)
		w.put(change.Item{"PK": s(user), "SK": s("PROFILE"), "EntityType": s("User")})
		for p := range 3 { // of which several have the same slug
			w.put(change.Item{"PK": s(user), "SK": s(fmt.Sprintf("POST#p%d", p)), "EntityType": s("Post"), "slug": s(fmt.Sprintf("s%d", p)),
				"title": s(user)})
			w.put(change.Item{"PK": s(user), "SK": s(fmt.Sprintf("LIKE#l%d", p)), "EntityType": s("Like"), "target": s(fmt.Sprintf("s%d", p%2))})
		}
		w.put(change.Item{"PK": s(user), "SK": s("POST#none"), "EntityType": s("Post"), "title": s("no slug")})
	}
}

// fillOdd fills a table with something for every rule of oddRules, and with what they cannot read.
func (w *world) fillOdd() {
	w.t.Helper()
	for i := range 4 {
		w.put(change.Item{"pk": s(fmt.Sprintf("OWNER#o%d", i)), "name": s(fmt.Sprintf("Owner %d", i))})
		w.put(change.Item{"pk": s(fmt.Sprintf("FOLDER#f%d", i)), "slug": s(fmt.Sprintf("slug%d", i/2))})
		w.put(change.Item{"pk": s(fmt.Sprintf("DOC#d%d", i)), "kind": s("doc"), "ownerId": s(fmt.Sprintf("o%d", i%2)),
			"code":  s(fmt.Sprintf("c%d", i/2)),
			"title": s(fmt.Sprintf("Doc %d", i)), "folder": s("slug0"), "size": change.Number("7")})
		w.put(change.Item{"pk": s(fmt.Sprintf("DOC#n%d", i)), "kind": s("note"), "ownerId": s(fmt.Sprintf("o%d", i+2)), "folderId": s("f1"),
			"folder": s("slug1")})
	}
	w.put(change.Item{"pk": s("DOC#bare"), "kind": s("doc")})
	w.put(change.Item{"pk": s("DOC#bad"), "kind": s("doc"), "ownerId": s("a#b"), "code": s("x"), "size": s("large")})
	w.put(change.Item{"pk": s("CODE#own"), "title": s("the application's")})
	w.put(change.Item{"pk": s("OTHER#1")})
}

func TestRederivingWhatIsRightWritesNothing(t *testing.T) {
	for name, tt := range map[string]struct {
		file string
		fill func(*world)
	}{
		"social": {socialRules, (*world).social}, "shop": {shopRules, (*world).fillShop}, "odd": {oddRules, (*world).fillOdd},
		"mirrors with claims": {latestOrderRules, func(w *world) {
			for _, c := range []string{"a", "b"} {
				for i := range 3 {
					w.put(change.Item{"pk": s("CUSTOMER#" + c), "sk": s(fmt.Sprintf("ORDER#%d", i)), "code": s(fmt.Sprintf("x%d", i)),
						"total": change.Number(fmt.Sprint(i))})
				}
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tt.file)
			tt.fill(w)
			from := w.drain(w.seeded(), 0)
			if name == "social" { // after a change of the rules nothing is written anew but what changed
				w.use(withRule(t, w.file, "comment-count", ""))
				e := w.changing(w.file, nil)
				w.replay(e)
				w.drain(e, from)
				w.expectTrue()
			}
			e := w.engine(nil)
			open := func(c table.Client) *Engine { return w.engine(c) }
			for _, pass := range []string{"rederive", "sweep", fmt.Sprintf("derive/%d/0", e.planner.Epoch),
				fmt.Sprintf("show/%d/-1/0", e.planner.Epoch), fmt.Sprintf("clean/%d", e.planner.Epoch), fmt.Sprintf("sweep/%d", e.planner.Epoch)} {
				for _, write := range w.writesOf(open, func(e *Engine) {
					if err := w.work(e, pass); err != nil {
						t.Fatal(err)
					}
				}) {
					t.Errorf("%s writes: %s", pass, write)
				}
			}
			w.expectNoDrift()
		})
	}
}

// TestAddingARuleMarksNothingForOthers has every entry change, and nothing of what the rules
// that were there before make of it.
func TestAddingARuleMarksNothingForOthers(t *testing.T) {
	w := newWorld(t, socialRules)
	w.use(withRule(t, w.file, "comment-count", ""))
	w.put(change.Item{"pk": s("POST#p1"), "sk": s("METADATA")})
	w.put(vote(change.Number("1")))
	w.drain(w.seeded(), 0)
	f := &faulty{Client: w.sim, around: passAll}
	e := w.changing(socialRules, f)
	entries := 0
	f.before = func(op string, in any) {
		if tx, ok := in.(*dynamodb.TransactWriteItemsInput); ok {
			for _, it := range tx.TransactItems {
				if it.Put != nil && strings.HasPrefix(table.TextOf(it.Put.Item["pk"]), state.EntryPrefix) {
					entries++
					if due := it.Put.Item["due"]; due != nil {
						t.Errorf("an entry is marked: %v", due)
					}
				}
			}
		}
	}
	w.replay(e)
	if entries != 1 {
		t.Errorf("%d entries were written", entries)
	}
	w.expectTrue()
}

// TestRederivingMendsWhatIsWrong breaks something of everything, out of the stream's sight.
func TestRederivingMendsWhatIsWrong(t *testing.T) {
	w := newWorld(t, socialRules)
	w.social()
	e := w.seeded()
	w.drain(e, 0)
	w.update(change.Key{Partition: "POST#p1", Sort: "COMMENT#cu1"}, change.Item{"userName": s("wrong")})
	w.update(group1, change.Item{"memberCount": change.Number("77"), "adminCount": {}})
	w.delete(change.Key{Partition: "GROUP#g1", Sort: "USER#u1"})
	w.update(change.Key{Partition: "GROUP#g1", Sort: "USER#u0"}, change.Item{"role": s("wrong"), "groupTitle": s("wrong")})
	gone := change.Key{Partition: "USER#u0", Sort: "GROUP#g1"} // no record of its deletion comes
	w.delete(gone)
	w.putState(change.Item{"pk": s("ref/" + idOf("comment-author") + "/USER#u3/PROFILE"), "sk": s("POST#p1/COMMENT#cu1"), "a": s("0-")})
	for _, pass := range []string{"rederive", "sweep", "rederive/admin-count,member-list"} {
		if err := w.work(e, pass); err != nil {
			t.Fatal(err)
		}
	}
	w.expectTrue()
}

// TestASweepSetsRightWhatCameBackWithNothing loses the deletion of an item that is there
// again, asking for nothing, before the sweep comes by its entry: its record says that
// there is nothing to do.
func TestASweepSetsRightWhatCameBackWithNothing(t *testing.T) {
	w := newWorld(t, socialRules)
	w.putGroup()
	key := change.Key{Partition: "USER#u1", Sort: "GROUP#g1"}
	w.put(change.Item{"pk": s(key.Partition), "sk": s(key.Sort), "role": s("member")})
	w.use(withRule(t, withRule(t, w.file, "member-list", ""), "group-name", ""))
	e := w.seeded()
	w.drain(e, 0)
	w.expect(group1, "memberCount", change.Number("1"))
	w.delete(key)
	from := len(w.records())
	if err := w.work(e, "rederive"); err != nil {
		t.Fatal(err)
	}
	w.put(change.Item{"pk": s(key.Partition), "sk": s(key.Sort), "role": s("banned")})
	if err := w.work(e, "sweep"); err != nil {
		t.Fatal(err)
	}
	w.drain(e, from)
	w.expect(group1, "memberCount", change.Number("0"))
	w.expectTrue()
}

// TestASweepKnowsItemsByTheirWholeKeys has an item vanish whose ledger entry's key is cut.
func TestASweepKnowsItemsByTheirWholeKeys(t *testing.T) {
	w := newWorld(t, socialRules)
	long := string(make([]byte, 0))
	for len(long) < 2030 {
		long += "x"
	}
	w.putGroup()
	key := change.Key{Partition: "USER#" + long, Sort: "GROUP#g1"}
	w.put(change.Item{"pk": s(key.Partition), "sk": s(key.Sort), "role": s("member")})
	e := w.seeded()
	w.drain(e, 0)
	w.expect(group1, "memberCount", change.Number("1"))
	w.delete(key)
	if err := w.work(e, "sweep"); err != nil {
		t.Fatal(err)
	}
	w.expect(group1, "memberCount", change.Number("0"))
	w.expectTrue()
}
