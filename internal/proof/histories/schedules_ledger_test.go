package histories

import (
	"fmt"
	"strconv"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/proof/adversary"
)

// members is what an application with groups has: a mirror item for each membership, and a count.
const members = `version: 1
table: { keys: [pk, sk] }
entities:
  Group:      { key: { pk: "GROUP#${groupId}", sk: "METADATA" } }
  Membership: { key: { pk: "USER#${userId}",   sk: "GROUP#${groupId}" } }
  Member:     { key: { pk: "GROUP#${groupId}", sk: "USER#${userId}" } }
rules:
  member-list:  { mirror: Membership, as: Member, attributes: [role] }
  member-count: { count: Membership, as: Group.memberCount }
  points:       { sum: points, of: Membership, as: Group.points }
`

// codes is a rule under which two documents may ask for one mirror item.
const codes = `version: 1
table: { keys: [pk, sk] }
entities:
  Doc:    { key: { pk: "DOC#${docId}", sk: "METADATA" } }
  ByCode: { key: { pk: "CODE#${code}", sk: "METADATA" } }
rules:
  by-code: { mirror: Doc, as: ByCode, by: code, attributes: [title] }
`

// cards has mirror items that can become items of another entity.
const cards = `version: 1
table: { keys: [pk, sk] }
entities:
  Visit: { key: { pk: "VISIT#${visitId}", sk: "INFO" } }
  Card:  { key: { pk: "CARD#${code}",     sk: "INFO" }, match: { kind: card } }
rules:
  cards: { mirror: Visit, as: Card, by: code, attributes: [owner, price] }
`

const (
	group      = "pk=GROUP#g, sk=METADATA"
	membership = "pk=USER#a, sk=GROUP#g"
	member     = "pk=GROUP#g, sk=USER#a"
)

// onward puts a membership again and again, each time worth a point more, so
// that the stream's sequence numbers get another digit (dynamosim.Options).
func onward() []Step {
	steps := []Step{puts(group)}
	for i := range 45 {
		steps = append(steps, puts(fmt.Sprintf("%s, points=#%d", membership, i)))
	}
	return steps
}

