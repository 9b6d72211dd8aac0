package preview

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamill/dynamill/internal/sighting"
)

const talliedRules = `version: 1
table: { keys: [pk, sk] }
entities:
  User:       { key: { pk: "USER#${userId}", sk: "PROFILE" } }
  Bot:        { key: { pk: "BOT#${botId}", sk: "PROFILE" }, match: { kind: bot, old: false, level: 3 } }
  Membership: { key: { pk: "USER#${userId}", sk: "GROUP#${groupId}" } }
  Member:     { key: { pk: "GROUP#${groupId}", sk: "USER#${userId}" } }
  Unused:     { key: { pk: "UNUSED#${id}", sk: "X" } }
rules:
  member-list:  { mirror: Membership, as: Member }
  user-groups:  { count: Membership, as: User.groups }
  bot-groups:   { count: Membership, as: Bot.groups, by: { botId: userId } }
`

func TestMatchTallyCountsItemsOfEachEntity(t *testing.T) {
	tally := newMatchTally(loaded(t, talliedRules))
	for _, it := range []struct{ pk, sk string }{
		{"USER#1", "PROFILE"}, {"USER#2", "PROFILE"}, {"user#3", "PROFILE"}, {"user#4", "PROFILE"}, {"BOT#1", "PROFILE"}, {"a", "b"},
		{"USER#1", "GROUP#"},
	} {
		tally.count(item(it.pk, it.sk))
	}
	got := map[string]int{}
	for e, n := range tally.matched {
		got[e.Name] = n
	}
	if diff := cmp.Diff(map[string]int{"User": 2}, got); diff != "" {
		t.Error(diff)
	}
	if tally.items != 7 || tally.unmatched != 5 {
		t.Errorf("%d items, %d unmatched", tally.items, tally.unmatched)
	}
	if diff := cmp.Diff([]string{"user#3/PROFILE", "user#4/PROFILE", "BOT#1/PROFILE"}, sighting.KeyTexts(tally.examples)); diff != "" {
		t.Error(diff)
	}
}

// Member is left out because dynamill makes its items, Unused because no rule has it.
func TestMatchTallyWarnsOfEntitiesWithoutItems(t *testing.T) {
	set := loaded(t, talliedRules)
	tally := newMatchTally(set)
	tally.count(item("user#3", "PROFILE"))
	tally.count(item("BOT#1", "PROFILE"))
	var got []string
	for _, e := range tally.unmet() {
		w := tally.warning(e)
		got = append(got, w.Message+": "+w.Hint)
	}
	want := []string{
		"none of 2 sampled items is a User, which user-groups reads or writes: compare its keys, USER#${userId} / PROFILE, with the table's: " +
			"user#3/PROFILE, BOT#1/PROFILE",
		`none of 2 sampled items is a Bot, which bot-groups reads or writes: its keys fit 1 sampled item of no entity: ` +
			`a Bot needs kind == "bot" and old == false and level == 3, too`,
		"none of 2 sampled items is a Membership, which member-list, user-groups, bot-groups read or write: compare its keys, USER#${userId} " +
			"/ GROUP#${groupId}, with the table's: user#3/PROFILE, BOT#1/PROFILE",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}

	tally = newMatchTally(set)
	tally.count(item("USER#3", "PROFILE"))
	if unmet := tally.unmet(); len(unmet) != 2 || !strings.Contains(tally.warning(unmet[1]).Hint, "a sample may miss entities") {
		t.Errorf("unmet where every item matches: %d entities", len(unmet))
	}
}
