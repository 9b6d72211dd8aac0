package histories

import (
	"fmt"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/proof/adversary"
)

// moodRules count the posts of a team for each mood and each tag.
const moodRules = `
version: 1
table: { keys: [pk, sk] }
entities:
  Post: { key: { pk: "POST#${postId}", sk: "INFO" } }
  Team: { key: { pk: "TEAM#${team}", sk: "INFO" } }
rules:
  moods:  { count: Post, as: Team.moods, by: team, per: mood }
  tags:   { count: Post, each: tags as tag, as: Team.tags, by: team, per: tag }
  points: { sum: points, of: Post, as: Team.points, by: team, per: mood }
`

// perSchedules are those for the guards of rules with `per`.
func perSchedules() []schedule {
	moods := []Step{puts("pk=TEAM#a, sk=INFO")}
	for i := range 10 { // nine moods that no post has any more are too many
		moods = append(moods, puts(fmt.Sprintf("pk=POST#1, sk=INFO, team=a, mood=m%d", i)))
	}
	return []schedule{{
		guard: "PerOfZero", name: "a post without points has a mood", rules: moodRules,
		steps: []Step{puts("pk=TEAM#a, sk=INFO"), puts("pk=POST#1, sk=INFO, team=a, mood=calm, points=#0")},
	}, {
		// A sleeper is about to remove moods that no post has. Another post has one of them when it wakes.
		guard: "PerEmptyUnchanged", name: "a sleeper removes a value that a source has again", rules: moodRules,
		steps: append(moods, puts("pk=POST#2, sk=INFO, team=a, mood=m0"), befalls(adversary.Woke)),
		strikes: []adversary.Strike{
			at(`^TransactWriteItems\n.*REMOVE v/m0`, 0, adversary.Froze),
		},
	}, {
		// A sleeper is about to list a team for its many tags. It has three when it wakes.
		guard: "PerListUnchanged", name: "a sleeper lists a team that has few tags by now", rules: moodRules,
		steps: []Step{
			puts("pk=TEAM#a, sk=INFO"), putsTags(101), putsTags(3), befalls(adversary.Woke),
		},
		strikes: []adversary.Strike{at(`^TransactWriteItems\n(.*\n)*.*per.too_many`, 0, adversary.Froze)},
	}}
}

// putsTags puts a post of team a with so many tags.
func putsTags(n int) Step {
	var tags []change.Value
	for i := range n {
		tags = append(tags, change.String(fmt.Sprint("t", i)))
	}
	post := row("pk=POST#1, sk=INFO, team=a")
	post["tags"] = change.List(tags)
	return Step{Turns: Rest, Kind: Put, Items: []change.Item{post}}
}
