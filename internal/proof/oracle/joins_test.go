package oracle

import (
	"testing"

	"github.com/dynamill/dynamill/change"
)

const joinedRules = `version: 1
table: { keys: [pk, sk] }
entities:
  Player: { key: { pk: "PLAYER#${player:lower}", sk: "PLAYER" } }
  Score:  { key: { pk: "BOARD#${game}", sk: "${points:04}#${player:lower}" } }
  Level:  { key: { pk: "LEVEL#${points:03}", sk: "LEVEL" } }
  Fan:    { key: { pk: "FAN#${player}", sk: "FAN" } }
  Team:   { key: { pk: "TEAM#${org}", sk: "TEAM#${team}" }, unique: team }
  Match:  { key: { pk: "MATCH#${team}", sk: "MATCH#${org}" } }
rules:
  scores:  { count: Score, as: Player.scores }
  levels:  { count: Score, as: Level.scores }
  fans:    { count: Score, as: Fan.scores }
  matches: { count: Match, as: Team.matches, by: team }
  home:    { copy: name as homeName, from: Team, to: Match }
  away:    { copy: name as awayName, from: Team, to: Match, by: team }
  seen:    { count: Match, as: Player.seen, by: seenBy }
  first:   { count: Score, as: Fan.firsts, by: { player: "name[0:2]" } }
`

// TestTheOracleReadsJoinsAnew compares what it reads with what a person reads.
func TestTheOracleReadsJoinsAnew(t *testing.T) {
	score := change.Key{Partition: "BOARD#g", Sort: "0042#ann"}
	match := change.Key{Partition: "MATCH#t1", Sort: "MATCH#o1"}
	for name, c := range map[string]struct {
		rule string
		key  change.Key
		item change.Item
		want string
	}{
		"the key's letters":                {"scores", score, change.Item{}, "=PLAYER#ann/PLAYER"},
		"letters of the attribute":         {"fans", score, change.Item{"player": change.String("Ann")}, "=FAN#Ann/FAN"},
		"an attribute that the key is not": {"fans", score, change.Item{"player": change.String("Bob")}, "=FAN#ann/FAN"},
		"letters that the target's key has not": {"scores", score, change.Item{"player": change.String("Ann")},
			"=PLAYER#ann/PLAYER"},
		"a padded number":                 {"levels", score, change.Item{}, "=LEVEL#042/LEVEL"},
		"a number that is too long":       {"levels", change.Key{Partition: "BOARD#g", Sort: "4200#ann"}, change.Item{}, "!number.width"},
		"a unique beside a whole key":     {"matches", match, change.Item{}, "=t1"},
		"a copy by the whole key":         {"home", match, change.Item{}, "=TEAM#o1/TEAM#t1"},
		"a copy by the unique alone":      {"away", match, change.Item{}, "=t1"},
		"the variable that is left":       {"seen", match, change.Item{"seenBy": change.String("Bob")}, "=PLAYER#bob/PLAYER"},
		"an expression":                   {"first", score, change.Item{"name": change.String("Annie")}, "=FAN#An/FAN"},
		"an expression without its value": {"first", score, change.Item{}, ""},
		"an expression of a wrong type":   {"first", score, change.Item{"name": change.Number("5")}, "!value.type"},
	} {
		set := compile(t, joinedRules)
		c.item["pk"], c.item["sk"] = change.String(c.key.Partition), change.String(c.key.Sort)
		table := newTable(set, []change.Item{c.item})
		j := table.joiner()
		entity, values := j.identify(c.key, c.item)
		for _, rule := range set.Rules {
			if theirs, ours := sides(rule); rule.Name == c.rule && ours == entity {
				if got := j.refers(rule, theirs, ours, values, c.item).String(); got != c.want {
					t.Errorf("%s: %q, want %q", name, got, c.want)
				}
			}
		}
		if found := table.joins(); len(found) > 0 {
			t.Errorf("%s: the rules read it otherwise: %v", name, found)
		}
	}
}
