package proof

import (
	"testing"

	"github.com/dynamill/dynamill/internal/adversary"
)

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
			strikes: []adversary.Strike{holds(`^Query app-dynamill .*references/author/USER#a`, 1)},
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
			// Who drains has listed the shards, and found one that waits for its parent,
			// before the other has made their rows.
			name: "a stream is drained while another begins to read it", rules: names, workers: 2, company: true, again: true, seed: 47,
			steps: []Step{puts(userA + "old"), befalls(adversary.RolledOver), puts(userA + "new")},
		},
	}
}

// TestWhatWasFoundStaysMended lives through the histories that found bugs.
func TestWhatWasFoundStaysMended(t *testing.T) {
	for _, s := range foundSchedules() {
		t.Run(s.name, func(t *testing.T) { holdsPromises(t, s.history(t)) })
	}
}
