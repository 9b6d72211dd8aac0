package verify_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/metrics"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/population"
	"github.com/dynamill/dynamill/projections"
	"github.com/dynamill/dynamill/replay/verify"
)

const clubRules = `version: 1
table: { keys: [pk, sk] }
entities:
  User:       { key: { pk: "USER#${userId}",   sk: "PROFILE" } }
  Group:      { key: { pk: "GROUP#${groupId}", sk: "METADATA" } }
  Membership: { key: { pk: "USER#${userId}",   sk: "GROUP#${groupId}" } }
  Member:     { key: { pk: "GROUP#${groupId}", sk: "USER#${userId}" } }
rules:
  member-list:  { mirror: Membership, as: Member, attributes: [role, joinedAt] }
  member-name:  { copy: name as userName, from: User, to: Member }
  member-count: { count: Membership, as: Group.memberCount, write_shards: 4 }
`

// made is a table that is made up as it is read: each of n numbers gives some items.
type made struct {
	n    int
	give func(i int, emit func(change.Item) error) error
}

func (m made) Each(ctx context.Context, f func(change.Item) error) error {
	const segments = 4
	g, ctx := errgroup.WithContext(ctx)
	for s := range segments {
		g.Go(func() error {
			for i := s; i < m.n && ctx.Err() == nil; i += segments {
				if err := m.give(i, f); err != nil {
					return err
				}
			}
			return ctx.Err()
		})
	}
	return g.Wait()
}

func texts(pairs ...string) change.Item {
	it := change.Item{}
	for i := 0; i < len(pairs); i += 2 {
		it[pairs[i]] = change.String(pairs[i+1])
	}
	return it
}

// club is a table of groups and users, two memberships each, with all that is
// derived, as right as an engine would leave it: 5.1 items and 3.4 rows for each user.
func club(users int, incarnation string) (items, rows made) {
	groups := max(1, users/10)
	groupOf := func(i, k int) string { return strconv.Itoa((i + k*(groups/2+1)) % groups) }
	members := make([]int32, groups)
	for i := range users {
		for k := range 2 {
			g, _ := strconv.Atoi(groupOf(i, k))
			members[g]++
		}
	}
	role, joined := change.String("member"), change.String("2025-01-01")
	digest := change.Digest(role, joined)
	stamp := func(key change.Key) string {
		return change.Digest(change.String(incarnation), change.String(key.String()), change.String("")) + " 000001| " + digest
	}
	items = made{users, func(i int, emit func(change.Item) error) error {
		user := strconv.Itoa(i)
		all := []change.Item{texts("pk", "USER#"+user, "sk", "PROFILE", "name", "user "+user)}
		for k := range 2 {
			g := groupOf(i, k)
			target := change.Key{Partition: "GROUP#" + g, Sort: "USER#" + user}
			all = append(all,
				change.Item{"pk": change.String("USER#" + user), "sk": change.String("GROUP#" + g), "role": role, "joinedAt": joined},
				change.Item{
					"pk": change.String(target.Partition), "sk": change.String(target.Sort), "role": role, "joinedAt": joined,
					"userName": change.String("user " + user), "_dm_member-list": change.String(stamp(target)),
				})
		}
		if i < groups {
			all = append(all, change.Item{
				"pk": change.String("GROUP#" + user), "sk": change.String("METADATA"), "memberCount": change.Number(strconv.Itoa(int(members[i]))),
			})
		}
		return giveAll(all, emit)
	}}
	rows = made{users, func(i int, emit func(change.Item) error) error {
		user := strconv.Itoa(i)
		var all []change.Item
		for k := range 2 {
			g := groupOf(i, k)
			source, target := change.Key{Partition: "USER#" + user, Sort: "GROUP#" + g}, change.Key{Partition: "GROUP#" + g, Sort: "USER#" + user}
			entry := texts("pk", "item/"+source.String(), "sk", "entry", "at", "000001|")
			entry["effects"] = change.Map(map[string]change.Value{
				"member-list": change.String("=" + digest + " " + target.String()), "member-count": change.String("+1 GROUP#" + g + "/METADATA"),
			})
			all = append(all, entry, texts("pk", "references/member-name/USER#"+user+"/PROFILE", "sk", target.String(), "at", "000001|"))
		}
		for suffix := 0; i < groups && suffix < 4; suffix++ {
			n := int(members[i]) / 4
			if suffix == 0 {
				n += int(members[i]) % 4
			}
			sum := texts("pk", fmt.Sprintf("sum/member-count/GROUP#%d%%2FMETADATA/%d", i, suffix), "sk", "accumulator")
			sum["value"], sum["operations"] = change.Number(strconv.Itoa(n)), change.Number("9")
			all = append(all, sum)
		}
		return giveAll(all, emit)
	}}
	return items, rows
}

func giveAll(items []change.Item, emit func(change.Item) error) error {
	for _, it := range items {
		if err := emit(it); err != nil {
			return err
		}
	}
	return nil
}

