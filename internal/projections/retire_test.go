package projections

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/proof/oracle"
)

// changing opens an engine that may change the rules.
func (w *world) changing(ruleFile string, client table.Client) *Engine {
	w.t.Helper()
	e, err := w.tryChanging(ruleFile, client)
	if err != nil {
		w.t.Fatal(err)
	}
	return e
}

func (w *world) tryChanging(ruleFile string, client table.Client) (*Engine, error) {
	if client == nil {
		client = w.sim
	}
	w.use(ruleFile)
	return OpenChanging(w.ctx, Config{Client: client, Table: "app", Rules: loadRules(w.t, ruleFile)}, AnyEpoch)
}

// use takes another rule file into force for looking at the table.
func (w *world) use(ruleFile string) {
	w.t.Helper()
	w.file, w.set = ruleFile, loadRules(w.t, ruleFile)
	if err := w.set.CheckKeys(change.KindString, sortKind(w.set)); err != nil {
		w.t.Fatal(err)
	}
}

// expectTrue holds both tables to what the rules ask for, and to nothing being left of former rules.
func (w *world) expectTrue(except ...oracle.Exception) {
	w.t.Helper()
	w.expectNoDrift()
	for _, d := range oracle.Audit(w.set, w.items(), w.scan("app-dynamill"), time.Now(),
		append(except, oracle.DanglingReferences, oracle.ExpiringPositions)...) {
		w.t.Error(d)
	}
}

// expectNone holds every item to not having an attribute.
func (w *world) expectNone(names ...string) {
	w.t.Helper()
	for _, item := range w.items() {
		for _, name := range names {
			if rule, ok := strings.CutPrefix(name, StampPrefix); ok {
				name = stampOf(rule)
			}
			if v := item.Lookup(name); v.Kind() != change.KindAbsent {
				w.t.Errorf("%s %s still has %s %q", item.Lookup(w.set.Table.PartitionKey).Text(), item.Lookup(w.set.Table.SortKey).Text(), name,
					v.Text())
			}
		}
	}
}

// withRule is a rule file with one line of a rule replaced; "" removes it.
func withRule(t testing.TB, file, name, line string) string {
	t.Helper()
	lines := strings.Split(file, "\n")
	i := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(strings.TrimSpace(l), name+":") })
	if i < 0 {
		t.Fatalf("there is no rule %s", name)
	}
	if line == "" {
		return strings.Join(slices.Delete(lines, i, i+1), "\n")
	}
	lines[i] = "  " + line
	return strings.Join(lines, "\n")
}

// social fills a table with something for every rule of socialRules.
func (w *world) social() {
	w.t.Helper()
	for i := range 4 {
		user := fmt.Sprintf("u%d", i)
		w.put(change.Item{"pk": s("USER#" + user), "sk": s("PROFILE"), "name": s("Name " + user), "nick": s("Nick " + user),
			"avatar": s(user + ".png")})
		for g := range 3 {
			role := []string{"admin", "member", "banned"}[(i+g)%3]
			w.put(change.Item{"pk": s("USER#" + user), "sk": s(fmt.Sprintf("GROUP#g%d", g)), "role": s(role), "joinedAt": s("2026"),
				"weight": change.Number("3")})
		}
		w.put(change.Item{"pk": s("POST#p1"), "sk": s("COMMENT#c" + user), "userId": s(user), "score": change.Number("2"), "text": s("hello")})
	}
	for g := range 3 {
		w.put(change.Item{"pk": s(fmt.Sprintf("GROUP#g%d", g)), "sk": s("METADATA"), "name": s("Group"), "nick": s("G")})
	}
	w.put(change.Item{"pk": s("POST#p1"), "sk": s("METADATA")})
}

// ruleChange is a rule of a file, what it is to be ("": it is removed), and the attributes that must be gone after that.
type ruleChange struct {
	rule, line string
	gone       []string
}

