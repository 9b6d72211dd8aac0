package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/preview"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/replaying"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/replay/verify"
	"github.com/dynamill/dynamill/internal/sim/emulator"
	"github.com/dynamill/dynamill/internal/sim/worldsize"
)

const belongingRules = `version: 1
table: { keys: [pk, sk] }
entities:
  Post:    { key: { pk: "POST#${postId}", sk: "METADATA" } }
  Comment: { key: { pk: "POST#${postId}", sk: "COMMENT#${commentId}" } }
rules:
  comments: { delete: Comment, with: Post }
`

// newBelongingWorld is a world in which comments go with their posts: so many have one, and two have none.
func newBelongingWorld(t *testing.T, comments int) *world {
	t.Helper()
	w := newEmptyWorld(t, emulator.Simulated(t))
	w.useRules(belongingRules)
	w.createTable(types.StreamViewTypeNewAndOldImages, change.KindString, change.KindString)
	items := []change.Item{key("POST#p", "METADATA"), key("POST#none", "COMMENT#1"), key("POST#none", "COMMENT#2")}
	for i := range comments {
		items = append(items, key("POST#p", fmt.Sprintf("COMMENT#%06d", i)))
	}
	w.put(items...)
	return w
}

func key(pk, sk string) change.Item {
	return change.Item{"pk": change.String(pk), "sk": change.String(sk)}
}

// TestOrphansAreListedAndDeletedOnRequest has two comments whose post never was, and one whose post was deleted while no record told of it.
func TestOrphansAreListedAndDeletedOnRequest(t *testing.T) {
	t.Parallel()
	w := newBelongingWorld(t, 3)
	var plan preview.Plan
	w.mustPrint(&plan, "plan", "--json")
	if r := plan.Rules[0]; r.Orphans == nil || *r.Orphans != 2 || !strings.Contains(strings.Join(r.Details, " "), "--delete-orphans") {
		t.Errorf("the plan says %+v", r)
	}
	w.drain()
	found, summary := w.verifies(ending.ExitDone)
	if len(found) != 2 || summary.Listed != 2 || summary.Drift() != 0 || found[0].Status != verify.Listed || found[0].What != drift.Orphaned {
		t.Errorf("of two orphans: %+v, %+v", found, summary)
	}
	if _, summary := w.verifies(ending.ExitDone, "--repair"); summary.Listed != 2 || summary.Repaired+summary.Deleted != 0 {
		t.Errorf("a repair: %+v", summary)
	}
	if code, stdout, _ := w.call("verify", "--settle", "1s", "--delete-orphans", "--dry-run"); code != ending.ExitDone ||
		!strings.Contains(stdout, "2 orphans would be deleted") || w.items()["POST#none COMMENT#1"] == nil {
		t.Errorf("a dry run: exit code %d\n%s", code, stdout)
	}
	if _, summary := w.verifies(ending.ExitDone, "--delete-orphans"); summary.Deleted != 2 || w.items()["POST#none COMMENT#1"] != nil {
		t.Errorf("after --delete-orphans: %+v", summary)
	}
	if found, _ := w.verifies(ending.ExitDone); len(found) > 0 {
		t.Errorf("and then: %+v", found)
	}
	if code, _, stderr := w.call("verify", "--dry-run"); code != ending.ExitInvalid || !strings.Contains(stderr, "--delete-orphans") {
		t.Errorf("a dry run of nothing: exit code %d, %s", code, stderr)
	}
	if code, stdout, _ := w.call("check"); code != ending.ExitDone || !strings.Contains(stdout, "DELETES Comment items") {
		t.Errorf("check: exit code %d\n%s", code, stdout)
	}

	// A comment that came back although its post's deletion is marked is drift, and a repair deletes it.
	w.delete("POST#p", "METADATA")
	w.drain()
	if w.items()["POST#p COMMENT#000000"] != nil {
		t.Fatal("a comment outlives its post")
	}
	if code, stdout, _ := w.call("explain", "--key", "POST#p/METADATA"); code != ending.ExitDone ||
		!strings.Contains(stdout, "was deleted: what refers to it is deleted, too, until ") {
		t.Errorf("explain --key of a post that was deleted: exit code %d\n%s", code, stdout)
	}
	w.put(key("POST#p", "COMMENT#late"))
	found, _ = w.verifies(ending.ExitDrift, "--lag-max", "1ms")
	if len(found) != 1 || found[0].What != drift.Surplus {
		t.Errorf("a comment of a post that was deleted: %+v", found)
	}
	w.verifies(ending.ExitDone, "--lag-max", "1ms", "--repair")
	if w.items()["POST#p COMMENT#late"] != nil {
		t.Error("it is still there after the repair")
	}
}

