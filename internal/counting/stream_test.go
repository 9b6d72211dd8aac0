package counting

import (
	"strings"
	"testing"

	"github.com/dynamill/dynamill/internal/lanes"
	"github.com/dynamill/dynamill/internal/stream/streamapi"
)

// TestWhatFollowsAnEmptyShardIsReadFirst has the stream hold nothing of a shard any more, while a row is ahead of its child.
func TestWhatFollowsAnEmptyShardIsReadFirst(t *testing.T) {
	at := func(n string) string { return lanes.Pad(strings.Repeat(n, 21)) }
	r := &reader{
		shards: map[string]*shard{
			"parent": {finished: true, at: lanes.Pad(streamapi.Highest)}, "child": {at: at("5")},
			"open": {at: at("3")}, "unread": {info: streamapi.Shard{Parent: "open"}, at: at("5")},
		},
		lanes: map[string]lanes.Shard{"parent": {Shard: "parent", Lane: "parent"}, "child": {Shard: "child", Lane: "parent"},
			"gone": {Shard: "gone", Lane: "gone"}, "open": {Shard: "open", Lane: "open"}, "unread": {Shard: "unread", Lane: "open"}},
	}
	for _, c := range []struct {
		lane, hw string
		want     bool
	}{
		{"parent", at("4"), true}, {"parent", at("6"), false}, {"gone", at("6"), true}, {"never opened", at("6"), false},
		{"open", at("3"), true}, {"open", at("4"), false}, // though its child is listed
	} {
		if got := r.knowsAll(map[string]string{c.lane: c.hw}); got != c.want {
			t.Errorf("a row of lane %s up to %s is known: %t, want %t", c.lane, c.hw, got, c.want)
		}
	}
}
