package streamreader

import (
	"maps"
	"slices"
	"time"

	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// skippedLeast is how long lists must show a shard as open before its lease is
// taken for wrong. AWS does not say how soon a list shows that a shard has closed.
const skippedLeast = 10 * time.Second

// skipDetector finds shards that are open although their leases say SHARD_END:
// no worker reads them, and the stream drops their records after a day. The lease
// table was edited, for example. A list decides only if it was begun after that was
// seen: an earlier one may show a shard that has closed meanwhile.
type skipDetector struct {
	askedAt time.Time            // when the list under way was begun
	since   map[string]time.Time // when a shard was first seen to be listed as open behind a finished lease
	told    map[string]bool      // stays when the shard closes: its records were not read
}

// judge compares a complete list with the leases and returns the shards that
// are found to be skipped, and were not before. busy says of a lease whether its
// owner is heard of, and may know better than the row.
func (d *skipDetector) judge(found listing, rows map[string]Lease, busy func(Lease) bool) (news []string) {
	since, told := map[string]time.Time{}, map[string]bool{}
	for _, shard := range found.shards {
		row := rows[shard.id]
		switch {
		case !row.Finished() || busy(row):
			continue
		case d.told[shard.id]:
			told[shard.id] = true
			continue
		case shard.closed || found.status != streams.StreamStatusEnabled:
			continue
		}
		first, suspected := d.since[shard.id]
		if !suspected {
			first = time.Now()
		}
		if d.askedAt.Sub(first) < skippedLeast {
			since[shard.id] = first
			continue
		}
		told[shard.id] = true
		news = append(news, shard.id)
	}
	d.since, d.told = since, told
	return news
}

// undecided reports whether the next lists are to tell of a shard.
func (d *skipDetector) undecided() bool { return len(d.since) > 0 }

func (d *skipDetector) shards() []string { return slices.Sorted(maps.Keys(d.told)) }

// findSkipped tells of the shards that a complete list shows to be skipped.
func (f *follower) findSkipped() {
	busy := func(row Lease) bool { return row.Owner != "" && !f.fleet.expired(row) }
	for _, shard := range f.skips.judge(f.found, f.leases, busy) {
		f.r.cfg.Logger.Error("an open shard is skipped, because its lease says SHARD_END: its records are not applied",
			"shard", shard, "stream", f.r.cfg.StreamARN,
			"remedy", "delete this shard's row from the lease table before the stream drops the records, which it does after 24 hours; nothing is applied twice")
	}
	f.publishSkipped()
}

// publishSkipped tells Stats of the shards that are skipped.
func (f *follower) publishSkipped() {
	f.r.mu.Lock()
	defer f.r.mu.Unlock()
	f.r.state.skipped = f.skips.shards()
}

// skipped is the error of a drain that had to leave shards out; nil if it had not.
func (f *follower) skipped() error {
	if shards := f.skips.shards(); len(shards) > 0 {
		return &SkippedError{Shards: shards}
	}
	return nil
}
