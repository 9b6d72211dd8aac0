package histories

import (
	"github.com/dynamill/dynamill/internal/proof/adversary"
)

// leaseSchedules are those for workers that share a stream.
func leaseSchedules() []schedule {
	task := func(text string) Step { return puts("pk=TASK#1, sk=INFO, " + text) }
	woken, judged := befalls(adversary.Woke), Step{Turns: Rest, Kind: Judge}
	return []schedule{
		{
			// A worker sleeps when it is about to save a checkpoint. Another takes the shard and gets further.
			guard: "CheckpointFenced", name: "a sleeper saves the checkpoint of a shard that another has taken", rules: teamRules,
			steps: []Step{puts("pk=TEAM#a, sk=INFO"), task("teamId=a"), step(Rest, Delete, "pk=TASK#1, sk=INFO"), woken, judged},
			strikes: []adversary.Strike{
				at(`^UpdateItem app-dynamill-leases\(shardId.* checkpoint = \d`, 0, adversary.Froze),
			},
		},
		{
			// A worker cannot renew its lease, and goes on reading.
			guard: "TrustWindow", name: "a renewal is held up until another takes the shard", rules: teamRules, workers: 2,
			steps: []Step{
				puts("pk=TEAM#a, sk=INFO"), befalls(adversary.Takeover), task("teamId=a"), step(Rest, Delete, "pk=TASK#1, sk=INFO"), woken, judged,
			},
			strikes: []adversary.Strike{holds(`^UpdateItem app-dynamill-leases\(shardId[^ ]* SET leaseCounter = \d+, [^c]*REMOVE`, 0)},
		},
		{
			// A shard that nothing was written to outlives its parent, and its reader.
			guard: "LeaseKept", name: "the parent of a shard that has begun nothing is forgotten", rules: teamRules,
			steps: []Step{
				puts("pk=TEAM#a, sk=INFO"), befalls(adversary.RolledOver), befalls(adversary.Aged), befalls(adversary.CrashedBefore),
				task("teamId=a"), judged,
			},
		},
	}
}
