package preview

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamill/dynamill/change"
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
	if diff := cmp.Diff([]string{"user#3/PROFILE", "user#4/PROFILE", "BOT#1/PROFILE"}, sighting.KeyStrings(tally.examples)); diff != "" {
		t.Error(diff)
	}
}

// TestMatchTallyWarnsOfAttributesThatNoItemHas has one name in other letters, one text without quotes, and one attribute that no item has.
func TestMatchTallyWarnsOfAttributesThatNoItemHas(t *testing.T) {
	tally := newMatchTally(loaded(t, `version: 1
table: { keys: [pk, sk] }
entities:
  User:    { key: { pk: "USER#${userId}", sk: "PROFILE" } }
  Post:    { key: { pk: "POST#${postId}", sk: "METADATA" } }
  Comment: { key: { pk: "POST#${postId}", sk: "COMMENT#${commentId}" } }
rules:
  author:    { copy: [name as userName, level], from: User, to: Comment, by: userID }
  count:     { count: Comment, as: Post.comments, where: status == published && postId != userName }
  published: { count: Comment, as: Post.ofLevel, by: postId, where: 'level > 3 || status == published' }
`))
	for range 3 {
		tally.count(change.Item{"pk": change.String("USER#1"), "sk": change.String("PROFILE"), "name": change.String("Ann")})
		tally.count(change.Item{"pk": change.String("POST#1"), "sk": change.String("COMMENT#1"), "userId": change.String("1"),
			"status": change.String("draft")})
	}
	var got []string
	for _, w := range tally.unseenAttributes() {
		got = append(got, w.Message+": "+w.Hint)
	}
	want := []string{
		"none of 3 sampled items of User has the attribute level, which author reads: a sample may miss what few items have; in an " +
			`expression, a text stands in quotes: "level"`,
		"none of 3 sampled items of Comment has the attribute userID, which author reads: did you mean userId?",
		"none of 3 sampled items of Comment has the attribute published, which count, published read: a sample may miss what few items " +
			`have; in an expression, a text stands in quotes: "published"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestMatchTallyWarnsOfItemsAtKeysOfDerivedEntities has two items of the application, and one that dynamill made.
func TestMatchTallyWarnsOfItemsAtKeysOfDerivedEntities(t *testing.T) {
	tally := newMatchTally(loaded(t, `version: 1
table: { keys: [pk, sk], type: kind }
entities:
  Sample: { key: { pk: "HOST#${host}", sk: "SAMPLE#${month}#${id}" } }
  Month:  { key: { pk: "HOST#${host}", sk: "STATS#${month}" }, derived: true }
rules:
  samples: { count: Sample, as: Month.samples }
`))
	own := item("HOST#a", "STATS#2026-01")
	own["_dm"] = change.String(change.Digest(change.String("HOST#a/STATS#2026-01")))
	clone := item("HOST#b", "STATS#2026-02")
	clone["_dm"] = own["_dm"]
	for _, it := range []change.Item{own, clone, item("HOST#c", "STATS#2026-03"), item("HOST#c", "SAMPLE#2026-03#1")} {
		tally.count(it)
	}
	got := tally.occupiedKeys()
	want := []foundProblem{{Code: "derived.occupied", Message: "2 sampled items stand at keys of Month: every item there belongs to the " +
		"rules, which delete or replace it", Hint: "give Month other keys, or keep a copy of what these items hold: HOST#b/STATS#2026-02, " +
		"HOST#c/STATS#2026-03"}}
	if diff := cmp.Diff(want, got); diff != "" {
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