// heap is how large the heap was at most: what the collector let it grow to before
// it was to be collected again, and what was in use. On a busy machine the collector
// comes late, and more is in use than it let: that is the machine's doing.
type heap struct{ goal, used uint64 }

// peakHeap samples the heap until it is told to stop.
func peakHeap() (stop func() heap) {
	runtime.GC()
	var peak heap
	samples := []metrics.Sample{{Name: "/gc/heap/goal:bytes"}, {Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			metrics.Read(samples)
			peak.goal = max(peak.goal, samples[0].Value.Uint64())
			peak.used = max(peak.used, samples[1].Value.Uint64()+samples[2].Value.Uint64())
			select {
			case <-done:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	return func() heap { close(done); <-ended; return peak }
}

func TestMemoryIsBounded(t *testing.T) {
	users, memory, most := 25_000, 16<<20, uint64(32<<20)
	soak := os.Getenv("DYNAMILL_SOAK") != ""
	if soak {
		users, memory, most = 200_000, 128<<20, 200<<20
	}
	p, err := population.New("club", clubRules)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, p, 1)
	w.follow()
	incarnation := ""
	for _, row := range w.scan("app-dynamill") {
		if row["sk"].Text() == "table" {
			incarnation = row["incarnation"].Text()
		}
	}
	items, rows := club(users, incarnation)
	stop := peakHeap()
	began := time.Now()
	found, summary := w.verify(false, func(cfg *verify.Config) {
		cfg.Items, cfg.Rows, cfg.MemoryBytes = items, rows, memory
	})
	peak := stop()
	t.Logf("%d items and %d rows in %s: the heap was let grow to %d MB, %d MB were in use, %d MB in temporary files",
		summary.Items, summary.Rows, time.Since(began).Round(time.Millisecond), peak.goal>>20, peak.used>>20, summary.TempBytes>>20)
	if summary.Suspects > 0 || len(found) > 0 {
		t.Errorf("%d suspects, %d found, in a table that is right", summary.Suspects, len(found))
	}
	if peak.goal > most || soak && peak.used > most {
		t.Errorf("the heap was let grow to %d MB, %d MB were in use; at most %d MB are allowed", peak.goal>>20, peak.used>>20, most>>20)
	}
	if int(summary.Items) < 5*users || summary.TempBytes < int64(users)*500 {
		t.Errorf("too little was looked at: %+v", summary)
	}
}

// wrongEntries finds every ledger entry of a club to be missing.
type wrongEntries struct {
	*projections.Audit
	most atomic.Int64 // suspects that were read at once
}

func (a *wrongEntries) Read(_ context.Context, suspects []drift.Suspect) ([]drift.Reading, error) {
	a.most.Store(max(a.most.Load(), int64(len(suspects))))
	all := make([]drift.Reading, len(suspects))
	for i, s := range suspects {
		if all[i].Suspect = s; s.Kind != drift.Entry {
			continue
		}
		group := "GROUP" + s.Item.Sort[len("GROUP"):] + "/METADATA"
		all[i] = drift.Reading{
			Suspect: s, State: change.Digest(change.String(s.Item.String())), Concerns: []string{drift.KeyToken(s.Item)},
			Findings: []drift.Finding{{Rule: "member-count", Kind: drift.Entry, What: drift.Missing, Item: s.Item}},
			Fix:      drift.Fix{Keys: []change.Key{s.Item}, Adjust: []drift.Amount{{Rule: "member-count", Group: group, Value: "1"}}},
		}
	}
	return all, nil
}

func TestMemoryIsBoundedWhereMuchIsWrong(t *testing.T) {
	w := worldOf(t, "club", clubRules)
	w.follow()
	items, rows := club(30_000, "other")
	rows.give = func(i int, emit func(change.Item) error) error {
		if groups := 3000; i < groups { // no entries, and accumulators that hold nothing
			sum := texts("pk", fmt.Sprintf("sum/member-count/GROUP#%d%%2FMETADATA/0", i), "sk", "accumulator")
			sum["value"], sum["operations"] = change.Number("0"), change.Number("9")
			return emit(sum)
		}
		return nil
	}
	audit := &wrongEntries{Audit: w.audit()}
	stop := peakHeap()
	_, summary := w.verify(false, func(cfg *verify.Config) {
		cfg.Items, cfg.Rows, cfg.Auditor, cfg.MemoryBytes = items, rows, audit, 16<<20
		cfg.Found = func(verify.Result) error { return nil }
	})
	peak := stop()
	t.Logf("%d suspects, found %v: at most %d MB of heap in use", summary.Suspects, summary.Found, peak.used>>20)
	if summary.Found[drift.Entry] != 60_000 || summary.Found[drift.Sum] != 3000 {
		t.Errorf("found %v, undecided %v", summary.Found, summary.Undecided)
	}
	if audit.most.Load() > 10_000 || peak.goal > 100<<20 {
		t.Errorf("%d suspects were read at once, and the heap was let grow to %d MB", audit.most.Load(), peak.goal>>20)
	}
}
