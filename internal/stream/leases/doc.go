// Package leases says which worker reads which shard of a stream: the rows, the two
// stores that keep them, the pure plan that divides the shards between
// workers, and how long the owner of a lease may act under it. It
// knows nothing of streams and their records, and imports the AWS SDK's
// DynamoDB client only.
package leases
