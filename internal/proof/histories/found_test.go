package histories

import (
	"strconv"
	"strings"
	"testing"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/proof/adversary"
	"github.com/dynamill/dynamill/internal/sim/dynamosim/values"
)

// desk has items that become others: a ticket with a copy and a count becomes a bill.
const desk = `version: 1
table: { keys: [pk, sk] }
entities:
  User:   { key: { pk: "USER#${userId}",   sk: "PROFILE" } }
  Ticket: { key: { pk: "DESK#${ticketId}", sk: "INFO" }, match: { kind: ticket } }
  Bill:   { key: { pk: "DESK#${ticketId}", sk: "INFO" }, match: { kind: bill } }
  Note:   { key: { pk: "NOTE#${noteId}",   sk: "INFO" } }
rules:
  author: { copy: name as userName, from: User, to: Ticket, by: userId }
  notes:  { count: Note, as: Ticket.notes, by: ticketId }
`

// weights sums what posts say of tags whose keys are long.
const weights = `version: 1
table: { keys: [pk, sk] }
entities:
  Post: { key: { pk: "POST#${postId}", sk: "INFO" } }
  Tag:  { key: { pk: "TAG#${tag}#${postId}", sk: "INFO" } }
rules:
  weight: { sum: weight, of: Post, each: tags as tag, by: { tag: tag, postId: postId }, as: Tag.weight }
`

// boxes counts the boxes that name another box.
const boxes = `version: 1
table: { keys: [pk, sk] }
entities:
  Box: { key: { pk: "BOX#${boxId}", sk: "INFO" } }
rules:
  inside: { count: Box, as: Box.inside, by: { boxId: inBox } }
`

// putsFullBox puts a box of the largest size that DynamoDB holds, inside another one.
func putsFullBox(box, in string) Step {
	it := row("pk=BOX#" + box + ", sk=INFO, inBox=" + in)
	it[ballast] = change.String("")
	it[ballast] = change.String(strings.Repeat("z", itemBytesMax-values.Size(attributes.ItemToTable(it))))
	return Step{Turns: Rest, Kind: Put, Items: []change.Item{it}}
}

// putsWeighed puts a post whose tags have keys of more than 128 KB together, with this weight.
func putsWeighed(weight string) Step {
	post := row("sk=INFO, weight=" + weight)
	post["pk"] = change.String("POST#" + strings.Repeat("p", 2000))
	var tags []change.Value
	for i := range 80 {
		tags = append(tags, change.String("t"+strconv.Itoa(i)))
	}
	post["tags"] = change.List(tags)
	return Step{Turns: Rest, Kind: Put, Items: []change.Item{post}}
}

// foundSchedules are bugs that histories have found, each as the shortest that
// shows it. They failed before the engine was mended.
func foundSchedules() []schedule {
	return []schedule{
		{
			// The fan-out of "newer" has raised the position and is about to look for
			// children; the comment is filled with "newest" before it writes.
			name: "a child that was filled with a newer name goes back to an older one", rules: names, shards: 2, healsMax: 1,
			steps: []Step{
				puts(userA + "old"), puts(comment + "a"), puts(userA + "newer"), puts(userA + "newest"), puts(later + "a"),
				befalls(adversary.Woke), {Turns: Rest, Kind: Judge},
			},
			strikes: []adversary.Strike{holds(`^Query app-dynamill .*ref/[^/]*/USER#a`, 1)},
		},
		{
			name: "a comment that could not name its user goes, and the record of that cannot be read", rules: names,
			steps:   []Step{puts(comment + "a#b"), step(Rest, Delete, comment+"a#b"), {Turns: Rest, Kind: Judge}},
			strikes: []adversary.Strike{at(`^Process .*COMMENT#c`, 1, adversary.Unreadable)},
		},
		{
			name: "a comment that could not name its user can, and the record of that is given up", rules: names,
			steps: []Step{
				puts(userA + "old"), puts(comment + "a#b"), puts(comment + "a"), befalls(adversary.HandedOver), {Turns: Rest, Kind: Judge},
			},
			strikes: []adversary.Strike{at(`^Apply .*COMMENT#c`, 1, adversary.GivenUp)},
		},
		{
			// The draining worker has listed the shards, and found one that waits for its parent,
			// before the other has made their rows.
			name: "a stream is drained while another begins to read it", rules: names, workers: 2, company: true, again: true, seed: 47,
			steps: []Step{puts(userA + "old"), befalls(adversary.RolledOver), puts(userA + "new")},
		},
		{
			name: "a comment cannot name its user, and the record of that is lost", rules: names, verifies: true,
			steps: []Step{puts(userA + "old"), puts(comment + "a#b"), {Kind: Befall, Fault: adversary.Skipped}},
		},
		{
			name: "a comment that could not name its user can, and the record of that is lost", rules: names, verifies: true,
			steps: []Step{puts(userA + "old"), puts(comment + "a#b"), puts(comment + "a"), {Kind: Befall, Fault: adversary.Skipped}},
		},
		{
			name: "a ticket becomes a bill, and the record of that is lost", rules: desk, verifies: true,
			steps: []Step{
				puts(userA + "old"), puts("pk=NOTE#1, sk=INFO, ticketId=1"), puts("pk=DESK#1, sk=INFO, kind=ticket, userId=a"),
				step(Rest, Update, "pk=DESK#1, sk=INFO, kind=bill"), {Kind: Befall, Fault: adversary.Skipped},
			},
		},
		{
			name: "a ticket is put back as a bill, with the stamps that it had", rules: desk,
			steps: []Step{
				puts(userA + "old"), puts("pk=NOTE#1, sk=INFO, ticketId=1"), puts("pk=DESK#1, sk=INFO, kind=ticket, userId=a"),
				step(Rest, Remember, "pk=DESK#1, sk=INFO"), step(0, Delete, "pk=DESK#1, sk=INFO"), step(Rest, PutBack, "kind=bill"),
			},
		},
		{
			name: "a list whose targets' keys are too long is not parked while it adds 0 to each", rules: weights,
			steps: []Step{putsWeighed("#0"), {Turns: Rest, Kind: Judge}, putsWeighed("#1"), {Turns: Rest, Kind: Judge}, putsWeighed("#0")},
		},
		{
			// The display of box a stays parked until a retry, also after a good record clears the parked source.
			name: "a full box with a bad inBox gets a good one, and its display stays parked", rules: boxes,
			steps: []Step{
				puts("pk=BOX#b, sk=INFO, inBox=a"), putsFullBox("a", "c#d"), {Turns: Rest, Kind: Judge}, puts("pk=BOX#a, sk=INFO, inBox=c"),
			},
		},
	}
}

// TestWhatWasFoundStaysMended lives through the histories that found bugs.
func TestWhatWasFoundStaysMended(t *testing.T) {
	for _, s := range foundSchedules() {
		t.Run(s.name, func(t *testing.T) { holdsPromises(t, s.history(t)) })
	}
}
