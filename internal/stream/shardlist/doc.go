// Package shardlist lists a stream's shards and decides from a list and the lease
// rows which rows to make, which to delete, and which shards lost records or are
// skipped. Parents come before their children, over every generation.
package shardlist
