// Package oracle computes from scratch what every derived attribute and mirror
// item of a table must be, and says where the table differs from it. Tests and
// the demonstration hold the engine to it, so it shares no code with the
// engine: it imports rules, change and internal/decimal only, keeps no state, and reads nothing
// but the items that it is given. It is the judge of promise 1 (converged).
package oracle
