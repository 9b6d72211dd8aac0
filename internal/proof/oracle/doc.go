// Package oracle judges the engine by a computation from scratch. Drift says
// where derived attributes and mirror items differ from what the rules ask for
// (promise 1, converged); Audit says where the engine's own state table does,
// by what docs/state-table.md says of it; Foreign says where the engine touched
// what is the application's (promise 8). Tests and the demonstration hold the
// engine to them, so the package shares no code with the engine: it imports
// rules, change and internal/decimal only, keeps no state, and reads nothing
// but the items that it is given.
package oracle
