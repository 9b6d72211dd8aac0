package histories

import (
	"fmt"
	"slices"
	"time"

	"github.com/dynamill/dynamill/internal/proof/adversary"
)

// newestRules show the newest posts of a team.
const newestRules = `
version: 1
table: { keys: [pk, sk] }
entities:
  Post: { key: { pk: "POST#${postId}", sk: "INFO" } }
  Team: { key: { pk: "TEAM#${team}", sk: "INFO" } }
rules:
  newest: { last: 2, of: Post, as: Team.newest, attributes: [postId, title], order: at, by: team }
`

// newPosts puts a team, and posts of it one after the other.
func newPosts(from, to int) (steps []Step) {
	if from == 1 {
		steps = append(steps, puts("pk=TEAM#a, sk=INFO"))
	}
	for n := from; n <= to; n++ {
		steps = append(steps, puts(fmt.Sprintf("pk=POST#%d, sk=INFO, team=a, title=t%d, at=#%d", n, n, n)))
	}
	return steps
}

// orderedSchedules are those for the guards of some of many items by their order, and of displays that wait.
func orderedSchedules() []schedule {
	later := func(turns, from int) Step {
		s := newPosts(from, from)[0]
		s.Turns = turns
		return s
	}
	sleepsInRollup := slices.Concat(newPosts(1, 2),
		[]Step{later(Struck, 3), {Turns: Rest, Kind: Befall, Fault: adversary.Woke}})
	return []schedule{{
		// A sleeper has read the posts, and reads the operations when it wakes: another worker has counted one more.
		guard: "MembersLast", name: "a sleeper shows former posts under a later count", rules: newestRules, taken: true,
		steps: slices.Concat(newPosts(1, 3), []Step{befalls(adversary.Woke)}),
		strikes: []adversary.Strike{
			at(`^BatchGetItem app-dynamill\(sum/`, 2, adversary.Froze),
		},
	}, {
		guard: "MemberMoved", name: "a post becomes the oldest", rules: newestRules,
		steps: append(newPosts(1, 3), puts("pk=POST#3, sk=INFO, team=a, title=t3, at=#0")),
	}, {
		guard: "PutOffKept", name: "a second post comes a moment after the first", rules: newestRules, every: time.Hour,
		steps: newPosts(1, 2),
	}, {
		// A roll-up that was put off is held up. Meanwhile the worker puts off the roll-up of the next post.
		guard: "PutOffBegun", name: "a roll-up that is under way ends one on which records rely", rules: newestRules, every: hotEvery,
		steps: sleepsInRollup, strikes: []adversary.Strike{holds(`^UpdateItem app\(TEAM#a/INFO\) SET newest`, 1)},
	}, {
		guard: "PutOffAgain", name: "a roll-up that is under way ends one that was put off again", rules: newestRules, every: hotEvery,
		steps: sleepsInRollup, strikes: []adversary.Strike{holds(`^UpdateItem app\(TEAM#a/INFO\) SET newest`, 1)},
	}}
}

// hotEvery is longer than a worker waits for more records.
const hotEvery = 30 * time.Minute
