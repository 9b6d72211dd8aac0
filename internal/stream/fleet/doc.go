// Package fleet is one worker's part in sharing a stream: when the worker reads the lease
// rows, which leases it holds and renews, how it seeks more shards, and how one of the
// workers becomes the lister. Package leases makes the plan. The package calls the lease
// table only.
package fleet
