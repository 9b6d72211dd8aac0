package histories

import (
	"regexp"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/proof/adversary"
)

// names is a rule whose children lie elsewhere than their parents, so that they are found by references.
const names = `version: 1
table: { keys: [pk, sk] }
entities:
  User:    { key: { pk: "USER#${userId}", sk: "PROFILE" } }
  Comment: { key: { pk: "POST#${postId}", sk: "COMMENT#${commentId}" } }
rules:
  author: { copy: name as userName, from: User, to: Comment, by: userId }
`

// What the schedules of copies put. Of two shards, users' records come by one and comments' by the other.
const (
	userA     = "pk=USER#a, sk=PROFILE, name="
	userB     = "pk=USER#b, sk=PROFILE, name="
	comment   = "pk=POST#r, sk=COMMENT#c, userId="
	later     = "pk=POST#r, sk=COMMENT#d, userId="
	onComment = `app\(POST#r/COMMENT#c\)`
)

// step is something that the application does after a number of calls.
func step(turns int, k Kind, text string) Step {
	return Step{Turns: turns, Kind: k, Items: []change.Item{row(text)}}
}

// handles gives comments the names of users whom they know by their handle alone.
const handles = `
version: 1
table: { keys: [pk, sk] }
entities:
  User:    { key: { pk: "USER#${userId}", sk: "PROFILE" }, unique: handle }
  Comment: { key: { pk: "POST#${postId}", sk: "COMMENT#${commentId}" } }
rules:
  author: { copy: [name as userName], from: User, to: Comment, by: { handle: author } }
`

// valueSchedules are those for copies from parents that are known by a unique value.
func valueSchedules() []schedule {
	const comment = "pk=POST#p, sk=COMMENT#c, author=h"
	user := func(handle, name string) Step {
		return puts("pk=USER#u, sk=PROFILE, handle=" + handle + ", name=" + name)
	}
	return []schedule{{
		guard: "ValueRelocated", name: "a user takes the handle that a comment names", rules: handles,
		steps: []Step{puts(comment), user("x", "ada"), user("h", "ada"), {Turns: Rest, Kind: Judge}},
	}, {
		// A sleeper is about to write the second name. The user has the first one again when another worker comes to that record, and
		// the comment holds it already.
		guard: "ValueRaised", name: "a sleeper writes a name that a user gave up again", rules: handles, taken: true,
		steps: []Step{
			user("h", "ada"), puts(comment), user("h", "bob"), {Turns: Struck, Kind: Put, Items: user("h", "ada").Items},
			befalls(adversary.Woke), {Turns: Rest, Kind: Judge},
		},
		strikes: []adversary.Strike{at(`^UpdateItem app\(POST#p/COMMENT#c\).*userName = bob`, 0, adversary.Froze)},
	}, {
		// All are older than the stream, and a scan finds some of the comments before the user.
		guard: "ValueSeeded", name: "comments are seeded before their user", rules: handles, old: 4, pageMax: 1,
		steps: []Step{
			user("h", "ada"), puts(comment), puts("pk=POST#q, sk=COMMENT#c, author=h"), puts("pk=POST#r, sk=COMMENT#c, author=h"),
			{Turns: Rest, Kind: Judge},
		},
	}}
}

