package histories

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/internal/proof/adversary"
)

// likesRules count likes by stream position.
const likesRules = `
version: 1
table: { keys: [pk, sk] }
entities:
  Like: { key: { pk: "LIKE#${likeId}", sk: "LIKE" } }
  Post: { key: { pk: "POST#${postId}", sk: "INFO" } }
rules:
  likes: { sum: weight, of: Like, as: Post.likes, by: postId, hot: true }
`

// likes puts likes of a post, one after the other.
func likes(from, to int) (steps []Step) {
	for n := from; n <= to; n++ {
		steps = append(steps, puts(fmt.Sprintf("pk=LIKE#%d, sk=LIKE, postId=a, weight=#%d", n, n)))
	}
	return steps
}

// liking puts likes of a post, one a call.
func liking(from, to int) (steps []Step) {
	for _, s := range likes(from, to) {
		steps = append(steps, after(1, s))
	}
	return steps
}

// after is a step after so many calls.
func after(turns int, s Step) Step {
	s.Turns = turns
	return s
}

// next puts one like after so many calls.
func next(turns, n int) Step { return after(turns, likes(n, n)[0]) }

// befall makes something happen after so many calls.
func befall(turns int, f adversary.Fault) Step { return after(turns, befalls(f)) }

// liked puts a post, and so many likes of it; then other steps follow.
func liked(n int, more ...Step) []Step {
	return append(append([]Step{puts("pk=POST#a, sk=INFO")}, likes(1, n)...), more...)
}

// theCount finds the call with which a count says how far it has read. The first one is that of the empty table.
const theCount = `^PutItem app-dynamill \{pk=counted/`

// aCount finds the call with which a count begins.
const aCount = `^GetItem app-dynamill\(registry/rule/`

// twoLanes finds the call with which the row of a shard is made that has a parent.
const twoLanes = `^BatchGetItem app-dynamill\(lane/FI/2/[^)]*\), app-dynamill\(lane/FI/2`