// TestChildrenGoAlthoughTheProcessIsKilledThreeTimes asks what would go with a post of 10,000 comments whose deletion is not applied yet.
// Then it kills the process that deletes them, three times, and writes a comment of the deleted post on the way. Items of no post,
// or of another post, stay as they are.
func TestChildrenGoAlthoughTheProcessIsKilledThreeTimes(t *testing.T) {
	t.Parallel()
	comments := worldsize.Of(10_000, 1_000)
	w := newBelongingWorld(t, comments)
	w.put(key("POST#q", "METADATA"), item("POST#q", "COMMENT#1", "text", "Hello"), item("USER#u", "PROFILE", "name", "Ann"))
	w.drain()
	w.delete("POST#p", "METADATA")
	var previewed replaying.Previewed
	w.mustPrint(&previewed, "replay", "--dry-run", "--json")
	if len(previewed.Orphans) != 1 || previewed.Orphans[0].Items != int64(comments+2) || previewed.Changes != 0 {
		t.Errorf("the dry run says %+v", previewed)
	}
	left := w.commentsOf("POST#p")
	if left != comments {
		t.Fatalf("after a dry run %d comments are left of %d", left, comments)
	}
	for kill := range 3 {
		before := left
		cmd, _, stderr := w.command("run", "--worker", "one") // the same name, so that it waits for no lease to expire
		w.must(cmd.Start())
		eventually(t, "the process deletes comments", func() bool {
			left = w.commentsOf("POST#p")
			return left < before
		})
		w.must(cmd.Process.Kill())
		_ = cmd.Wait() // it was killed
		if left = w.commentsOf("POST#p"); left == 0 {
			t.Fatalf("all comments are gone at kill %d, so it shows nothing\n%s", kill+1, stderr)
		}
		t.Logf("killed when %d comments were left", left)
		if kill == 1 {
			w.put(key("POST#p", "COMMENT#late"))
		}
	}
	w.drain()
	want := map[string]change.Item{
		"POST#none COMMENT#1": key("POST#none", "COMMENT#1"), "POST#none COMMENT#2": key("POST#none", "COMMENT#2"),
		"POST#q METADATA": key("POST#q", "METADATA"), "POST#q COMMENT#1": item("POST#q", "COMMENT#1", "text", "Hello"),
		"USER#u PROFILE": item("USER#u", "PROFILE", "name", "Ann"),
	}
	if diff := cmp.Diff(want, w.items()); diff != "" {
		t.Errorf("what is left:\n%s", diff)
	}
}

