// Package projections is the engine as a program sees it that follows a table: what the engine
// needs of DynamoDB, the errors with which it refuses to start, and what it tells of its work.
//
// A program starts the engine with dynamill.Follow or dynamill.NewHandler. It implements Client for
// a DynamoDB of its own, finds a *SetupError or a *RulesChangedError with errors.As, and reads
// the counts from a dynamill.Running.
//
// The engine itself is internal/projections. This package holds declarations alone, so that each
// room of the engine can use them. It imports change and the AWS SDK's DynamoDB client.
package projections
