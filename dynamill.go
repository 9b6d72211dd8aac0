// Package dynamill keeps derived data in a DynamoDB single table true: copied attributes, counts,
// sums and mirror items, as a rule file declares them. Three lines of a program follow a table:
//
//	cfg, err := config.LoadDefaultConfig(ctx)
//	set, err := rules.Load("dynamill.yaml", ruleFile)
//	err = dynamill.Follow(ctx, dynamill.Config{AWS: cfg, Table: "app", Rules: set})
//
// Follow does what `dynamill run` does, in the caller's process. NewHandler makes the handler of a
// Lambda function that does the same. Package dynamilltest has a DynamoDB in memory for tests of a
// program and its rules. docs/library.md has more, docs/guarantees.md what is promised.
//
// This package wires the rooms together: the engine (internal/projections), its drivers (the stream
// reader, or internal/handlers with internal/replay), and the rules. cmd/dynamill and cmd/dynamill-lambda
// are built on it. It imports no room that they alone need.
package dynamill
