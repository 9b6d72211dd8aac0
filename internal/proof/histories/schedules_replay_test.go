package histories

import (
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/proof/adversary"
)

// changed is a rule file in which something is said differently.
func changed(file, from, to string) string {
	if !strings.Contains(file, from) {
		panic("the rule file does not say " + from)
	}
	return strings.Replace(file, from, to, 1)
}

// changes puts another rule file in force once nothing is left to do.
func changes(file string) Step {
	return Step{Turns: Rest, Kind: Befall, Fault: adversary.RulesChanged, Rules: file}
}

// lastOrder shows the order of each customer whose key is the smallest.
const lastOrder = `version: 1
table: { keys: [pk, sk] }
entities:
  Order:  { key: { pk: "CUSTOMER#${customerId}", sk: "ORDER#${orderId}" } }
  Ticket: { key: { pk: "CUSTOMER#${customerId}", sk: "TICKET#${ticketId}" } }
  Last:   { key: { pk: "LAST#${customerId}", sk: "THING" } }
rules:
  last: { mirror: Order, as: Last, attributes: [title] }
`

// replaySchedules are those for replays, and for changes of the rules.
func replaySchedules() []schedule {
	woken, judged := befalls(adversary.Woke), Step{Turns: Rest, Kind: Judge}
	replayed := Step{Kind: Befall, Fault: adversary.Replayed}
	exported := replayed // which finds nothing that has vanished
	exported.Items = []change.Item{row(membership)}
	// The reader of the stream is held up, and the replaying worker sleeps when it is about to count the membership.
	overtaken := []adversary.Strike{holds(`^Process .*USER#a`, 0),
		at(`^TransactWriteItems\n      put app-dynamill \{.*USER#a`, 0, adversary.Froze)}
	const aTask = "pk=TASK#1, sk=INFO, teamId=a"
	orNone := changed(teamRules, "by: teamId", "by: teamId, if_none: absent") // no record tells of the display
	withEffort := changed(orNone, "by: teamId", "by: teamId, where: has(effort)")
	lastTicket := changed(lastOrder, "mirror: Order", "mirror: Ticket")
	otherName := changed(names, "name as userName", "name as authorName")
	return []schedule{
		{
			guard: "Tombstone", name: "a replay sleeps over a membership that comes and goes", rules: members,
			steps:   []Step{puts(group), puts(membership), exported, step(Rest, Delete, membership), woken, woken, judged},
			strikes: overtaken,
		},
		{
			guard: "EntryNew", name: "a replay sleeps over the record of what it is about to count", rules: members,
			steps:   []Step{puts(group), puts(membership), replayed, woken, woken, judged},
			strikes: overtaken,
		},
		{
			// The count leaves out banned members from now on.
			guard: "RuleFingerprint", name: "a rule means something else and has the name that it had",
			first: members, rules: changed(members, "as: Group.memberCount", `as: Group.memberCount, where: role != "banned"`),
			steps: []Step{
				puts(group), puts(membership + ", role=banned"),
				changes(changed(members, "as: Group.memberCount", `as: Group.memberCount, where: role != "banned"`)), judged,
			},
		},
		{
			// A worker with the former rules applies two records, of which the second takes the count back. They come
			// again to one with the new rules, under which the second asks for nothing: the entry is ahead of the move.
			guard: "AheadUnderOlder", name: "an entry is ahead of a record under older rules", first: withEffort, rules: orNone,
			steps: []Step{
				puts("pk=TEAM#a, sk=INFO"), changes(orNone),
				puts(aTask + ", effort=#1"), step(0, Put, aTask), judged,
			},
		},
		{
			// The rule that takes the place of the former one copies under another name.
			guard: "EpochChecked", name: "a worker with older rules says that a record is done when rules were changed",
			first: names, rules: otherName,
			steps: []Step{puts(userA + "x"), changes(otherName), puts(comment + "a"), judged},
		},
		{
			guard: "LateLeftover", name: "a worker sleeps until the rule that it works for is gone", first: names, rules: otherName,
			steps:   []Step{puts(userA + "x"), puts(comment + "a"), changes(otherName), woken, judged},
			strikes: []adversary.Strike{at(`^UpdateItem `+onComment, 0, adversary.Froze)},
		},
		{
			// The next rule gives the same mirror item, from another source.
			guard: "RetiredStays", name: "mirror items come from another source from now on", first: lastOrder, rules: lastTicket,
			steps: []Step{puts("pk=CUSTOMER#a, sk=ORDER#1, title=x"), puts("pk=CUSTOMER#a, sk=TICKET#1, title=y"), changes(lastTicket), judged},
		},
		{
			// The rule goes, and comes back as it was: as another one, with nothing of the former one's.
			guard: "IdsKept", name: "a rule comes back", first: members, rules: members,
			steps: []Step{
				puts(group), puts(membership), changes(changed(members, "  member-count: { count: Membership, as: Group.memberCount }\n", "")),
				step(Rest, Delete, membership), changes(members), judged,
			},
		},
	}
}
