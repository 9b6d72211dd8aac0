// Package switches turns guards off at run time. Only a build with the overlay of
// package mutants asks them; there every guarded package imports this one, so it
// imports nothing of the module.
package switches

import "sync/atomic"

// off is the name of the guard that is turned off; nil if all are in place.
var off atomic.Pointer[string]

// Off reports whether a guard is turned off.
func Off(guard string) bool {
	name := off.Load()
	return name != nil && *name == guard
}

// Condition returns a condition of DynamoDB that is one of the guards. If the guard is
// turned off, it always holds; it still uses the same names and values, because
// DynamoDB refuses unused ones.
func Condition(guard, condition string) string {
	if Off(guard) {
		return "(" + condition + " OR attribute_not_exists(nobodyHasThis))"
	}
	return condition
}

// InForce runs f with all guards in place: a judge that shares code with the
// engine must not miss what is turned off.
func InForce(f func()) {
	before := off.Swap(nil)
	defer off.Store(before)
	f()
}

// Without runs f with a guard turned off. It is for one goroutine at a time.
func Without(guard string, f func()) {
	off.Store(&guard)
	defer off.Store(nil)
	f()
}
