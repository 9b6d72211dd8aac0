package histories

import (
	"regexp"

	"github.com/dynamill/dynamill/internal/proof/adversary"
)

// belonging is a rule by which comments, which lie elsewhere, go with their posts.
const belonging = `version: 1
table: { keys: [pk, sk] }
entities:
  Post:    { key: { pk: "POST#${postId}", sk: "METADATA" } }
  Comment: { key: { pk: "USER#${userId}", sk: "COMMENT#${commentId}" } }
rules:
  orphans: { delete: Comment, with: Post, by: postId }
`

// drafts are posts that are told by an attribute: one that becomes a draft is no post any more, and was not deleted.
const drafts = `version: 1
table: { keys: [pk, sk] }
entities:
  Post:    { key: { pk: "POST#${postId}", sk: "METADATA" }, match: { kind: post } }
  Draft:   { key: { pk: "POST#${postId}", sk: "METADATA" }, match: { kind: draft } }
  Comment: { key: { pk: "USER#${userId}", sk: "COMMENT#${commentId}" } }
rules:
  orphans: { delete: Comment, with: Post, by: postId }
`

// slugs are what comments know posts by.
const slugs = `version: 1
table: { keys: [pk, sk] }
entities:
  Post:    { key: { pk: "POST#${postId}", sk: "METADATA" }, unique: slug }
  Comment: { key: { pk: "USER#${userId}", sk: "COMMENT#${commentId}" } }
rules:
  orphans: { delete: Comment, with: Post, by: { slug: about } }
`

// deletionSchedules are those for children that go with their parents. A sleeper's leases are taken, so that another worker comes to the
// same records.
func deletionSchedules() []schedule {
	const (
		post, other = "pk=POST#p, sk=METADATA", "pk=POST#q, sk=METADATA"
		markRead    = `^BatchGetItem app-dynamill\(parent/[^,]*\)$`
		removal     = `^TransactWriteItems\n[^!]*delete app\(USER#u/COMMENT#c\)`
	)
	comment := func(about string) Step { return puts("pk=USER#u, sk=COMMENT#c, " + about) }
	late := puts("pk=USER#u, sk=COMMENT#late, postId=p")
	gone := func(text string) Step { return step(Rest, Delete, text) }
	woken, judged := befalls(adversary.Woke), Step{Turns: Rest, Kind: Judge}
	return []schedule{
		{
			guard: "ParentGone", name: "a post is made again while its comments are deleted", rules: belonging, shards: 2,
			steps:   []Step{puts(post), comment("postId=p"), gone(post), puts(post), woken, judged},
			strikes: []adversary.Strike{holds(removal, 0)},
		},
		{
			// The record by which the post is made again comes late, and a comment before it.
			guard: "FormerHolder", name: "a post is made again with its slug, and the locator does not tell that yet", rules: slugs,
			steps:   []Step{puts(post + ", slug=s"), gone(post), puts(post + ", slug=s"), comment("about=s"), befalls(adversary.HandedOver)},
			strikes: []adversary.Strike{at(`^Apply .*POST#p`, 2, adversary.GivenUp)},
		},
		{
			guard: "ChildStillRefers", name: "a comment moves to another post while it is deleted", rules: belonging, shards: 2,
			steps:   []Step{puts(post), puts(other), comment("postId=p"), gone(post), comment("postId=q"), woken, judged},
			strikes: []adversary.Strike{holds(removal, 0)},
		},
		{
			// A comment comes when the comments were looked up, and the mark is not yet put.
			guard: "MarkFirst", name: "a comment comes while its post's deletion is marked", rules: belonging, shards: 2,
			steps:   []Step{puts(post), gone(post), comment("postId=p"), woken, judged},
			strikes: []adversary.Strike{holds(`^UpdateItem app-dynamill\(parent/`, 0)},
		},
		{
			guard: "ReferenceFirst", name: "a post is deleted while a comment's reference is put", rules: belonging, shards: 2,
			steps:   []Step{puts(post), comment("postId=p"), gone(post), woken, judged},
			strikes: []adversary.Strike{holds(`^PutItem app-dynamill \{.*pk=ref/`, 0)},
		},
		{
			guard: "MarkNeeded", name: "a comment comes before its post", rules: belonging,
			steps: []Step{comment("postId=p"), judged, puts(post)},
		},
		{
			// The first sleeper is about to mark the first deletion, the second to clear that mark, as the post was made again. Then the
			// post is deleted for good.
			guard: "MarkHigher", name: "a sleeper takes the mark of a deletion back for another sleeper", rules: belonging, taken: true,
			steps: []Step{puts(post), gone(post), puts(post), gone(post), woken, woken, late, judged},
			strikes: []adversary.Strike{
				at(`^UpdateItem app-dynamill\(parent/`, 0, adversary.Froze), at(markRead, 1, adversary.Froze),
			},
		},
		{
			guard: "MarkOlder", name: "a sleeper clears the mark of a later deletion", rules: belonging, taken: true,
			steps:   []Step{puts(post), gone(post), puts(post), gone(post), woken, late, judged},
			strikes: []adversary.Strike{at(markRead, 1, adversary.Froze)},
		},
		{
			guard: "MarkAsRead", name: "a sleeper clears a mark that is another one by then", rules: belonging, taken: true,
			steps:   []Step{puts(post), gone(post), puts(post), gone(post), woken, late, judged},
			strikes: []adversary.Strike{at(`^UpdateItem app-dynamill\(parent/.* REMOVE deleted`, 0, adversary.Froze)},
		},
		{
			// The post is made again and becomes a draft before another worker comes to its deletion.
			guard: "MarkHeld", name: "a sleeper is about to delete a comment of a post that was made again and became a draft", rules: drafts,
			taken: true,
			steps: []Step{
				puts(post + ", kind=post"), comment("postId=p"), gone(post), step(Struck, Put, post+", kind=post"), step(0, Put, post+", kind=draft"),
				woken, judged,
			},
			strikes: []adversary.Strike{at(removal, 0, adversary.Froze)},
		},
		{
			guard: "RemovalOnly", name: "a post becomes a draft", rules: drafts,
			steps: []Step{puts(post + ", kind=post"), comment("postId=p"), puts(post + ", kind=draft"), judged},
		},
		{
			guard: "LateDeletion", name: "the record by which a post becomes a draft comes late", rules: drafts,
			steps: []Step{puts(post + ", kind=post"), comment("postId=p"), puts(post + ", kind=draft"), befalls(adversary.HandedOver), judged},
			strikes: []adversary.Strike{
				at(`^Apply .*POST#p`, 1, adversary.GivenUp),
			},
		},
		{
			// The scan for a new rule is held up, and has not come to the other post with the slug.
			guard: "ValueAwaitsSeeding", name: "a post is deleted while the scan has not seen another one with its slug", rules: slugs,
			old: 2, fanOutMax: 100, steps: []Step{
				puts(post + ", slug=s"), puts(other + ", slug=s"), comment("about=s"), gone(post),
				{Turns: 100, Kind: Befall, Fault: adversary.Woke}, judged, // until then, the task is left
			},
			strikes: []adversary.Strike{holds(`^Scan app `, 0)},
		},
		{
			// A worker that comes to the first post has read that it has the slug. Then it is deleted.
			guard: "MarkBeforeLocator", name: "a sleeper clears the mark of a slug that a deleted post had", rules: slugs, taken: true,
			steps:   []Step{puts(post + ", slug=s"), gone(post), woken, comment("about=s"), judged},
			strikes: []adversary.Strike{{Call: regexp.MustCompile(markRead), Skip: 1, Fault: adversary.Froze, May: true}},
		},
	}
}
