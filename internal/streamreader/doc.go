// Package streamreader follows a DynamoDB stream from a process of its own: it finds the stream's
// shards, hands each shard's records in order to a Processor, and keeps in a lease table how far
// each shard is done. It holds the loop of one worker; the parts are in internal/stream, and
// docs/architecture.md tells how workers share a stream. No part knows rules or projections.
//
// It keeps these promises of docs/guarantees.md:
//
//   - At least once, never less (promise 2 builds on it): a checkpoint names a record only when it
//     and all before it in its shard are done.
//   - Nothing is lost in silence (promise 7): records that the stream dropped unread end the reader
//     with a TrimmedError; a stream that is disabled and read to its end with ErrStreamEnded.
//   - Parents before children, over every generation: the one order between shards that DynamoDB documents.
//
// What happens to the row of a shard:
//
//	free ──claim──► held ──renew, save──► held ──SHARD_END──► finished
//	  ▲               │
//	  ├────release────┤
//	  └──evicted by the lister── expired ◄──no write for a term── held
//
// No two clocks are compared (leases.Held), but both must run at one speed, within the margin, also while
// a machine is suspended. Where that fails, a checkpoint is still refused, and repeated effects must do no harm.
package streamreader
