// Package streamreader follows a DynamoDB stream from a process of its own: it
// finds the stream's shards, reads parents before their children, hands each
// shard's records in order to a Processor, and keeps in a lease table how far
// each shard is done. The package itself holds the loop of one worker. What the loop is
// made of is in internal/stream: shardread reads a shard, shardlist decides from a list of
// the shards what to make of them, leases keeps and divides the leases, fleet is this
// worker's part in that, and streamapi makes the calls to the stream. None of them knows
// rules or projections.
//
// It keeps these promises of docs/guarantees.md:
//
//   - At least once, never less (promise 2 builds on it): a checkpoint names a
//     record only when it and all before it in its shard are done, and a shard
//     is marked SHARD_END only after everything in it was processed.
//   - Nothing is lost in silence (promise 7): whatever the stream no longer
//     holds although it was not read ends the reader with a TrimmedError; a
//     stream that is disabled and read to its end with ErrStreamEnded.
//   - Parents before children, the one order between shards that DynamoDB
//     documents, over every generation.
//
// # Several workers
//
// Processes that have the stream and the lease table in common divide the
// shards between them (package leases says how). They know of each other by
// the rows alone:
//
//	free ──claim──► held ──renew, save──► held ──SHARD_END──► finished
//	  ▲               │
//	  ├────release────┤
//	  └──evicted by the lister── expired ◄──no write for a term── held
//
// A worker that has less than its share, and finds nothing free, makes a row of its own,
// the seeker's row. If a scan shows an owner with more than its share such a row, the
// owner releases shards after their batch: as many as the seeker has, and at least one.
// The seeker claims what is free, and deletes its row when it has its share.
//
// The term is the owner's own, which its row names. Every write of an owner raises
// the row's counter and is conditional on it and on the owner. A worker that waits
// for a lease to expire measures the term on its own monotonic clock, from when it first saw the counter as it is; the owner
// measures it from the start of the call that raised it, which was before, and
// stops a margin earlier (leases.Held). So no two clocks are ever compared. This
// assumes that both run at the same speed, within the margin, also while a
// machine is suspended; where that fails, a checkpoint is still refused, and
// the processor's effects must be idempotent, as always.
//
// A worker that changes shared state increments News in the stream's own row
// (scan_schedule.go of package fleet); the other workers read that row often and all rows rarely. If a
// worker misses News, it scans a little later: no promise depends on it.
//
// The rows of shards are made and deleted by one worker: the owner of the
// stream's own row, whose key is the stream's ARN. The others never call
// DescribeStream. What they must know of a shard (where it begins, whether its
// parent was gone when it was found) is in its row; that a parent's row is
// missing proves nothing, for a scan is not a picture of one moment.
package streamreader