// hotSchedules are those for the guards of rules that count by stream position.
func hotSchedules() []schedule {
	// A like is changed in the child of the shard in which it came. The parent is set back, and the count begins.
	setBack := liked(1, befalls(adversary.RolledOver), puts("pk=LIKE#1, sk=LIKE, postId=a, weight=#5"), befall(Rest, adversary.SetBack),
		befall(0, adversary.Recounted))
	// Shards a and b roll over while a count scans; the child of a is opened when the count has read beyond its place, and rolls over.
	lanes := `^Query app-dynamill pk = lane/FI/2`
	paged := slices.Concat(
		liked(4, befalls(adversary.Recounted), befall(Struck, adversary.RolledOver), befall(Struck, adversary.RolledOver)), liking(5, 9),
		[]Step{befall(40, adversary.Woke), befall(Struck, adversary.Woke), befall(250, adversary.RolledOver)}, liking(10, 14),
		[]Step{befall(60, adversary.Woke)})
	return []schedule{{
		guard: "FoldShown", name: "a worker crashes between a row and the display", rules: likesRules, steps: liked(1),
		strikes: []adversary.Strike{at(`^UpdateItem app-dynamill\(fold/`, 0, adversary.CrashedAfter)},
	}, {
		guard: "GenerationShown", name: "a like comes while a count is under way", rules: likesRules,
		steps:   liked(2, befalls(adversary.Recounted), next(Struck, 3), befalls(adversary.Woke)),
		strikes: []adversary.Strike{holds(theCount, 1)},
	}, {
		guard: "GenerationStamp", name: "a new generation has fewer operations", rules: likesRules,
		steps:   liked(3, befalls(adversary.Recounted), next(Struck, 4), befalls(adversary.Woke), next(Rest, 5)),
		strikes: []adversary.Strike{holds(theCount, 1)},
	}, {
		guard: "GenerationLoss", name: "the stream drops a like that nobody has read", rules: likesRules,
		steps: liked(1, next(0, 2), befall(0, adversary.Skipped), next(0, 3)),
	}, {
		guard: "GenerationStream", name: "the stream is replaced, and with it goes a like that nobody has read", rules: likesRules,
		steps: liked(1, next(0, 2), befall(0, adversary.Replaced)),
	}, {
		guard: "CountParks", name: "a like that cannot be read is older than the stream", rules: likesRules, old: 2,
		steps: []Step{puts("pk=POST#a, sk=INFO"), puts("pk=LIKE#1, sk=LIKE, postId=a, weight=much")},
	}, {
		guard: "FoldLocates", name: "a post that likes find by its slug is older than the stream",
		rules: strings.Replace(strings.Replace(likesRules, `"INFO" } }`, `"INFO" }, unique: slug }`, 1), "by: postId", "by: { slug: target }", 1),
		old:   2, steps: []Step{puts("pk=POST#a, sk=INFO, slug=s"), puts("pk=LIKE#1, sk=LIKE, target=s, weight=#1")},
	}, {
		guard: "CountLeasesFirst", name: "a like is applied between the scan and the look at the leases", rules: likesRules,
		steps:   liked(1, befalls(adversary.Recounted), next(Struck, 2), befalls(adversary.Woke), next(100, 3)),
		strikes: []adversary.Strike{holds(`^GetItem app-dynamill\(registry/rule/`, 1)},
	}, {
		guard: "CountLeasesAgain", name: "a checkpoint is set back while a count begins, and what follows it is added when the count is over",
		rules: likesRules, workers: 2, seed: 9,
		steps: liked(2, befalls(adversary.Recounted), befall(Struck, adversary.SetBack), befall(Struck, adversary.Woke),
			befall(60, adversary.Woke)),
		strikes: []adversary.Strike{
			holds(`^BatchGetItem app-dynamill\(lane/FI/2`, 0), at(`^UpdateItem app-dynamill\(fold/FI/2`, 0, adversary.Froze),
		},
	}, {
		guard: "CountLate", name: "a worker adds a like before the count that is under way can read it", rules: likesRules, seed: 6,
		steps:   liked(1, befalls(adversary.Recounted), next(Struck, 2), befall(20, adversary.Woke), next(60, 3)),
		strikes: []adversary.Strike{holds(`^Scan app after`, 2), at(`^GetRecords`, 81, adversary.LateRecords)},
	}, {
		guard: "LateRecord", name: "a like that the scan has seen cannot be read until the count is over", rules: likesRules,
		steps:   liked(1, befalls(adversary.Recounted), next(Struck, 2), befall(0, adversary.Woke), befall(250, adversary.Woke)),
		strikes: []adversary.Strike{holds(`^Scan app after`, 2), stalls(`^GetRecords`, 40)},
	}, {
		guard: "CountReadsOn", name: "a worker adds a like before the count looks at its post", rules: likesRules,
		steps:   liked(2, befalls(adversary.Recounted), next(Struck, 3), befall(60, adversary.Woke)),
		strikes: []adversary.Strike{holds(`^Query app-dynamill pk = fold/FI/2`, 0)},
	}, {
		guard: "CountFrom", name: "leases are deleted while a count is under way", rules: likesRules,
		steps:   liked(1, befalls(adversary.Recounted), befall(Struck, adversary.Rewound)),
		strikes: []adversary.Strike{at(theCount, 1, adversary.CrashedBefore)},
	}, {
		guard: "CountChildren", name: "a shard is set back whose child is read", rules: likesRules, steps: setBack, seed: 28,
	}, {
		guard: "CountStart", name: "a shard is set back whose child is read", rules: likesRules, steps: setBack, seed: 28,
	}, {
		guard: "CountTrimmed", name: "a count sleeps until the stream drops a like that came behind its scan", rules: likesRules,
		steps:   liked(1, befalls(adversary.Recounted), next(Struck, 2), befall(40, adversary.Aged), next(0, 3), befall(40, adversary.Woke)),
		strikes: []adversary.Strike{holds(`^Query app-dynamill pk = lane/FI/2`, 0)},
	}, {
		guard: "CountLanes", name: "shards are opened while a count reads their rows in pages", rules: likesRules, shards: 2, steps: paged,
		strikes: []adversary.Strike{
			holds(`^Scan app after`, 2), holds(twoLanes, 0),
			at(lanes, 0, adversary.Unprocessed), at(lanes, 0, adversary.Unprocessed), at(lanes, 0, adversary.Unprocessed), holds(lanes, 0),
		},
	}, {
		// A worker claims the child and sleeps, and no count has begun yet. The parent is set back, counts read both shards, and the worker
		// wakes before the one that reads the parent: with the child's like, the lane they share is behind the parent's likes.
		guard: "LeaseStill", name: "a shard's parent is set back between the claim and the opening", rules: likesRules, workers: 3, seed: 863,
		steps: liked(3, befalls(adversary.RolledOver), next(Rest, 4), befalls(adversary.Recounted), after(Struck, puts("pk=POST#b, sk=INFO")),
			befall(Struck, adversary.SetBack), befall(0, adversary.Woke), befall(0, adversary.Woke), befall(0, adversary.Woke), next(250, 5),
			befall(10, adversary.Woke), befall(60, adversary.Woke)),
		strikes: []adversary.Strike{
			holds(aCount, 3), holds(aCount, 3), holds(aCount, 3),
			at(twoLanes, 0, adversary.Froze),
			at(`^Process .*LIKE#[123]/`, 3, adversary.Froze),
		},
	}, {
		guard: "CountEvicts", name: "an owner sleeps before its checkpoint while rules are counted anew", rules: likesRules, workers: 2,
		steps:   liked(1, next(0, 2), befall(Struck, adversary.Recounted), befall(120, adversary.Woke)),
		strikes: []adversary.Strike{at(`^UpdateItem app-dynamill-leases\(shardId.* checkpoint = 9`, 2, adversary.Froze)},
	}}
}
