package histories

import (
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/proof/adversary"
)

// teamRules count tasks, which move between teams.
const teamRules = `
version: 1
table: { keys: [pk, sk] }
entities:
  Team: { key: { pk: "TEAM#${teamId}", sk: "INFO" } }
  Task: { key: { pk: "TASK#${taskId}", sk: "INFO" } }
rules:
  tasks: { count: Task, as: Team.tasks, by: teamId }
`

// effortRules are teamRules with one more rule.
const effortRules = teamRules + "  effort: { sum: effort, of: Task, as: Team.effort, by: teamId }\n"

// slugRules count likes of posts that are found by a unique value.
const slugRules = `
version: 1
table: { keys: [pk, sk] }
entities:
  Post: { key: { pk: "POST#${postId}", sk: "INFO" }, unique: slug }
  Like: { key: { pk: "LIKE#${likeId}", sk: "INFO" } }
rules:
  likes: { count: Like, as: Post.likes, by: { slug: target } }
`

// aggregateSchedules are those for the guards of aggregates.
func aggregateSchedules() []schedule {
	return append(dueMarkSchedules(), schedule{
		guard: "ZeroShown", name: "a team comes, and never has a task",
		rules: teamRules,
		steps: []Step{puts("pk=TEAM#a, sk=INFO")},
	}, schedule{
		// A sleeper is about to show 0 on a new team, which has a task when it wakes.
		guard: "RollupVersion", name: "a sleeper shows 0 on a team that has a task by now",
		rules:   teamRules,
		steps:   []Step{puts("pk=TEAM#a, sk=INFO"), puts("pk=TASK#1, sk=INFO, teamId=a"), befalls(adversary.Woke)},
		strikes: []adversary.Strike{at(`^UpdateItem app\(TEAM#a/INFO\) SET tasks = 0`, 0, adversary.Froze)},
	}, schedule{
		// A sleeper is about to show a count on a post. Meanwhile another post comes whose
		// key is smaller: that one shows it now. No like was added, only the locator changed.
		guard: "LocatorVersion", name: "a sleeper shows a count on a post that lost its slug to another",
		rules: slugRules,
		steps: []Step{
			puts("pk=LIKE#l1, sk=INFO, target=s1"), puts("pk=POST#p2, sk=INFO, slug=s1"),
			puts("pk=POST#p1, sk=INFO, slug=s1"), befalls(adversary.Woke),
		},
		strikes: []adversary.Strike{at(`^UpdateItem app\(POST#p2/INFO\) SET likes = 1`, 0, adversary.Froze)},
	}, schedule{
		// A sleeper is about to show the count of a slug that the post has no more when it wakes.
		guard: "StillGroup", name: "a sleeper shows the count of a slug that the post gave up",
		rules: slugRules,
		steps: []Step{
			puts("pk=LIKE#l1, sk=INFO, target=s1"), puts("pk=POST#p1, sk=INFO, slug=s1"),
			puts("pk=POST#p1, sk=INFO, slug=s2"), befalls(adversary.Woke),
		},
		strikes: []adversary.Strike{at(`^UpdateItem app\(POST#p1/INFO\) SET likes = 1`, 0, adversary.Froze)},
	}, schedule{
		// A worker with newer rules has seeded and shown them, and is about to ask for the
		// checkpoints. The one with older rules applies a task, and must not say it is done.
		guard: "EpochChecked", name: "a worker with older rules says that a record is done",
		rules: effortRules, first: teamRules,
		steps: []Step{
			puts("pk=TEAM#a, sk=INFO"), befalls(adversary.RulesAdded), befalls(adversary.Takeover),
			puts("pk=TASK#1, sk=INFO, teamId=a, effort=#3"), befalls(adversary.Woke),
		},
		strikes: []adversary.Strike{holds(`^Scan app-dynamill-leases`, 2)},
	}, schedule{
		// Whenever the count is corrected, another program overwrites it again.
		guard: "HealBound", name: "another program overwrites a count whenever it is corrected",
		rules: teamRules, healsMax: 3,
		steps: []Step{
			puts("pk=TASK#1, sk=INFO, teamId=a"), puts("pk=TEAM#a, sk=INFO"),
			{Turns: Rest, Kind: Fight, Pick: 1}, {Turns: 6000, Kind: Put, Items: []change.Item{row("pk=TASK#2, sk=INFO, teamId=b")}},
		},
	}, schedule{
		// A seeder sleeps when it has shown the first rule and is about to say so. Another one
		// brings the second rule to life, and crashes before it shows it. Told that nothing is
		// left to be shown, no worker would ever show it: no record asks for it.
		guard: "SeedCursor", name: "a sleeping seeder ends a scan that another has begun",
		rules: effortRules, first: teamRules, old: 2,
		steps: []Step{
			puts("pk=TEAM#a, sk=INFO"), puts("pk=TASK#1, sk=INFO, teamId=a, effort=#5"),
			{Turns: Struck, Kind: Befall, Fault: adversary.RulesAdded},
			{Turns: Struck, Kind: Befall, Fault: adversary.Woke},
		},
		strikes: []adversary.Strike{
			at(`^PutItem app-dynamill \{.*phase=,.*sk=seeding\}`, 0, adversary.Froze),
			at(`^TransactWriteItems\n      update app-dynamill\(registry/table\) ADD live`, 1, adversary.CrashedAfter),
		},
	}, schedule{
		// One worker's seeding is held up while it applies records; another's reading is, while it
		// seeds. The task comes when the rule is live and shown, which the counting worker does not know.
		guard: "LiveAsked", name: "a worker counts that does not know that the rule was shown meanwhile",
		rules: changed(teamRules, "by: teamId", "by: teamId, if_none: absent"), // no record tells of the display
		steps: []Step{puts("pk=TEAM#a, sk=INFO"), befalls(adversary.Takeover), puts("pk=TASK#1, sk=INFO, teamId=a"), {Turns: Rest, Kind: Judge}},
		strikes: []adversary.Strike{
			holds(`^BatchGetItem app-dynamill\(registry/seeding\)`, 0),
			holds(`^Scan app-dynamill-leases`, 2), // the first worker scans twice: before it makes the table, and after
		},
	})
}

