// Package adversary lets real engines and readers work on a simulated DynamoDB
// while one hand decides, from a seed, in which order their calls take effect,
// which of them fail, which worker crashes, which freezes and wakes, and in what pieces
// records are delivered.
//
// It works inside a testing/synctest bubble. Every call that a worker makes
// waits at the Gate. When all goroutines wait, the conductor (the goroutine that
// owns the Crew) lets one of them through, carries it out, and waits
// again; so there is never more than one thing under way, and the same seed
// gives the same run. Time passes only when the conductor lets it, and then by
// more than any backoff can draw at random.
//
// It imports dynamosim, projections, streamreader, rules, change and
// internal/attributes, and knows nothing of the judges of what comes of it.
package adversary
