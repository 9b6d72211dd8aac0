package projections

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/audits"
	"github.com/dynamill/dynamill/internal/projections/internal/registry"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
)

// What a stamp with its attribute's name, and what a row of the state table beside the keys that
// it names, may take (bytes, docs/state-table.md).
const (
	stampBytesMax = 48
	rowBytesMax   = 40
)

const sizesRules = `
version: 1
table: { keys: [pk, sk] }
entities:
  User:       { key: { pk: "USER#${userId}",   sk: "PROFILE" } }
  Post:       { key: { pk: "POST#${postId}",   sk: "METADATA" } }
  Comment:    { key: { pk: "POST#${postId}",   sk: "COMMENT#${commentId}" } }
  Group:      { key: { pk: "GROUP#${groupId}", sk: "METADATA" } }
  Membership: { key: { pk: "USER#${userId}",   sk: "GROUP#${groupId}" } }
  Member:     { key: { pk: "GROUP#${groupId}", sk: "USER#${userId}" } }
rules:
  number-of-comments-of-a-post:   { count: Comment, as: Post.comments }
  name-of-the-author-of-comments: { copy: name as userName, from: User, to: Comment, by: userId }
  where-the-author-is-from:       { copy: [city as userCity, country as userCountry], from: User, to: Comment, by: userId }
  what-the-author-looks-like:     { copy: [avatar as userAvatar, color as userColor, font as userFont], from: User, to: Comment, by: userId }
  members-of-a-group:             { mirror: Membership, as: Member, attributes: [role, joinedAt] }
`

