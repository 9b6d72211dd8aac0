// Package plan is the engine's pure half: records in, intended changes out.
//
// A Planner classifies records (planner.go) into Changes: ledger Moves between
// Effects, and what is to be healed, copied and rolled up besides. Rederive plans the
// same from an item as it is. Package pack says what a Move changes beside its
// entry. An effect that is no contribution, locator or parked item is its family's own:
// the planner compares and keeps it, and only the family reads it.
//
// It does no I/O and knows no AWS client: it imports change, rules and
// internal/decimal only. The same input gives the same output in the same
// order, whatever order Go's maps have; package projections, which writes what
// is planned here, relies on that.
package plan
