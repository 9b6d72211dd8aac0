package histories

import (
	"github.com/dynamill/dynamill/internal/proof/adversary"
)

// efforts sum a number of tasks that may be no number.
const efforts = `
version: 1
table: { keys: [pk, sk] }
entities:
  Team: { key: { pk: "TEAM#${teamId}", sk: "INFO" } }
  Task: { key: { pk: "TASK#${taskId}", sk: "INFO" } }
rules:
  effort: { sum: effort, of: Task, as: Team.effort, by: teamId }
`

// mirroredOrders sum up mirror items, as efforts with one step between.
const mirroredOrders = `
version: 1
table: { keys: [pk, sk] }
entities:
  Line:    { key: { pk: "LINE#${lineId}", sk: "INFO" } }
  ByOrder: { key: { pk: "ORDER#${orderId}", sk: "LINE#${lineId}" } }
  Post:    { key: { pk: "POST#${postId}", sk: "INFO" } }
rules:
  lines:   { mirror: Line, as: ByOrder, by: orderId, attributes: [amount, postId] }
  amounts: { sum: amount, of: ByOrder, as: Post.amount, by: postId }
`

// lateSchedules are those for records that are not applied but rederived: of
// batches that were given up, and those that cannot be read.
func lateSchedules() []schedule {
	handedOver, woken, judged := befalls(adversary.HandedOver), befalls(adversary.Woke), Step{Turns: Rest, Kind: Judge}
	task := func(text string) Step { return puts("pk=TASK#1, sk=INFO, " + text) }
	givenUp := func(item string, skip int) adversary.Strike { return at(`^Apply .*`+item, skip, adversary.GivenUp) }
	return []schedule{
		{
			// Time runs out when the task is not counted in any more, and the team still shows
			// it. The task comes back with what is no number, and tells of no team.
			guard: "LateTouch", name: "time runs out before a sum is shown, and the item's next record does not tell of it", rules: efforts,
			steps: []Step{
				puts("pk=TEAM#a, sk=INFO"), task("teamId=a, effort=#3"), step(Rest, Delete, "pk=TASK#1, sk=INFO"),
				task("teamId=a, effort=much"), handedOver, judged,
			},
			strikes: []adversary.Strike{at(`^BatchGetItem app-dynamill\(sum/[^/]*/TEAM#a`, 2, adversary.GivenUp)},
		},
		{
			// The same of a sum of mirror items: a record that the engine itself makes is given up.
			guard: "LateTouch", name: "time runs out before a sum of mirror items is shown", rules: mirroredOrders,
			steps: []Step{
				puts("pk=POST#p, sk=INFO"), puts("pk=LINE#1, sk=INFO, orderId=o, postId=p, amount=#3"), step(Rest, Delete, "pk=LINE#1, sk=INFO"),
				puts("pk=LINE#1, sk=INFO, orderId=o, postId=p, amount="), handedOver, judged,
			},
			strikes: []adversary.Strike{at(`^BatchGetItem app-dynamill\(sum/[^/]*/POST#p`, 2, adversary.GivenUp)},
		},
		{
			// A worker sleeps when it is about to count a task. Meanwhile the task's record and
			// that of its deletion are given up: the worker that was handed them finds neither item
			// nor entry. The sleeper must find that the ledger has got further.
			guard: "LateRaised", name: "a sleeper counts an item that is gone when its records are handed over", rules: teamRules,
			steps: []Step{
				puts("pk=TEAM#a, sk=INFO"), task("teamId=a"), step(Rest, Delete, "pk=TASK#1, sk=INFO"),
				handedOver, handedOver, woken, judged,
			},
			strikes: []adversary.Strike{
				at(`^TransactWriteItems\n      put app-dynamill \{.*TASK#1`, 0, adversary.Froze),
				givenUp("TASK#1", 1), givenUp("TASK#1", 1), // the second one does not see the first one strike
			},
		},
		{
			// The record of the deletion cannot be read: the same without its images.
			guard: "LateRaised", name: "a sleeper counts an item that is gone when the record of that could not be read", rules: teamRules,
			steps: []Step{
				puts("pk=TEAM#a, sk=INFO"), task("teamId=a"), step(Rest, Delete, "pk=TASK#1, sk=INFO"), woken, judged,
			},
			strikes: []adversary.Strike{
				at(`^TransactWriteItems\n      put app-dynamill \{.*TASK#1`, 0, adversary.Froze),
				givenUp("TASK#1", 1), at(`^Process .*TASK#1`, 2, adversary.Unreadable),
			},
		},
		{
			// A worker sleeps when it is about to raise the user's position for a renaming, which
			// is given up, and so is the next. Handed over, that one fills the comment. The
			// sleeper must find that the user has got further.
			guard: "LateParentRaised", name: "a sleeper takes a comment back to a name from before a late one", rules: names, taken: true,
			steps: []Step{
				puts(userA + "old"), puts(comment + "a"), puts(userA + "newer"), puts(userA + "newest"),
				handedOver, handedOver, woken, judged,
			},
			strikes: []adversary.Strike{
				at(`^UpdateItem app-dynamill\(parent/[^/]*/USER#a`, 1, adversary.Froze),
				givenUp("USER#a", 2), givenUp("USER#a", 2),
			},
		},
		{
			// The next renaming's record cannot be read.
			guard: "LateParentRaised", name: "a sleeper takes a comment back to a name from before an unreadable one", rules: names, taken: true,
			steps: []Step{
				puts(userA + "old"), puts(comment + "a"), puts(userA + "newer"), puts(userA + "newest"), woken, judged,
			},
			strikes: []adversary.Strike{
				at(`^UpdateItem app-dynamill\(parent/[^/]*/USER#a`, 1, adversary.Froze),
				givenUp("USER#a", 2), at(`^Process .*USER#a`, 3, adversary.Unreadable),
			},
		},
	}
}