// ruleChanges are changes of socialRules.
var ruleChanges = map[string]ruleChange{
	"count: another condition": {"member-count", `member-count: { count: Membership, as: Group.memberCount, where: role == "banned" }`,
		[]string{"_dm_member-count"}},
	"count: another attribute": {"member-count", `member-count: { count: Membership, as: Group.members, where: role != "banned" }`,
		[]string{"_dm_member-count", "memberCount"}},
	"count: removed":            {"member-count", "", []string{"_dm_member-count", "memberCount"}},
	"count of mirrors: removed": {"admin-count", "", []string{"_dm_admin-count", "adminCount"}},
	"sum: another amount": {"comment-score", `comment-score: { sum: score * 2, of: Comment, as: Post.score }`,
		[]string{"_dm_comment-score"}},
	"sum becomes a count": {"comment-score", `comment-score: { count: Comment, as: Post.score, where: score > 1 }`,
		[]string{"_dm_comment-score"}},
	"sum: removed": {"comment-score", "", []string{"_dm_comment-score"}},
	"copy: another source": {"comment-author", `comment-author: { copy: nick as userName, from: User, to: Comment, by: userId }`,
		[]string{"_dm_comment-author", "userAvatar"}},
	"copy: another attribute": {"group-name", `group-name: { copy: name as title, from: Group, to: Membership }`,
		[]string{"_dm_group-name", "groupName"}},
	"copy: to mirrors": {"member-name", `member-name: { copy: nick as userName, from: User, to: Member }`,
		[]string{"_dm_member-name"}},
	"copy: removed": {"comment-author", "", []string{"_dm_comment-author", "userAvatar"}},
	"mirror: fewer attributes": {"member-list", `member-list: { mirror: Membership, as: Member, attributes: [role] }`,
		[]string{"_dm_member-list"}},
	"mirror: other attributes": {"member-list", `member-list: { mirror: Membership, as: Member, attributes: [role, weight] }`,
		[]string{"_dm_member-list"}},
	"mirror: only some": {"member-list",
		`member-list: { mirror: Membership, as: Member, attributes: [role, joinedAt], where: role == "admin" }`, []string{"_dm_member-list"}},
	"mirror: constants": {"member-list",
		`member-list: { mirror: Membership, as: Member, attributes: [role], set: { kind: member } }`, []string{"_dm_member-list"}},
	"mirror: removed": {"member-list", "", []string{"_dm_member-list"}},
	"write shards and the amount": {"member-count", `member-count: { count: Membership, as: Group.memberCount, write_shards: 5 }`,
		[]string{"_dm_member-count"}},
}

func TestARuleThatChangesMovesWhatItWrote(t *testing.T) {
	for name, to := range ruleChanges {
		for _, driver := range []string{"seed", "replay"} {
			t.Run(name+"/"+driver, func(t *testing.T) { newWorld(t, socialRules).changeAndBack(driver, (*world).social, to) })
		}
	}
}

// changeAndBack fills a table, changes a rule, and changes it back.
func (w *world) changeAndBack(driver string, fill func(*world), to ruleChange) {
	file := w.file
	fill(w)
	from := w.drain(w.seeded(), 0)
	w.expectTrue()
	next := withRule(w.t, file, to.rule, to.line)
	if _, err := Open(w.ctx, Config{Client: w.sim, Table: "app", Rules: loadRules(w.t, next)}); !errors.As(err,
		new(*RulesChangedError)) {
		w.t.Fatalf("opening with changed rules: %v", err)
	}
	e := w.changing(next, nil)
	if driver == "replay" {
		passes := w.replay(e)
		if len(passes) < 2 || passes[len(passes)-2] != "clean/2" || passes[len(passes)-1] != "sweep/2" {
			w.t.Errorf("the passes are %q", passes)
		}
	} else if err := e.Seed(w.ctx, nil); err != nil {
		w.t.Fatal(err)
	}
	from = w.drain(e, from)
	w.expectTrue()
	w.expectNone(to.gone...)
	if to.rule == "member-list" {
		w.expectMirrorsAre(next)
	}
	again, err := w.tryChanging(next, nil)
	if err != nil || len(again.Describe().NewRules)+len(again.Describe().FormerRules) > 0 {
		w.t.Errorf("opening again: %+v, %v", again.Describe(), err)
	}
	// And back: the same rule comes again under another id.
	back := w.changing(file, nil)
	w.replay(back)
	w.drain(back, from)
	w.expectTrue()
	w.expectNone("_dm_" + to.rule)
}

