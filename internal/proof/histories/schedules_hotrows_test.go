package histories

import (
	"slices"

	"github.com/dynamill/dynamill/internal/proof/adversary"
)

// rowSchedules are those for the guards of the rows and lanes of rules that count by stream position, and for the guards of other rooms on
// which these rules rest.
func rowSchedules() []schedule {
	display := `^UpdateItem app\(POST#a`
	return []schedule{{
		guard: "FoldInOrder", name: "two likes come in one batch", rules: likesRules, steps: liked(1, next(0, 2), next(0, 3)),
	}, {
		guard: "FoldDisplayed", name: "a worker crashes when it is about to display what it has added", rules: likesRules,
		steps:   liked(1, befall(30, adversary.CrashedBefore)),
		strikes: []adversary.Strike{holds(display, 1)},
	}, {
		guard: "FoldedStays", name: "a worker crashes when it has taken off the only like", rules: likesRules,
		steps:   liked(1, step(Rest, Delete, "pk=LIKE#1, sk=LIKE")),
		strikes: []adversary.Strike{at(display, 2, adversary.CrashedBefore)},
	}, {
		guard: "LaneHeirStays", name: "two children ask for the lane of their parent at the same time", rules: likesRules,
		steps:   append(liked(1, befalls(adversary.Split)), append(likes(2, 9), befalls(adversary.Woke))...),
		strikes: []adversary.Strike{holds(`^UpdateItem app-dynamill\(lane/FI/1`, 0)},
	}, {
		guard: "LaneStays", name: "a sleeper adds a like whose shard is done", rules: likesRules, workers: 2,
		steps:   liked(1, befall(Struck, adversary.RolledOver), befalls(adversary.Woke), next(Rest, 2)),
		strikes: []adversary.Strike{at(`^UpdateItem app-dynamill\(fold/`, 0, adversary.Froze)},
	}, {
		// The first loss begins a generation, whose rows of shards stand behind it. Then a shard comes whose parent has never had a record:
		// no other shard tells of the second loss.
		guard: "GenerationBegun", name: "the stream drops the first like of a shard that no worker has opened", rules: likesRules,
		steps: slices.Concat(likes(1, 1), []Step{befalls(adversary.RolledOver), befalls(adversary.Skipped), befalls(adversary.RolledOver),
			next(0, 2), befall(0, adversary.Skipped), next(0, 3), puts("pk=POST#a, sk=INFO")}),
	}, {
		guard: "ParentShardFirst", name: "a shard rolls over whose likes are not counted", rules: likesRules,
		steps:   liked(1, befall(Struck, adversary.RolledOver), next(0, 2), befalls(adversary.Woke)),
		strikes: []adversary.Strike{holds(`^UpdateItem app-dynamill\(fold/`, 0)},
	}, {
		guard: "FoldIncarnation", name: "a sleeper adds a like to the rows of a state table that was made anew", rules: likesRules,
		steps:   liked(1, next(0, 2), befall(Struck, adversary.StateLost), befall(0, adversary.Skipped), befall(Rest, adversary.Woke)),
		strikes: []adversary.Strike{at(`^UpdateItem app-dynamill\(fold/`, 0, adversary.Froze)},
	}, {
		guard: "MendAsRead", name: "two counts find what a group began with at the same time", rules: likesRules, workers: 2, old: 2,
		steps:   liked(1, after(Struck, puts("pk=POST#b, sk=INFO")), befall(60, adversary.Woke)),
		strikes: []adversary.Strike{holds(`^UpdateItem app-dynamill\(fold/FI/1/.*/base`, 0)},
	}, {
		guard: "Frontier", name: "a worker crashes after a checkpoint behind a like that it could not add", rules: likesRules, steps: liked(1),
		strikes: []adversary.Strike{
			at(`^Process .*LIKE#1`, 0, adversary.FailedBefore), at(`^Process .*LIKE#1`, 0, adversary.CrashedBefore),
		},
	}, {
		guard: "RollupVersion", name: "a sleeper shows the first like alone", rules: likesRules, workers: 2,
		steps:   liked(1, next(Struck, 2), befalls(adversary.Woke)),
		strikes: []adversary.Strike{at(display, 1, adversary.Froze)},
	}, {
		guard: "LiveAsked", name: "a worker adds a like that does not know that the count is over", rules: likesRules, workers: 2, seed: 17,
		steps: liked(1, befalls(adversary.Recounted), next(Struck, 2), after(Struck, puts("pk=POST#b, sk=INFO")), befall(Struck, adversary.Woke),
			befall(40, adversary.Woke)),
		strikes: []adversary.Strike{
			holds(`^UpdateItem app-dynamill\(fold/FI/2/.*/base`, 0), holds(`^UpdateItem app-dynamill\(fold/FI/2/.*/lane`, 0),
			holds(`^PutItem app-dynamill \{pk=counted/FI/2`, 1),
		},
	}, {
		guard: "EpochChecked", name: "a worker that knows no new generation takes the shard again", rules: likesRules, seed: 1,
		steps:   liked(1, befalls(adversary.Recounted), befall(0, adversary.Takeover), next(Struck, 2), befalls(adversary.Woke)),
		strikes: []adversary.Strike{holds(`^Scan app after`, 2)},
	}}
}
