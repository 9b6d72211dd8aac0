package shardlist

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dynamill/dynamill/internal/stream/leases"
	"github.com/dynamill/dynamill/internal/stream/streamapi"
)

func TestPlanLineage(t *testing.T) {
	// Shards are "id<parent"; leases are "id=checkpoint".
	for _, test := range []struct {
		name, listed, leases                string
		read, waiting, createdRows, missing string
	}{
		{name: "no shards"},
		{name: "one open shard", listed: "a", read: "a", createdRows: "a"},
		{name: "a child waits for its parent", listed: "a b<a c<a", read: "a", waiting: "b c", createdRows: "a b c"},
		{name: "a child that sorts before its parent waits", listed: "a<z z", read: "z", waiting: "a", createdRows: "z a"},
		{name: "children start when the parent is finished", listed: "a b<a c<a", leases: "a=SHARD_END", read: "b c", createdRows: "b c"},
		{name: "a grandchild waits for the child", listed: "a b<a c<b", leases: "a=SHARD_END b=7", read: "b", waiting: "c", createdRows: "c"},
		{name: "a parent that is listed but has no lease holds its child back", listed: "a b<a", leases: "b=TRIM_HORIZON", read: "a",
			waiting: "b", createdRows: "a"},
		{name: "at first start an unlisted parent holds nothing back", listed: "b<a", read: "b", createdRows: "b"},
		{name: "a first start that was cut off goes on", listed: "b<a c<z", leases: "b=TRIM_HORIZON", read: "b c", createdRows: "c"},
		{name: "a finished parent may be gone", listed: "b<a", leases: "a=SHARD_END", read: "b", createdRows: "b"},
		{name: "an unfinished shard is gone", listed: "b<a", leases: "a=5", waiting: "b", createdRows: "b", missing: "a"},
		{name: "a shard that was never begun is gone", listed: "", leases: "a=TRIM_HORIZON", missing: "a"},
		{name: "a generation came and went", listed: "c<b d<c", leases: "a=SHARD_END", waiting: "c d", createdRows: "d", missing: "b"},
		{name: "a split of which one half is finished", listed: "a b<a c<a d<b", leases: "a=SHARD_END b=SHARD_END c=3", read: "c d",
			createdRows: "d"},
		{name: "all finished", listed: "a b<a", leases: "a=SHARD_END b=SHARD_END"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var listed []streamapi.Shard
			for _, text := range strings.Fields(test.listed) {
				id, parent, _ := strings.Cut(text, "<")
				listed = append(listed, streamapi.Shard{ID: id, Parent: parent})
			}
			rows := map[string]leases.Lease{}
			for _, text := range strings.Fields(test.leases) {
				id, checkpoint, _ := strings.Cut(text, "=")
				rows[id] = leases.Lease{Shard: id, Checkpoint: checkpoint}
			}
			plan := PlanLineage("arn", listed, rows, HasProgress(rows))
			var read, waiting, created, missing []string
			for _, s := range plan.Read {
				read = append(read, s.ID)
			}
			for _, s := range InOrder(ByID(listed)) {
				if !slices.Contains(read, s.ID) && !rows[s.ID].Finished() {
					waiting = append(waiting, s.ID)
				}
			}
			for _, l := range plan.Create {
				created = append(created, l.Shard)
			}
			for _, l := range plan.Missing {
				missing = append(missing, l.Shard)
			}
			for what, pair := range map[string][2]string{
				"read":    {strings.Join(read, " "), test.read},
				"waiting": {strings.Join(waiting, " "), test.waiting},
				"rows":    {strings.Join(created, " "), test.createdRows},
				"missing": {strings.Join(missing, " "), test.missing},
			} {
				if pair[0] != pair[1] {
					t.Errorf("%s: %q, want %q", what, pair[0], pair[1])
				}
			}
		})
	}
}

func TestUselessRowsAreDeleted(t *testing.T) {
	end := func(shard, parent string) leases.Lease {
		return leases.Lease{Shard: shard, Parent: parent, Checkpoint: leases.ShardEnd}
	}
	for _, test := range []struct {
		name   string
		listed []streamapi.Shard
		leases []leases.Lease
		want   int
	}{
		{"its child is finished too", nil, []leases.Lease{end("a", ""), end("b", "a")}, 1},
		{"still listed", []streamapi.Shard{{ID: "a"}}, []leases.Lease{end("a", ""), end("b", "a")}, 0},
		{"no child was seen yet", nil, []leases.Lease{end("a", "")}, 0},
		{"a child is being read", nil, []leases.Lease{end("a", ""), end("b", "a"), {Shard: "c", Parent: "a", Checkpoint: "4"}}, 0},
		{"a child has no row yet", []streamapi.Shard{{ID: "c", Parent: "a"}}, []leases.Lease{end("a", ""), end("b", "a")}, 0},
		{"not finished", nil, []leases.Lease{{Shard: "a", Checkpoint: "4"}, end("b", "a")}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			rows := map[string]leases.Lease{}
			for _, l := range test.leases {
				rows[l.Shard] = l
			}
			if got := PlanLineage("arn", test.listed, rows, HasProgress(rows)).Done; len(got) != test.want {
				t.Errorf("%v, want %d rows", got, test.want)
			}
		})
	}
}

// A forest of shards is read to its end, whatever order the shards end in:
// every shard once, each after its parent, with two rows never made for one.
func TestEveryShardIsReadOnceAndAfterItsParent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.IntRange(0, 25).Draw(t, "count")
		names := rapid.Permutation(nameList(count)).Draw(t, "names")
		all := make([]streamapi.Shard, count)
		for i := range all {
			all[i].ID = names[i]
			if p := rapid.IntRange(-1, i-1).Draw(t, "parent"); p >= 0 {
				all[i].Parent = names[p]
			} else if rapid.Bool().Draw(t, "orphan") {
				all[i].Parent = "trimmed-long-ago"
			}
		}
		rows := map[string]leases.Lease{}
		reading, finished := []string{}, map[string]bool{}
		for range 10 * (count + 1) {
			listed := rapid.Permutation(all).Draw(t, "listed")
			plan := PlanLineage("arn", listed, rows, HasProgress(rows))
			if len(plan.Missing) > 0 {
				t.Fatalf("missing %v although every shard is listed", plan.Missing)
			}
			for _, l := range plan.Create {
				if _, ok := rows[l.Shard]; ok {
					t.Fatalf("a second row for %s", l.Shard)
				}
				rows[l.Shard] = l
			}
			for _, s := range plan.Read {
				switch {
				case finished[s.ID]:
					t.Fatalf("%s is read again", s.ID)
				case s.Parent != "" && s.Parent != "trimmed-long-ago" && !finished[s.Parent]:
					t.Fatalf("%s is read before its parent %s is finished", s.ID, s.Parent)
				case !slices.Contains(reading, s.ID):
					reading = append(reading, s.ID)
				}
			}
			if len(reading) == 0 {
				break
			}
			i := rapid.IntRange(0, len(reading)-1).Draw(t, "ends")
			id := reading[i]
			reading = slices.Delete(reading, i, i+1)
			finished[id] = true
			l := rows[id]
			l.Checkpoint = leases.ShardEnd
			rows[id] = l
		}
		if len(finished) != count {
			t.Fatalf("%d of %d shards were read", len(finished), count)
		}
	})
}

func nameList(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("shard%02d", i)
	}
	return names
}