// expectMirrorsAre holds the mirror items of Member to what the file's rule writes, but for copies.
func (w *world) expectMirrorsAre(file string) {
	w.t.Helper()
	for _, item := range w.items() {
		if !strings.HasPrefix(item.Lookup("pk").Text(), "GROUP#") || !strings.HasPrefix(item.Lookup("sk").Text(), "USER#") {
			continue
		}
		if !strings.Contains(file, "as: Member,") {
			w.t.Errorf("mirror item %s is still there", item.Lookup("sk").Text())
		}
		if strings.Contains(file, "attributes: [role]") && item.Lookup("joinedAt").Kind() != change.KindAbsent {
			w.t.Errorf("mirror item %s still has joinedAt", item.Lookup("sk").Text())
		}
	}
}

func TestRenamingARuleMovesNothing(t *testing.T) {
	w := newWorld(t, socialRules)
	w.social()
	w.drain(w.seeded(), 0)
	before := len(w.records())
	next := strings.NewReplacer("member-count:", "members:", "member-list:", "list:").Replace(socialRules)
	e := w.changing(next, nil)
	if passes := w.replay(e); len(passes) > 0 {
		t.Errorf("a renamed rule takes %q", passes)
	}
	if got := len(w.records()); got != before {
		t.Errorf("%d writes to the table", got-before)
	}
	w.expectTrue()
}

func TestTheOldValueIsShownWhileTheNewOneIsCounted(t *testing.T) {
	w := newWorld(t, socialRules)
	w.social()
	w.drain(w.seeded(), 0)
	old, now := w.get(group1).Lookup("memberCount"), change.Number("4")
	f := &faulty{Client: w.sim, around: passAll}
	e := w.changing(withRule(t, socialRules, "member-count", `member-count: { count: Membership, as: Group.memberCount }`), f)
	f.around = func(_ string, pass func() error) error {
		err := pass()
		if got := w.get(group1).Lookup("memberCount"); !got.Equal(old) && !got.Equal(now) {
			t.Errorf("memberCount shows %q on its way from %s to %s", got.Text(), old.Text(), now.Text())
		}
		return err
	}
	if err := e.Seed(w.ctx, nil); err != nil {
		t.Fatal(err)
	}
	w.expect(group1, "memberCount", now)
}

func TestAChangedMirrorRuleTakesItsItemsOver(t *testing.T) {
	w := newWorld(t, socialRules)
	w.social()
	from := w.drain(w.seeded(), 0)
	member := change.Key{Partition: "GROUP#g0", Sort: "USER#u0"}
	e := w.changing(withRule(t, socialRules, "member-list", `member-list: { mirror: Membership, as: Member, attributes: [role, weight] }`),
		nil)
	w.update(member, change.Item{"note": s("the application's")}) // before anything of the new rule is there
	from = w.drain(e, from)
	w.expect(member, "role", s("admin"))
	w.expect(member, "joinedAt", s("2026"))
	w.replay(e)
	for _, r := range w.records()[from:] {
		if r.New == nil {
			t.Errorf("%s was deleted on the way", r.Key)
		}
	}
	w.drain(e, from)
	w.expect(member, "note", s("the application's"))
	w.expect(member, "weight", change.Number("3"))
	w.expect(member, "joinedAt", change.Value{})
	w.expectTrue()
}

