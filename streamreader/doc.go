// Package streamreader follows a DynamoDB stream from a process of its own: it
// finds the stream's shards, reads parents before their children, hands each
// shard's records in order to a Processor, and keeps in a lease table how far
// each shard is done. It imports change, internal/attributes and the AWS SDK's
// clients for streams and, for the lease table, DynamoDB; it knows nothing of
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
// One process reads all shards of the stream. The lease rows have the form in
// which several processes can share them, and each write to one is conditional
// on its counter, so that a second process is noticed (ErrLeaseLost).
package streamreader
