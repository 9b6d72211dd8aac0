// Package histories tries to break the promises: it draws histories from seeds,
// lets the real engine and the real reader live through them in a simulated
// world with an adversary, and judges what is left in the tables by a
// computation from scratch.
//
// A History says what an application does, which faults may strike, and what
// befalls shards, tables and workers. Its seed decides the rest, so that a
// history that fails once fails always. Failing ones are shrunk to the shortest
// that still fails.
//
// It imports adversary, population, oracle, dynamosim and what they work on. Its
// tests are the proof; `make prove` runs them at length.
package histories
