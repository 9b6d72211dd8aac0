// Package projections is the engine: it brings what the rules derive in step
// with what records say.
//
// Its pure half is packages plan, effects, leftovers and pack, in internal: records
// in, intended changes out. This package is the writing half, which applies them in their order.
// Package ledger moves the ledger entries. Each kind of rule applies its own part
// (internal/kinds): a copy rule writes on children, a mirror rule heals its items,
// and a rule that adds up shows its totals when process.go says so. Process is for
// drivers that follow a stream; Rederive is for seeding, retries and repair.
//
// Below it, in internal, requests are sent by package table, rows of the state
// table are package state's, items are written through package target, the rules
// in force are package registry's, and package sightings tells what was seen.
// Package seeding says which pass over a table comes next, package sweep goes over
// the state table, and package host declares what a kind of rule can do.
//
// Beside it, package audits compares what is derived with what items ask for, through
// package auditing, which reads, judges and mends, and package audit, which only decides;
// package inspect reads the state table without a rule file.
//
// A run can be done over as it was: no request, and no order of requests,
// depends on the order of a map. Of calls that are under way together, which
// comes first is left to their callers. Drawn at random are names (of the state
// table's incarnation, of parkings) and the length of pauses.
//
// It imports change, rules and the AWS SDK's DynamoDB client types, and no
// driver. It keeps promises 1 to 10 of docs/guarantees.md for whatever order,
// repetition and company its callers give it.
package projections
