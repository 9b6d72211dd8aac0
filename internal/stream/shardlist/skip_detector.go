package shardlist

import (
	"maps"
	"slices"
	"time"

	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/dynamill/dynamill/internal/stream/leases"
)

// skippedLeast is how long lists must show a shard as open before its lease is
// taken for wrong. AWS does not say how soon a list shows that a shard has closed.
const skippedLeast = 10 * time.Second

// SkipDetector finds shards that are open although their leases say SHARD_END, so that no worker reads them: the lease table
// was edited, for example. A list decides only if it was begun after that was seen: an earlier one may be outdated.
type SkipDetector struct {
	BegunAt  time.Time            // when the list under way was begun
	since    map[string]time.Time // when a shard was first seen to be listed as open behind a finished lease
	reported map[string]bool      // stays when the shard closes: its records were not read
}

// Judge returns the shards that a complete list shows to be skipped, and that were not before. busy reports
// whether a lease has a living owner, which may know better than the row.
func (d *SkipDetector) Judge(found Listing, rows map[string]leases.Lease, busy func(leases.Lease) bool) (news []string) {
	since, reported := map[string]time.Time{}, map[string]bool{}
	for _, shard := range found.Shards {
		row := rows[shard.ID]
		switch {
		case !row.Finished() || busy(row):
			continue
		case d.reported[shard.ID]:
			reported[shard.ID] = true
			continue
		case shard.Closed || found.Status != streams.StreamStatusEnabled:
			continue
		}
		first, suspected := d.since[shard.ID]
		if !suspected {
			first = time.Now()
		}
		if d.BegunAt.Sub(first) < skippedLeast {
			since[shard.ID] = first
			continue
		}
		reported[shard.ID] = true
		news = append(news, shard.ID)
	}
	d.since, d.reported = since, reported
	return news
}

// Undecided reports whether the next lists decide about a shard.
func (d *SkipDetector) Undecided() bool { return len(d.since) > 0 }

// Shards are those that are found to be skipped.
func (d *SkipDetector) Shards() []string { return slices.Sorted(maps.Keys(d.reported)) }