func copySchedules() []schedule {
	return []schedule{
		{
			// The fill has read the user's old name. Before it goes on the user is
			// renamed, and the fan-out looks for references: it has to find one.
			guard: "ReferenceFirst", name: "a user is renamed while a comment is filled", rules: names, shards: 2,
			steps: []Step{
				puts(userA + "old"), puts(comment + "a"), puts(userA + "new"),
				befalls(adversary.Woke),
			},
			strikes: []adversary.Strike{holds(`^UpdateItem `+onComment+` SET`, 0)},
		},
		{
			// A worker has found the comment elsewhere and falls asleep before it prunes
			// the reference. Then the comment is the user's again, with a new reference.
			guard: "PrunePosition", name: "a sleeper prunes a reference that was put again", rules: names,
			steps: []Step{
				puts(userA + "old"), puts(userB + "b"), puts(comment + "a"),
				puts(userA + "newer"), step(0, Put, comment+"b"),
				puts(comment + "a"),
				befalls(adversary.Woke), puts(userA + "newest"),
			},
			strikes: []adversary.Strike{at(`^DeleteItem app-dynamill\(.*COMMENT#c\) IF \(*a = `, 0, adversary.Froze)},
		},
		{
			// A worker falls asleep before it drops the reference to the user that the
			// comment left. Then the comment is that user's again, with a new reference.
			guard: "ReferencePosition", name: "a sleeper drops a reference that was put again", rules: names,
			steps: []Step{
				puts(userA + "old"), puts(userB + "b"), puts(comment + "a"), puts(comment + "b"), puts(comment + "a"),
				befalls(adversary.Woke), puts(userA + "new"),
			},
			strikes: []adversary.Strike{at(`^DeleteItem app-dynamill\(.*USER#a.*COMMENT#c\) IF `, 0, adversary.Froze)},
		},
		{
			// Two sleepers of two renamings. The first, before it raises the user's position,
			// would take it back, and a new comment's name is stamped as that old. Then the
			// second, which has yet to look for comments, holds its old name for a later one.
			guard: "ParentHigher", name: "a sleeper takes the user's position back for another sleeper", rules: names, taken: true,
			steps: []Step{
				puts(userA + "first"), puts(comment + "a"),
				puts(userA + "second"), puts(userA + "third"), puts(userA + "fourth"),
				befalls(adversary.Woke), puts(later + "a"),
				befalls(adversary.Woke), befalls(adversary.Restart),
			},
			strikes: []adversary.Strike{
				at(`^UpdateItem app-dynamill\(parent/`, 1, adversary.Froze),
				at(`^Query app-dynamill .*ref/[^/]*/USER#a`, 2, adversary.Froze),
			},
		},
		{
			// A sleeper has yet to look for the comments of a renaming. The next one has
			// looked, and is about to raise the position, when a comment is filled: below
			// the sleeper's position, so that it would take the comment back.
			guard: "ParentRaised", name: "a comment comes after a fan-out that has not raised the position", rules: names, shards: 2, taken: true,
			steps: []Step{
				puts(userA + "old"), puts(comment + "a"), puts(userA + "newer"),
				step(Struck, Put, userA+"newest"), puts(later + "a"),
				befalls(adversary.Woke), befalls(adversary.Woke),
			},
			strikes: []adversary.Strike{
				at(`^Query app-dynamill .*ref/[^/]*/USER#a`, 1, adversary.Froze),
				holds(`^UpdateItem app-dynamill\(parent/[^/]*/USER#a`, 1),
				{ // else the sleeper fills the comment itself
					Call: regexp.MustCompile(`^BatchGetItem app\(POST#r/COMMENT#d\), app-dynamill\(parent`), Skip: 1, Fault: adversary.CrashedBefore,
					May: true,
				},
			},
		},
		{
			// A task is about to save its place behind the second comment. Meanwhile the user
			// is renamed again, and the new task's place is behind the first.
			guard: "TaskUnmoved", name: "a task is saved when a later one has taken its place", rules: names, fanOutMax: 1,
			steps: []Step{
				puts(userA + "old"), puts(comment + "a"), puts(later + "a"), puts("pk=POST#r, sk=COMMENT#e, userId=a"),
				puts(userA + "newer"), puts(userA + "newest"), befalls(adversary.Woke),
			},
			strikes: []adversary.Strike{holds(`^UpdateItem app-dynamill\(tasks`, 0)},
		},
		{
			// A task has read the user, which is renamed again. A new comment is filled with that,
			// at the task's position, before the task looks for comments.
			guard: "TaskLater", name: "a task finds a comment that was filled with a newer name", rules: names, shards: 2, fanOutMax: 1,
			steps: []Step{
				puts(userA + "old"), puts(comment + "a"), puts(userA + "newer"),
				step(Struck, Put, userA+"newest"), step(Struck, Put, later+"a"),
				befalls(adversary.Woke), befalls(adversary.Woke),
			},
			strikes: []adversary.Strike{
				holds(`^Query app-dynamill .*ref/[^/]*/USER#a`, 2),
				holds(`^UpdateItem app-dynamill\(parent/[^/]*/USER#a`, 2),
			},
		},
		{
			// A task cuts the second comment off as a range. The worker crashes when the task's place is behind it.
			guard: "RangeCut", name: "a worker crashes while it cuts a range off", rules: names, fanOutMax: 1, rangesMin: 1,
			steps: []Step{
				puts(userA + "old"), puts(comment + "a"), puts(later + "a"), puts("pk=POST#r, sk=COMMENT#e, userId=a"), puts(userA + "new"),
			},
			strikes: []adversary.Strike{{ // the range is kept by a call of its own only without the guard
				Call: regexp.MustCompile(`^PutItem app-dynamill.*range#`), Fault: adversary.CrashedBefore, May: true,
			}},
		},
		{
			// The fill reads the user's position and the user. Between the two the user is
			// renamed and the fan-out comes by. The old name under the new position is taken
			// for another program's write, over and over: a fight without an opponent is parked.
			guard: "ParentPosition", name: "a user is renamed between the reads of a fill", rules: names, shards: 2, healsMax: 1,
			steps: []Step{
				puts(userA + "old"), puts(comment + "a"), puts(userA + "new"),
				befalls(adversary.Woke), {Turns: Rest, Kind: Judge},
			},
			strikes: []adversary.Strike{holds(`^BatchGetItem app-dynamill.*, `+onComment+`|^BatchGetItem `+onComment+`, app-dynamill`, 0)},
		},
		{
			// A worker has seen that the comment cannot name its user, and falls asleep
			// before it parks it. Meanwhile the comment becomes good.
			guard: "ParkedAsSeen", name: "a sleeper parks a comment that has become good", rules: names,
			steps: []Step{
				puts(userA + "old"), puts(comment + "a#b"), puts(comment + "a"),
				befalls(adversary.Woke), befalls(adversary.Restart),
			},
			strikes: []adversary.Strike{at(`^TransactWriteItems\s+put app-dynamill \{.*code=`, 0, adversary.Froze)},
		},
	}
}