const lastRules = `
version: 1
table: { keys: [pk, sk] }
entities:
  Order:  { key: { pk: "CUSTOMER#${customerId}", sk: "ORDER#${orderId}" } }
  Ticket: { key: { pk: "CUSTOMER#${customerId}", sk: "TICKET#${ticketId}" } }
  Last:   { key: { pk: "LAST#${customerId}", sk: "THING" } }
rules:
  last: { mirror: Order, as: Last, attributes: [total] }
`

// TestAMirrorKeyThatAnotherSourceGives changes what the mirror items under the same keys are made from.
func TestAMirrorKeyThatAnotherSourceGives(t *testing.T) {
	w := newWorld(t, lastRules)
	for _, c := range []string{"a", "b", "c"} {
		w.put(change.Item{"pk": s("CUSTOMER#" + c), "sk": s("ORDER#1"), "total": change.Number("5")})
		w.put(change.Item{"pk": s("CUSTOMER#" + c), "sk": s("ORDER#2"), "total": change.Number("7")})
	}
	w.put(change.Item{"pk": s("CUSTOMER#a"), "sk": s("TICKET#1"), "total": change.Number("9"), "title": s("help")})
	own := change.Key{Partition: "LAST#d", Sort: "THING"}
	w.put(change.Item{"pk": s(own.Partition), "sk": s(own.Sort), "total": change.Number("1")}) // made by the application
	from := w.drain(w.seeded(), 0)
	w.expectTrue()
	e := w.changing(withRule(t, lastRules, "last", "last: { mirror: Ticket, as: Last, attributes: [title] }"), nil)
	w.replay(e)
	from = w.drain(e, from)
	w.expectTrue()
	w.expect(change.Key{Partition: "LAST#a", Sort: "THING"}, "title", s("help"))
	w.expect(change.Key{Partition: "LAST#a", Sort: "THING"}, "total", change.Value{})
	if got := w.get(change.Key{Partition: "LAST#b", Sort: "THING"}); got != nil {
		t.Errorf("the mirror item of a former rule is still there: %v", got)
	}
	w.expect(own, "total", change.Number("1"))
	e = w.changing(lastRules, nil)
	w.replay(e)
	w.drain(e, from)
	w.expectTrue()
}

// TestRulesThatFindByAUniqueValueComeAgain takes the locators of a former rule for no rule's.
func TestRulesThatFindByAUniqueValueComeAgain(t *testing.T) {
	w := newWorld(t, shopRules)
	post := change.Key{Partition: "USER#u1", Sort: "POST#p1"}
	w.put(change.Item{"PK": s("USER#u1"), "SK": s("POST#p1"), "EntityType": s("Post"), "slug": s("hello")})
	w.put(change.Item{"PK": s("USER#u1"), "SK": s("POST#p0"), "EntityType": s("Post"), "slug": s("hello")}) // the smallest key shows the count
	w.put(change.Item{"PK": s("USER#u2"), "SK": s("LIKE#l1"), "EntityType": s("Like"), "target": s("hello")})
	from := w.drain(w.seeded(), 0)
	w.expect(post, "LikeCount", change.Value{})
	without := withRule(t, shopRules, "like-count", "")
	e := w.changing(without, nil) // without a replay
	from = w.drain(e, from)
	w.delete(change.Key{Partition: "USER#u1", Sort: "POST#p0"})
	from = w.drain(e, from)
	e = w.changing(shopRules, nil)
	w.replay(e)
	w.drain(e, from)
	w.expect(post, "LikeCount", change.Number("1"))
	w.expectTrue()
}

func TestARuleWhoseFileIsNotKeptCannotChange(t *testing.T) {
	w := newWorld(t, socialRules)
	w.social()
	w.drain(w.seeded(), 0)
	var whole []change.Item
	for _, row := range w.scan("app-dynamill") {
		if row["pk"].Text() != "registry" || !strings.HasPrefix(row["sk"].Text(), "rule/") {
			continue
		}
		whole = append(whole, row)
		without := maps.Clone(row)
		delete(without, "file") // as another program may
		w.putState(without)
	}
	next := withRule(t, socialRules, "member-count", "")
	if _, err := w.tryChanging(next, nil); !errors.As(err, new(*table.SetupError)) {
		t.Fatalf("changing a rule whose file is not kept: %v", err)
	}
	for _, row := range whole { // the remedy: a backup
		w.putState(row)
	}
	w.replay(w.changing(next, nil))
	w.expectNone("memberCount")
}