// commentsOf counts the comments of a post.
func (w *world) commentsOf(post string) (n int) {
	w.t.Helper()
	pages := dynamodb.NewQueryPaginator(w.client, &dynamodb.QueryInput{
		TableName: &w.table, Select: types.SelectCount, ConsistentRead: aws.Bool(true),
		KeyConditionExpression: aws.String("pk = :post AND begins_with(sk, :comment)"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":post": &types.AttributeValueMemberS{Value: post}, ":comment": &types.AttributeValueMemberS{Value: "COMMENT#"},
		},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(w.t.Context())
		w.must(err)
		n += int(page.Count)
	}
	return n
}

// mustPrint runs a command that prints JSON.
func (w *world) mustPrint(into any, args ...string) {
	w.t.Helper()
	code, stdout, stderr := w.call(args...)
	if code != ending.ExitDone {
		w.t.Fatalf("%v: exit code %d\n%s%s", args, code, stdout, stderr)
	}
	if err := json.Unmarshal([]byte(stdout), into); err != nil {
		w.t.Fatalf("%v prints %s: %v", args, stdout, err)
	}
}

// TestDeletionsOnDynamoDBLocal deletes children that lie in their post's collection, that name its key, and that know it by its
// slug alone. A post is told by an attribute.
func TestDeletionsOnDynamoDBLocal(t *testing.T) {
	t.Parallel()
	w := newEmptyWorld(t, emulator.Local(t))
	w.useRules(`version: 1
table: { keys: [pk, sk] }
entities:
  Post:    { key: { pk: "POST#${postId}", sk: "METADATA" }, match: { kind: post }, unique: slug }
  Comment: { key: { pk: "POST#${postId}", sk: "COMMENT#${commentId}" } }
  Note:    { key: { pk: "USER#${userId}", sk: "NOTE#${noteId}" } }
  Like:    { key: { pk: "USER#${userId}", sk: "LIKE#${likeId}" } }
rules:
  comments: { delete: Comment, with: Post }
  notes:    { delete: Note, with: Post, by: postId }
  likes:    { delete: Like, with: Post, by: { slug: about } }
  written:  { count: Note, as: Post.notes, by: postId }
`)
	w.createTable(types.StreamViewTypeNewAndOldImages, change.KindString, change.KindString)
	post := func(id string) change.Item {
		it := key("POST#"+id, "METADATA")
		it["kind"], it["slug"] = change.String("post"), change.String("slug-"+id)
		return it
	}
	child := func(pk, sk, name, value string) change.Item {
		it := key(pk, sk)
		it[name] = change.String(value)
		return it
	}
	for _, id := range []string{"p", "q"} {
		w.put(post(id), key("POST#"+id, "COMMENT#1"), key("POST#"+id, "COMMENT#2"), child("USER#u", "NOTE#"+id, "postId", id),
			child("USER#u", "LIKE#"+id, "about", "slug-"+id))
	}
	w.put(child("USER#u", "LIKE#none", "about", "no such slug"))
	w.drain()
	w.delete("POST#p", "METADATA")
	w.drain()
	w.put(child("USER#u", "LIKE#late", "about", "slug-p"), child("USER#u", "NOTE#late", "postId", "p"), key("POST#p", "COMMENT#late"))
	w.drain()
	draft := post("q")
	draft["kind"] = change.String("draft")
	w.put(draft)
	w.drain()
	var left []string
	for name := range w.items() {
		left = append(left, name)
	}
	slices.Sort(left)
	want := []string{"POST#q COMMENT#1", "POST#q COMMENT#2", "POST#q METADATA", "USER#u LIKE#none", "USER#u LIKE#q", "USER#u NOTE#q"}
	if !slices.Equal(left, want) {
		t.Errorf("left are %v, want %v", left, want)
	}
	w.expectTrue()
	w.expectAudit()
}

// TestMovedParentKeepsItsChildren has an application move a post to another key: one transaction deletes the item and puts it anew.
// Whatever record comes first, the like that knows the post by its slug stays.
func TestMovedParentKeepsItsChildren(t *testing.T) {
	t.Parallel()
	w := newEmptyWorld(t, emulator.Simulated(t))
	w.useRules(`version: 1
table: { keys: [pk, sk] }
entities:
  Post: { key: { pk: "USER#${userId}", sk: "POST#${postId}" }, unique: slug }
  Like: { key: { pk: "USER#${userId}", sk: "LIKE#${likeId}" } }
rules:
  likes: { delete: Like, with: Post, by: { slug: about } }
`)
	w.createTable(types.StreamViewTypeNewAndOldImages, change.KindString, change.KindString)
	post, like := key("USER#ada", "POST#1"), key("USER#ada", "LIKE#1")
	post["slug"], like["about"] = change.String("first"), change.String("first")
	w.put(post, like)
	w.drain()
	post["pk"] = change.String("USER#bob")
	_, err := w.client.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
		{Delete: &types.Delete{TableName: &w.table, Key: keyOf("USER#ada", "POST#1")}},
		{Put: &types.Put{TableName: &w.table, Item: attributes.ItemToTable(post)}},
	}})
	w.must(err)
	w.drain()
	if w.items()["USER#ada LIKE#1"] == nil {
		t.Error("the like went although the post only moved")
	}
	w.delete("USER#bob", "POST#1")
	w.drain()
	if w.items()["USER#ada LIKE#1"] != nil {
		t.Error("the like outlives the post")
	}
}
