// Package dynamill keeps derived data in a DynamoDB single table true: copied attributes, counts,
// sums and mirror items, as a rule file declares them. Three lines of a program follow a table:
//
//	cfg, err := config.LoadDefaultConfig(ctx)
//	set, err := rules.Load("dynamill.yaml", ruleFile, projections.Kinds)
//	err = dynamill.Follow(ctx, dynamill.Config{AWS: cfg, Table: "app", Rules: set})
//
// Follow does what `dynamill run` does, in the caller's process. NewHandler makes the handler of a
// Lambda function that does the same. Package dynamilltest has a DynamoDB in memory for tests of a
// program and its rules. docs/library.md has more, docs/guarantees.md what is promised.
//
// This package wires the rooms together: an engine (projections), what feeds it (streamreader or
// handlers with replay), and the rules. It holds what cmd/dynamill and cmd/dynamill-lambda have in
// common with programs of one's own, and imports no room that only they need.
package dynamill
