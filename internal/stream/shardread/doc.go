// Package shardread reads one shard from its checkpoint to its end: it fetches
// pages ahead within a bound for all shards, hands batches to the processor, and
// checkpoints what is done. The lease that its caller holds says whether it may.
//
// A checkpoint never passes a record that is not done (frontier), and a shard is
// marked SHARD_END only after everything in it was processed. Records that the stream
// has dropped unread end the reading with a TrimmedError.
package shardread
