// Package streamapi calls DynamoDB Streams: it bounds the time of a call, opens
// shards, decodes records, says what a failed call means, and how long to wait for
// the next try. It imports change, internal/attributes, the leases' errors and the
// AWS SDK's client for streams.
package streamapi