// TestWhatFormerRulesKeptInTheStateTableGoes leaves a task, something parked and corrections of rules that are removed.
func TestWhatFormerRulesKeptInTheStateTableGoes(t *testing.T) {
	w, open := crowd(t)
	e := open(w.sim)
	from := w.drain(e, 0)
	w.put(comment("bad", change.Item{"userId": s("a#b"), "score": s("many")}))
	w.update(change.Key{Partition: "POST#p1", Sort: "COMMENT#c01"}, change.Item{"userName": s("Zoe")}) // a correction
	w.rename("Bob")
	from = w.drain(e, from)
	w.expectTasks(e, 1)
	w.expectParked(e, "comment-author/POST#p1/COMMENT#bad", "comment-score/POST#p1/COMMENT#bad")
	next := withRule(t, withRule(t, socialRules, "comment-author", ""), "comment-score", "")
	ne := w.changing(next, nil)
	if did, err := ne.WorkTasks(w.ctx); err != nil || did.Pieces != 1 {
		t.Errorf("ending the task of a former rule took %d pieces, %v", did.Pieces, err)
	}
	w.expectTasks(ne, 0)
	if got := w.inspect(); len(got.Tasks) != 0 || got.Live() {
		t.Errorf("inspected: %+v", got)
	}
	if err := ne.RetryParked(w.ctx, parkedID("comment-score/POST#p1/COMMENT#bad")); err != nil {
		t.Fatal(err)
	}
	w.expectParked(ne, "comment-author/POST#p1/COMMENT#bad")
	if did, err := e.WorkTasks(w.ctx); err != nil || did.Pieces != 0 {
		t.Errorf("a worker of older rules finds %d pieces of tasks, %v", did.Pieces, err)
	}
	w.replay(ne)
	w.drain(ne, from)
	w.expectParked(ne)
	w.expectNone("userName", "userAvatar", "_dm_comment-author", "_dm_comment-score", "score2")
	w.expectTrue()
	if got := w.inspect(); !got.Live() {
		t.Errorf("inspected: %+v", got)
	}
}

// TestWhatTheApplicationWroteOverAFormerRuleStays overwrites an attribute after its rule was removed.
func TestWhatTheApplicationWroteOverAFormerRuleStays(t *testing.T) {
	w := newWorld(t, socialRules)
	w.social()
	from := w.drain(w.seeded(), 0)
	e := w.changing(withRule(t, socialRules, "member-count", ""), nil)
	w.update(group1, change.Item{"memberCount": change.Number("1000")})
	w.replay(e)
	w.drain(e, from)
	w.expect(group1, "memberCount", change.Number("1000"))
	w.expectNone("_dm_member-count")
}

// TestAnItemThatLostItsStampIsNotDeletedWithItsFormerRule saves a mirror item whole: it is the application's then.
func TestAnItemThatLostItsStampIsNotDeletedWithItsFormerRule(t *testing.T) {
	w := newWorld(t, socialRules)
	w.social()
	from := w.drain(w.seeded(), 0)
	e := w.changing(withRule(t, withRule(t, socialRules, "member-list", ""), "member-name", ""), nil)
	member := change.Key{Partition: "GROUP#g1", Sort: "USER#u1"}
	w.put(change.Item{"pk": s(member.Partition), "sk": s(member.Sort), "role": s("admin")})
	w.replay(e)
	w.drain(e, from)
	w.expect(member, "role", s("admin"))
	if got := w.get(change.Key{Partition: "GROUP#g1", Sort: "USER#u2"}); got != nil {
		t.Errorf("the mirror item of a former rule is still there: %v", got)
	}
	w.expectTrue()
}
