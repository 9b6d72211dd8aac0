// Package fleet is one worker's part in sharing a stream: when it reads the lease rows, which
// shards it takes and gives, which leases it renews, who lists the shards. The plan itself
// is in package leases. It makes calls to the lease table only.
package fleet