func ledgerSchedules() []schedule {
	return []schedule{
		lateCount(),
		{
			// Its source goes, and the application makes the mirror item its own, before
			// a worker has seen either.
			guard: "MirrorAdopted", name: "the application puts its own item over a mirror item whose source goes", rules: members,
			steps: []Step{puts(group), puts(membership + ", role=x"), puts(member + ", role=own"), step(0, Delete, membership)},
		},
		{
			// The engine has adopted the application's card. The card becomes a bill, and gets another price.
			guard: "MirrorReleased", name: "an adopted item becomes another entity, and one mirrored attribute is overwritten", rules: cards,
			steps: []Step{
				puts("pk=CARD#c, sk=INFO, kind=card"), puts("pk=VISIT#v, sk=INFO, code=c, owner=ann, price=#1"),
				step(Rest, Update, "pk=CARD#c, sk=INFO, kind=bill, price=#2"),
			},
		},
		{
			// A card becomes a bill, and is put back as it was when its visit goes. A worker takes the card back, without having seen it,
			// and crashes. The next one finds in one batch that the bill went, and that the card did.
			guard: "MirrorUnparked", name: "a card is taken back that was a bill for a while",
			rules: changed(changed(cards, "CARD#${code}", "CARD#${visitId}"), "by: code, ", ""),
			steps: []Step{
				puts("pk=VISIT#v, sk=INFO, owner=ann"), step(Rest, Remember, "pk=CARD#v, sk=INFO"),
				puts("pk=CARD#v, sk=INFO, kind=bill"), {Turns: Rest, Kind: PutBack}, step(0, Delete, "pk=VISIT#v, sk=INFO"),
			},
			strikes: []adversary.Strike{at(`^TransactWriteItems[\s\S]*delete app\(CARD#v`, 0, adversary.CrashedAfter)},
		},
		{
			// Of the digests of both roles the ledger entry holds the same part.
			guard: "MirrorContent", name: "a role changes to one that the ledger entry does not tell apart", rules: members,
			steps: []Step{puts(membership + ", role=r2356"), step(Rest, Put, membership+", role=r2627")},
		},
		{
			// A group is put back as it was read, stamp included, when it was deleted and the count has gone on.
			guard: "InsertForeign", name: "a deleted group is put back with a count that was true once", rules: members,
			steps: []Step{
				puts(group), puts(membership), step(Rest, Remember, group), step(Rest, Delete, group),
				puts("pk=USER#b, sk=GROUP#g"), {Turns: Rest, Kind: PutBack},
			},
		},
		{
			// A program that counts by itself reads a group that shows 0, while another
			// one puts it without count and stamp (nothing is shown then, for nothing was
			// ever counted). What the first one puts carries a good stamp over a wrong count.
			guard: "StampDigest", name: "a program counts by itself under the engine's stamp",
			rules: changed(members, "as: Group.memberCount", "as: Group.memberCount, if_none: absent"),
			steps: []Step{
				puts(group + ", memberCount=#42"), step(Rest, Remember, group), puts(group),
				{Turns: Rest, Kind: PutBack, Items: step(0, Put, "memberCount=#1").Items},
			},
		},
		{
			// The claims are read as one document's while another's is added. Neither document gets the mirror item, and neither writes it.
			guard: "ClaimsUnmoved", name: "two documents claim a mirror item at the same time that a third one has", rules: codes, shards: 2,
			steps: []Step{
				puts("pk=DOC#a, sk=METADATA, code=x, title=a"), puts("pk=DOC#g, sk=METADATA, code=x, title=g"),
				puts("pk=DOC#d, sk=METADATA, code=x, title=d"), befalls(adversary.Woke), step(Rest, Delete, "pk=DOC#a, sk=METADATA"),
			},
			strikes: []adversary.Strike{holds(`^TransactWriteItems\s+put app-dynamill .*DOC#g`, 0)},
		},
		{
			// Seeding has read the item and not yet its entry, or the other way round, while the item changes.
			guard: "EntryBeforeItem", name: "a membership goes while seeding looks at it", rules: members, old: 2,
			steps: []Step{
				puts(group), puts(membership),
				step(Rest, Delete, membership), befalls(adversary.Woke),
			},
			strikes: []adversary.Strike{holds(`^BatchGetItem app-dynamill\(i/USER#a`, 0)},
		},
		{
			// No number holds the difference, so that the contribution goes in two steps.
			guard: "StepPosition", name: "a worker crashes between two steps of one move", rules: members,
			steps:   []Step{puts(group), puts(membership + ", points=#1e40"), step(Rest, Put, membership+", points=#2.5")},
			strikes: []adversary.Strike{at(`ADD value 2.5, members 1, ops 1`, 0, adversary.CrashedBefore)},
		},
		{
			// The elements of a list are more than a transaction holds. Some of them come, others go.
			guard: "StepEffects", name: "a worker crashes between two steps of a move of many elements", rules: taggings,
			steps: []Step{
				puts("pk=TAG#t7, sk=METADATA"), puts("pk=TAG#t77, sk=METADATA"), puts("pk=TAG#t107, sk=METADATA"),
				putsTagged(0, 80), putsTagged(50, 120),
			},
			strikes: []adversary.Strike{at(`^Apply .*POST#1`, 2, adversary.CrashedBefore)},
		},
		{
			// A record fails, the checkpoint is written, and the worker crashes before it tries again.
			guard: "Frontier", name: "a worker crashes after a checkpoint behind a record that failed", rules: members,
			steps: []Step{puts(group), puts(membership)},
			strikes: []adversary.Strike{
				at(`^Apply .*USER#a`, 0, adversary.FailedBefore), at(`^Apply .*USER#a`, 0, adversary.CrashedBefore),
			},
		},
		{
			// Sequence numbers are integers: after 9 comes 10.
			guard: "PositionPadded", name: "sequence numbers get another digit", rules: members, steps: onward(),
		},
		{
			// The table is given another stream, whose sequence numbers are lower.
			guard: "PositionLabel", name: "the stream is replaced by one that counts anew", rules: members,
			steps: []Step{
				puts(group), puts(membership + ", points=#1"), puts(membership + ", points=#2"), puts(membership + ", points=#3"),
				befalls(adversary.Replaced), puts(membership + ", points=#4"),
			},
		},
	}
}

const taggings = `
version: 1
table: { keys: [pk, sk] }
entities:
  Post:    { key: { pk: "POST#${postId}", sk: "METADATA" } }
  TagPost: { key: { pk: "TAG#${tag}", sk: "POST#${postId}" } }
  Tag:     { key: { pk: "TAG#${tag}", sk: "METADATA" } }
rules:
  index: { mirror: Post, each: tags as tag, as: TagPost }
  posts: { count: Post, each: tags as tag, as: Tag.posts }
  made:  { count: TagPost, as: Tag.made }
`

// putsTagged puts a post with so many tags, from the tag of a number on.
func putsTagged(from, n int) Step {
	var tags []change.Value
	for i := range n {
		tags = append(tags, change.String("t"+strconv.Itoa(from+i)))
	}
	post := row("pk=POST#1, sk=METADATA")
	post["tags"] = change.List(tags)
	return Step{Turns: Rest, Kind: Put, Items: []change.Item{post}}
}
