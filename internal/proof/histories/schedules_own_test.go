package histories

import (
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/proof/adversary"
)

// index is a rule that works out the keys of an index from the item alone.
const index = `version: 1
table: { keys: [pk, sk] }
entities:
  Post: { key: { pk: "POST#${postId}", sk: "METADATA" } }
rules:
  by-status: { set: { GSI1PK: "STATUS#${status}", GSI1SK: "${pad(likes, 4)}" }, of: Post }
`

const (
	indexed = "pk=POST#p, sk=METADATA, likes=#7, status="
	onPost  = `app\(POST#p/METADATA\)`
)

func ownSchedules() []schedule {
	liked := changed(index, "of: Post", "of: Post, where: likes > 0")
	return []schedule{
		{
			// A worker falls asleep before it writes. The post gets another status, and the worker that
			// took over writes that. Then the sleeper writes the keys of the former status.
			guard: "OwnRead", name: "a sleeper writes the index key of a former status", rules: index, taken: true,
			steps: []Step{
				puts(indexed + "draft"), puts(indexed + "published"), befalls(adversary.Woke), befalls(adversary.Restart),
			},
			strikes: []adversary.Strike{at(`^UpdateItem `+onPost+` SET`, 0, adversary.Froze)},
		},
		{
			// A worker has seen that the likes are no number, and falls asleep before it parks the post.
			// Meanwhile the post becomes good.
			guard: "ParkedAsSeen", name: "a sleeper parks a post that has become good", rules: index,
			steps: []Step{
				puts("pk=POST#p, sk=METADATA, likes=many, status=a"), puts(indexed + "a"),
				befalls(adversary.Woke), befalls(adversary.Restart),
			},
			strikes: []adversary.Strike{at(`^TransactWriteItems\s+put app-dynamill \{.*code=`, 0, adversary.Froze)},
		},
		{
			guard: "OwnCleared", name: "a post that could not be read can be", rules: index,
			steps: []Step{
				puts("pk=POST#p, sk=METADATA, likes=many, status=a"), puts(indexed + "a"), {Turns: Rest, Kind: Judge},
			},
		},
		{
			guard: "OwnTakenOff", name: "a post loses its status and keeps its index keys", rules: index,
			steps: []Step{
				puts(indexed + "a"), puts("pk=POST#p, sk=METADATA, likes=#7, GSI1PK=STATUS#a, GSI1SK=0007"), {Turns: Rest, Kind: Judge},
			},
		},
		{
			// The first worker crashes, and the next one finds two records in one batch: the rule cannot read the post, and then
			// it can, but DynamoDB refuses what it writes, which takes as much room as the post itself.
			guard: "RefusedStays", name: "a post that could not be read becomes too large", rules: index, verifies: true,
			steps: []Step{
				puts("pk=POST#p, sk=METADATA, likes=many, status=a"),
				{Turns: Struck, Kind: Put, Items: []change.Item{row(indexed + strings.Repeat("z", largeBytes))}}, {Turns: Rest, Kind: Judge},
			},
			strikes: []adversary.Strike{at(`^Process .*POST#p`, 0, adversary.CrashedBefore)},
		},
		{
			// The reader of the stream is held up, and an application puts a post back as it was under the former rules. A
			// worker goes over the table to take off what those left: it stays, because the new rules ask for the same.
			guard: "OwnAskedFor", name: "a post comes back with the keys and the stamp of former rules", rules: liked, first: index,
			steps: []Step{
				puts(indexed + "a"), step(Rest, Remember, "pk=POST#p, sk=METADATA"), changes(liked),
				{Turns: Struck, Kind: PutBack}, {Turns: Struck, Kind: Befall, Fault: adversary.Woke}, {Turns: Rest, Kind: Judge},
			},
			strikes: []adversary.Strike{at(`^PutItem app-dynamill \{.*passes=clean`, 0, adversary.Froze), holds(`^Process .*POST#p`, 3)},
		},
		{
			// The worker crashes behind the write, and the records come again.
			guard: "OwnRead", name: "a worker crashes behind a write and the records come again", rules: index, again: true, company: true,
			steps: []Step{
				puts(indexed + "a"), puts(indexed + "b"), puts(indexed + "a"), befalls(adversary.Restart), {Turns: Rest, Kind: Judge},
			},
			strikes: []adversary.Strike{at(`^UpdateItem `+onPost+` SET`, 1, adversary.Froze)},
		},
	}
}