// dueMarkSchedules lose records: promise 4 says that the item's next record
// makes up for that, although it does not tell which team is to be shown anew.
func dueMarkSchedules() []schedule {
	moves := func(team string) Step { return puts("pk=TASK#1, sk=INFO, teamId=" + team) }
	lost := Step{Kind: Befall, Fault: adversary.Skipped}
	judged := Step{Turns: Rest, Kind: Judge}
	begin := []Step{puts("pk=TEAM#a, sk=INFO"), puts("pk=TEAM#c, sk=INFO"), moves("a")}
	// The first try of a record that comes after a lost one is always in vain.
	movedTo := func(team string, f adversary.Fault) adversary.Strike {
		return at(`^TransactWriteItems\n      put app-dynamill \{.*\*TEAM#`+strings.ToLower(team), 1, f)
	}
	return []schedule{{
		// The task goes from a to c, but the record says from b: of a it tells nothing. The
		// worker crashes when the task is not counted in a any more, and a still shows it.
		guard: "DueMark", name: "a crash before the team is shown of which the record does not tell",
		rules:   teamRules,
		steps:   append(begin[:3:3], moves("b"), lost, moves("c"), judged),
		strikes: []adversary.Strike{movedTo("c", adversary.CrashedAfter)},
	}, {
		// As before, but the record that was under way when the worker crashed is lost, too. The
		// next one finds the effects that it expects, and must see the mark that stands beside them.
		guard: "DueMarkRead", name: "a record finds what it expects, and a due mark beside it",
		rules: teamRules,
		steps: append(begin[:3:3], moves("b"), lost, moves("c"), Step{Turns: Struck, Kind: Befall, Fault: adversary.Skipped}, moves("d"),
			judged),
		strikes: []adversary.Strike{movedTo("c", adversary.CrashedAfter)},
	}, {
		// A worker sleeps when it has shown a and is about to clear the mark. When it wakes, the
		// mark is another: that of c, which a worker left behind that crashed.
		guard: "DueMarkStays", name: "a sleeper clears a due mark that it did not set",
		rules: teamRules,
		steps: append(begin[:3:3], moves("b"), lost, moves("c"), moves("d"), lost, moves("e"),
			Step{Turns: Struck, Kind: Befall, Fault: adversary.Woke}, judged),
		strikes: []adversary.Strike{
			at(`REMOVE due`, 0, adversary.Froze), movedTo("e", adversary.CrashedAfter),
			at(`REMOVE due`, 1, adversary.CrashedAfter), // the sleeper, before it stores a checkpoint that is trimmed
		},
	}}
}