// TestStampsAndRowsAreSmall prints what stamps and rows take for keys with ids of 36 characters, and sequence
// numbers of 27 digits.
func TestStampsAndRowsAreSmall(t *testing.T) {
	w := newWorld(t, sizesRules)
	id := func(n int) string { return fmt.Sprintf("0190a1b2-c3d4-7e5f-8a6b-%012d", n) }
	user, post, group := "USER#"+id(1), "POST#"+id(2), "GROUP#"+id(3)
	e := w.seeded()
	from := w.drain(e, 0)
	w.put(change.Item{"pk": s(post), "sk": s("METADATA")})
	w.put(change.Item{"pk": s(post), "sk": s("COMMENT#" + id(4)), "userId": s(id(1))})
	w.put(change.Item{"pk": s(user), "sk": s("PROFILE"), "name": s("Ada"), "city": s("London"), "country": s("UK"), "avatar": s("a.png"),
		"color": s("red"), "font": s("serif")})
	w.put(change.Item{"pk": s(user), "sk": s(group), "role": s("admin"), "joinedAt": s("2026-01-01")})
	records := w.records()[from:]
	for range 2 { // what fills the child comes behind what fans out
		for i := range records {
			records[i].Position, _ = change.NewPosition("2026-11-21T08:18:01.878", fmt.Sprintf("442158450000000001745043%03d", i))
		}
		if _, err := e.Process(w.ctx, records); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Rederive(w.ctx, []change.Key{{Partition: post, Sort: "COMMENT#" + id(4)}}); err != nil {
		t.Fatal(err)
	}
	stamps := 0
	for _, item := range w.items() {
		for name, v := range item {
			if !strings.HasPrefix(name, StampPrefix) {
				continue
			}
			stamps++
			rule := e.planner.NameOf(strings.TrimPrefix(name, StampPrefix))
			t.Logf("stamp of %-32s %2d bytes: %s = %s", rule+":", len(name)+len(v.Text()), name, v.Text())
			if len(name)+len(v.Text()) > stampBytesMax {
				t.Errorf("the stamp of %s takes more than %d bytes", rule, stampBytesMax)
			}
		}
	}
	rows := map[string]int{}
	for _, row := range w.scan("app-dynamill") {
		kind, rest, _ := strings.Cut(row["pk"].Text(), "/")
		keys := len(rest) - len("k7/")
		switch kind {
		case "i":
			keys = len(rest)
			for _, v := range row["e"].List() {
				id, effect := stamp.CutDigits(v.Text())
				if keys += len(effect) - len("*"); effect[0] == '=' {
					keys -= len("YLUO")
				}
				if len(id) != 2 {
					t.Errorf("the effect %s", v.Text())
				}
			}
		case "ref":
			keys += len(row["sk"].Text())
		case "sum":
			keys -= len("/0")
		default:
			continue
		}
		rows[kind]++
		size := rowSize(row) - keys
		t.Logf("row %-4s %2d bytes beside its keys, %d in all: %v", kind, size, size+keys, row)
		if size > rowBytesMax {
			t.Errorf("row %s takes more than %d bytes beside its keys", row["pk"].Text(), rowBytesMax)
		}
	}
	if stamps != 5 || rows["i"] != 2 || rows["ref"] != 3 || rows["sum"] != 1 {
		t.Errorf("%d stamps and %v rows", stamps, rows)
	}
}

// rowSize is what a row takes as DynamoDB counts it: names and values, 3 bytes for a map and 1 for each of
// its elements, for a set its members, and for a number 1 byte and 1 for each two digits.
func rowSize(row change.Item) int {
	size := 0
	for name, v := range row {
		size += len(name)
		switch v.Kind() {
		case change.KindMap:
			size += 3 + len(v.Map()) + rowSize(v.Map())
		case change.KindNumber:
			size += 1 + (len(v.Text())+1)/2
		case change.KindStringSet:
			for _, member := range v.List() {
				size += len(member.Text())
			}
		default:
			size += len(v.Text())
		}
	}
	return size
}

func TestRuleIdsAreShortAndNoTwoRulesHaveOne(t *testing.T) {
	taken := map[string]bool{}
	for range 3 {
		for i := range 400 {
			id := registry.FreeID(fmt.Sprintf("rule-%d", i), taken)
			if len(id) > 3 || strings.ContainsAny(id, "/ @") || id[0] == '-' {
				t.Fatalf("the id %q", id)
			}
		}
	}
	if len(taken) != 1200 {
		t.Errorf("%d ids of 1200 rules", len(taken))
	}
	if got, want := registry.FreeID("comment-author", map[string]bool{}), stamp.ShortDigest(2, s("comment-author")); got != want {
		t.Errorf("the id %q, want %q", got, want)
	}
}

func TestStampsAreExplainedInWords(t *testing.T) {
	position, err := change.NewPosition("2026-11-21T08:18:01.878", "442158450000000001745043001")
	if err != nil {
		t.Fatal(err)
	}
	stamped := func(v stamp.Version) change.Value {
		return s(stamp.Stamp{Context: "contexts", Version: v, Digest: "digests0"}.String())
	}
	item := change.Item{"pk": s("POST#1"), "sk": s("COMMENT#2"), "userId": s("1"), stampOf("number-of-comments-of-a-post"): s("garbage"),
		stampOf("name-of-the-author-of-comments"): stamped(stamp.VersionAt(1, position).Rederived(2)),
		stampOf("where-the-author-is-from"):       stamped(stamp.VersionOf(3, 70)),
		stampOf("what-the-author-looks-like"):     stamped(stamp.VersionAt(3, change.Position{}))}
	got := audits.Explain(loadRules(t, sizesRules), change.Record{Key: change.Key{Partition: "POST#1", Sort: "COMMENT#2"}, New: item}).Stamps
	want := []audits.StampLine{
		{Attribute: stampOf("name-of-the-author-of-comments"), Rule: "name-of-the-author-of-comments",
			Says: "rules epoch 1, record 442158450000000001745043001 of stream 2026-11-21T08:18:01.878, filled or rederived since: 2"},
		{Attribute: stampOf("where-the-author-is-from"), Rule: "where-the-author-is-from", Says: "rules epoch 3, 70 operations"},
		{Attribute: stampOf("what-the-author-looks-like"), Rule: "what-the-author-looks-like", Says: "rules epoch 3, no record"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
