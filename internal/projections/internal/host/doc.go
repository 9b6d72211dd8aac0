// Package host is what the kinds of rules share when they send requests: the tables, the rules in
// force, counters, parked records, and the bound of corrections. A kind's own requests stand with
// the kind (internal/kinds); the engine runs them in their order.
package host
