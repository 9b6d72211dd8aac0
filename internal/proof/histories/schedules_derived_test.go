package histories

import (
	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/proof/adversary"
)

// tagRules make a tag's item from the posts that name it, and from their likes.
const tagRules = `
version: 1
table: { keys: [pk, sk] }
entities:
  Post: { key: { pk: "POST#${postId}", sk: "INFO" } }
  Tag:  { key: { pk: "TAG#${tag}", sk: "INFO" }, derived: true }
rules:
  posts: { count: Post, as: Tag.posts, by: tag }
`

// likesOfTags are tagRules of which a tag counts the likes alone.
const likesOfTags = `
version: 1
table: { keys: [pk, sk] }
entities:
  Post: { key: { pk: "POST#${postId}", sk: "INFO" } }
  Tag:  { key: { pk: "TAG#${tag}", sk: "INFO" }, derived: true }
rules:
  likes: { sum: likes, of: Post, as: Tag.likes, by: tag }
`

// likedTags are tagRules with the likes of a tag beside the posts.
var likedTags = tagRules + "  likes: { sum: likes, of: Post, as: Tag.likes, by: tag }\n"

// derivedSchedules are those for the guards of derived items.
func derivedSchedules() []schedule {
	return []schedule{{
		// A sleeper is about to make a tag's item. Meanwhile the only post of the tag names another one: when it wakes, no
		// stamp on an item that is not there holds it off.
		guard: "DerivedRows", name: "a sleeper makes an item to which nothing contributes any more",
		rules:   tagRules,
		steps:   []Step{puts("pk=POST#1, sk=INFO, tag=a"), puts("pk=POST#1, sk=INFO, tag=b"), befalls(adversary.Woke)},
		strikes: []adversary.Strike{at(`^TransactWriteItems\n      put app \{.*TAG#a`, 0, adversary.Froze)},
	}, {
		// A sleeper is about to show one post on a tag's item. There are two when it wakes.
		guard: "DerivedVersion", name: "a sleeper shows fewer posts than a tag has by now",
		rules: tagRules,
		steps: []Step{
			puts("pk=POST#1, sk=INFO, tag=a"), puts("pk=POST#2, sk=INFO, tag=a"), puts("pk=POST#3, sk=INFO, tag=a"), befalls(adversary.Woke),
		},
		strikes: []adversary.Strike{at(`^UpdateItem app\(TAG#a/INFO\).* posts = 2`, 0, adversary.Froze)},
	}, {
		// A sleeper is about to put a tag's item in the place of the application's. Newer rules have done so when it wakes.
		guard: "DerivedAsRead", name: "a worker with older rules replaces an item that newer rules wrote meanwhile",
		rules: likedTags, first: tagRules,
		steps: []Step{
			puts("pk=POST#1, sk=INFO, tag=a"), puts("pk=TAG#a, sk=INFO, colour=red"),
			{Turns: Struck, Kind: Befall, Fault: adversary.RulesAdded}, befalls(adversary.Woke),
		},
		strikes: []adversary.Strike{at(`^TransactWriteItems\n +put app \{.*pk=TAG#a`, 1, adversary.Froze)},
	}, {
		// A sleeper is about to show two posts of a tag. When it wakes, newer rules show them without the likes: not what it wants.
		guard: "DerivedLater", name: "a worker with older rules finds an item that newer rules wrote",
		rules: tagRules, first: likedTags, taken: true,
		steps: []Step{
			puts("pk=POST#1, sk=INFO, tag=a"), puts("pk=POST#2, sk=INFO, tag=a"),
			{Turns: Struck, Kind: Befall, Fault: adversary.RulesChanged, Rules: tagRules}, befalls(adversary.Woke),
		},
		strikes: []adversary.Strike{at(`^UpdateItem app\(TAG#a/INFO\).* posts = 2`, 0, adversary.Froze)},
	}, {
		guard: "DerivedOfZero", name: "a post without a like makes a tag's item",
		rules: likesOfTags,
		steps: []Step{puts("pk=POST#1, sk=INFO, tag=a, likes=#0")},
	}, {
		guard: "DerivedLooked", name: "posts that are older than the stream make their tags' items",
		rules: tagRules, old: 2,
		steps: []Step{puts("pk=POST#1, sk=INFO, tag=a"), puts("pk=POST#2, sk=INFO, tag=b"), {Turns: Rest, Kind: Judge}},
	}, {
		// The worker crashes before it comes to the record of the item that it made. The next one finds in one batch that the item
		// came, and that the application wrote over the attribute of one of its rules.
		guard: "DerivedSeen", name: "one batch tells that an item came, and that the application wrote on it", rules: likedTags,
		steps: []Step{
			puts("pk=POST#1, sk=INFO, tag=a, likes=#1"), {Turns: Struck, Kind: Update, Items: []change.Item{row("pk=TAG#a, sk=INFO, posts=#4711")}},
			{Turns: Rest, Kind: Judge},
		},
		strikes: []adversary.Strike{at(`^Process .*TAG#a`, 0, adversary.CrashedBefore)},
	}, {
		guard: "DerivedTold", name: "the application puts its own item in the place of a derived one, and where none belongs",
		rules: tagRules,
		steps: []Step{
			puts("pk=POST#1, sk=INFO, tag=a"), puts("pk=TAG#a, sk=INFO, colour=red"), puts("pk=TAG#b, sk=INFO, posts=#3"),
		},
	}}
}
