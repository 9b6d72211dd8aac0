// Package projections is the engine: it brings what the rules derive in step
// with what records say.
//
// Its pure half plans: records in, intended changes out (plan.go, effects.go,
// stamp.go, pack.go). Its writing half applies them: ledger transactions
// (move.go, ledger.go), mirror items with claims (claims.go), their healing (mirrors.go), copies
// (children.go, parents.go) and roll-ups (rollup.go). Process is for drivers
// that follow a stream; Rederive is for seeding, retries and repair.
//
// It imports change, rules and the AWS SDK's DynamoDB client types, and no
// driver. It keeps promises 1 to 10 of docs/guarantees.md for whatever order,
// repetition and company its callers give it.
package projections
