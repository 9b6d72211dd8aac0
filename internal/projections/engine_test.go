package projections

import (
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/registry"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// everyKind holds a value of every DynamoDB type.
func everyKind() change.Item {
	return change.Item{
		"s": s("text"), "n": change.Number("-1.5"), "b": change.Binary([]byte{0, 255, 7}), "t": change.Bool(true), "nil": change.Null(),
		"l":  change.List([]change.Value{s("a"), change.Number("1"), change.Null()}),
		"m":  change.Map(map[string]change.Value{"x": change.Map(map[string]change.Value{"y": s("z")}), "e": s("")}),
		"ss": change.Set(change.KindStringSet, []string{"b", "a"}), "ns": change.Set(change.KindNumberSet, []string{"2", "1"}),
		"bs": change.Set(change.KindBinarySet, []string{"\x00", "\xff"}),
	}
}

func TestValuesOfEveryTypeAreCopiedAndMirroredUnharmed(t *testing.T) {
	names := "s, n, b, t, nil, l, m, ss, ns, bs"
	w := newWorld(t, `
version: 1
table: { keys: [pk, sk] }
entities:
  User:    { key: { pk: "USER#${userId}", sk: "PROFILE" } }
  Comment: { key: { pk: "POST#${postId}", sk: "COMMENT#${commentId}" } }
  Card:    { key: { pk: "CARD#${userId}", sk: "CARD" } }
rules:
  author: { copy: [`+names+`], from: User, to: Comment, by: userId }
  card:   { mirror: User, as: Card, attributes: [`+names+`] }
`)
	user := everyKind()
	user["pk"], user["sk"] = s("USER#u1"), s("PROFILE")
	w.put(user)
	w.put(comment("c1", change.Item{"userId": s("u1")}))
	e := w.seeded()
	w.drain(e, 0)
	for _, key := range []change.Key{{Partition: "POST#p1", Sort: "COMMENT#c1"}, {Partition: "CARD#u1", Sort: "CARD"}} {
		for name, v := range everyKind() {
			w.expect(key, name, v)
		}
	}
	w.expectNoDrift()
}

func TestOnlyTheRulesAttributesAndTheStampAreWritten(t *testing.T) {
	w := newWorld(t, socialRules)
	group := everyKind()
	group["pk"], group["sk"], group["name"] = s("GROUP#g1"), s("METADATA"), s("Dev")
	stranger := everyKind()
	stranger["pk"], stranger["sk"] = s("ELSE#1"), s("X")
	w.put(group)
	w.put(stranger)
	w.put(change.Item{"pk": s("USER#u1"), "sk": s("GROUP#g1"), "role": s("admin")})
	e := w.seeded()
	w.drain(e, 0)
	got := w.get(change.Key{Partition: "GROUP#g1", Sort: "METADATA"})
	for name, v := range group {
		if !got[name].Equal(v) {
			t.Errorf("%s became %v", name, got[name])
		}
	}
	for name := range got {
		if _, ok := group[name]; !ok && name != "memberCount" && name != "adminCount" && !strings.HasPrefix(name, StampPrefix) {
			t.Errorf("%s was added", name)
		}
	}
	if got := w.get(change.Key{Partition: "ELSE#1", Sort: "X"}); len(got) != len(stranger) {
		t.Errorf("an item of no rule became %v", got)
	}
}

func TestMirrorItems(t *testing.T) {
	member := change.Key{Partition: "GROUP#g1", Sort: "USER#u1"}
	source := change.Key{Partition: "USER#u1", Sort: "GROUP#g1"}
	w := newWorld(t, socialRules)
	e := w.seeded()
	w.put(change.Item{"pk": s(source.Partition), "sk": s(source.Sort), "role": s("admin")})
	from := w.drain(e, 0)
	w.expect(member, "role", s("admin"))

	t.Run("deleted by the application, it comes back", func(t *testing.T) {
		w.delete(member)
		from = w.drain(e, from)
		w.expect(member, "role", s("admin"))
	})
	t.Run("overwritten by the application, it is corrected", func(t *testing.T) {
		w.update(member, change.Item{"role": s("emperor")})
		from = w.drain(e, from)
		w.expect(member, "role", s("admin"))
	})
	t.Run("it goes with its source", func(t *testing.T) {
		stale := w.get(member)
		w.delete(source)
		from = w.drain(e, from)
		if got := w.get(member); got != nil {
			t.Errorf("it is still %v", got)
		}
		w.put(stale) // a read-modify-write put that was late
		from = w.drain(e, from)
		if got := w.get(member); got != nil {
			t.Errorf("put back with its stamp, it stays as %v", got)
		}
	})
	t.Run("put back with its stamp over one without, it goes too", func(t *testing.T) {
		w.put(change.Item{"pk": s(source.Partition), "sk": s(source.Sort), "role": s("admin")})
		from = w.drain(e, from)
		stale := w.get(member)
		w.update(member, change.Item{stampOf("member-list"): {}})
		w.delete(source)
		all := w.records()
		if _, err := e.Process(w.ctx, all[len(all)-1:]); err != nil { // the deletion, before the healing
			t.Fatal(err)
		}
		w.put(stale)
		from = w.drain(e, from)
		if got := w.get(member); got != nil {
			t.Errorf("it stays as %v", got)
		}
	})
	t.Run("made by the application, it is never deleted", func(t *testing.T) {
		w.put(change.Item{"pk": s(member.Partition), "sk": s(member.Sort), "own": s("x")})
		from = w.drain(e, from)
		w.expect(member, "own", s("x"))
	})
}

func TestACloneOfACountedItemShowsItsOwnCount(t *testing.T) {
	w := newWorld(t, socialRules)
	e := w.seeded()
	for _, id := range []string{"c1", "c2", "c3"} {
		w.put(comment(id, nil))
	}
	w.put(change.Item{"pk": s("POST#p1"), "sk": s("METADATA")})
	w.put(change.Item{"pk": s("POST#p2"), "sk": s("COMMENT#c1")})
	from := w.drain(e, 0)
	clone := w.get(post1)
	clone["pk"] = s("POST#p2")
	w.put(clone)
	w.drain(e, from)
	w.expect(change.Key{Partition: "POST#p2", Sort: "METADATA"}, "commentCount", change.Number("1"))
	w.expectNoDrift()
}

func TestOpenRefusesWhatItCannotWorkOn(t *testing.T) {
	setup := func(err error) string {
		t.Helper()
		var e *table.SetupError
		if !errors.As(err, &e) || e.Remedy == "" {
			t.Errorf("%v: want a SetupError with a remedy", err)
		}
		return err.Error()
	}
	w := newWorld(t, socialRules)
	_, err := Open(w.ctx, Config{Client: w.sim, Table: "nowhere", Rules: w.set})
	if !strings.Contains(setup(err), "nowhere") {
		t.Errorf("%v does not name the table", err)
	}
	_, err = OpenAttached(w.ctx, Config{Client: w.sim, Table: "app", Rules: w.set})
	setup(err)
	upper := newWorld(t, shopRules)
	_, err = Open(w.ctx, Config{Client: w.sim, Table: "app", Rules: upper.set})
	setup(err)

	w.seeded()
	if _, err := w.sim.DeleteTable(w.ctx, &dynamodb.DeleteTableInput{TableName: new("app")}); err != nil {
		t.Fatal(err)
	}
	again := newWorld(t, socialRules)
	d, err := again.sim.DescribeTable(w.ctx, &dynamodb.DescribeTableInput{TableName: new("app")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.sim.CreateTable(w.ctx, &dynamodb.CreateTableInput{
		TableName: new("app"), KeySchema: d.Table.KeySchema, AttributeDefinitions: d.Table.AttributeDefinitions,
		BillingMode: ddb.BillingModePayPerRequest,
	}); err != nil {
		t.Fatal(err)
	}
	_, err = Open(w.ctx, Config{Client: w.sim, Table: "app", Rules: w.set})
	if !strings.Contains(setup(err), "app-dynamill") {
		t.Errorf("%v does not name the state table", err)
	}
}

func TestRulesUnderARunningTable(t *testing.T) {
	w := newWorld(t, socialRules)
	old := w.seeded()
	open := func(text string) (*Engine, error) {
		return Open(w.ctx, Config{Client: w.sim, Table: "app", Rules: loadRules(t, text)})
	}
	var refused *RulesChangedError
	if _, err := open(strings.Replace(socialRules, `role != "banned"`, `role != "gone"`, 1)); !errors.As(err, &refused) ||
		len(refused.Changed) != 1 || refused.Changed[0] != "member-count" {
		t.Errorf("a changed rule: %v", err)
	}
	if _, err := open(strings.Replace(socialRules, "  comment-count:  { count: Comment, as: Post.commentCount }\n", "", 1)); !errors.As(err,
		&refused) || len(refused.Removed) != 1 {
		t.Errorf("a removed rule: %v", err)
	}
	if e, err := open(strings.Replace(socialRules, "comment-count:", "number-of-comments:", 1)); err != nil ||
		len(e.Describe().NewRules) != 0 {
		t.Errorf("a renamed rule: %v", err)
	}
	irrelevant := []change.Record{{Key: group1, Old: change.Item{"pk": s(group1.Partition), "sk": s(group1.Sort)},
		New: change.Item{"pk": s(group1.Partition), "sk": s(group1.Sort), "motd": s("ho")}}}
	if _, err := old.Process(w.ctx, irrelevant); err != nil {
		t.Errorf("a worker beside a renamed rule: %v", err)
	}
	added := strings.Replace(socialRules, "comment-count:",
		"posts-liked: { count: Comment, as: Group.liked, by: { groupId: tag } }\n  comment-count:", 1)
	e, err := open(strings.Replace(added, "comment-count:", "number-of-comments:", 1))
	if err != nil || len(e.Describe().NewRules) != 1 {
		t.Fatalf("an added rule: %v", err)
	}
	done, err := old.Process(w.ctx, irrelevant)
	var stop interface{ StopReading() bool }
	if done != 0 || !errors.Is(err, registry.ErrEpochMoved) || !errors.As(err, &stop) || !stop.StopReading() {
		t.Errorf("a worker that does not know the added rule: done %d, %v", done, err)
	}
}

func TestMoreWriteShardsKeepEveryContribution(t *testing.T) {
	group := change.Key{Partition: "GROUP#g1", Sort: "METADATA"}
	w := newWorld(t, socialRules)
	w.put(change.Item{"pk": s(group.Partition), "sk": s(group.Sort)})
	for _, u := range []string{"u1", "u2", "u3", "u4", "u5"} {
		w.put(change.Item{"pk": s("USER#" + u), "sk": s("GROUP#g1")})
	}
	from := w.drain(w.seeded(), 0)
	for _, shards := range []string{"8", "1"} {
		w.file = strings.Replace(socialRules, "write_shards: 3", "write_shards: "+shards, 1)
		w.delete(change.Key{Partition: "USER#u" + shards[:1], Sort: "GROUP#g1"})
		w.put(change.Item{"pk": s("USER#v" + shards), "sk": s("GROUP#g1")})
		from = w.drain(w.engine(nil), from)
		w.expectNoDrift()
	}
}
