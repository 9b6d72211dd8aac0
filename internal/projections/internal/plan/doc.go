// Package plan is the engine's pure half: records in, intended changes out.
//
// A Planner classifies records into Changes: ledger Moves between sets of effects, and what is to be healed, copied and rolled up besides.
// Rederive plans the same from an item. Effects that only a family reads it compares and keeps.
//
// It does no I/O. The same input gives the same output in the same order, on which package projections relies.
package plan
