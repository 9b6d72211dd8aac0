//go:build teeth

package guard

import "sync/atomic"

// off holds the guards that are turned off, one bit each.
var off atomic.Uint64

const _ uint64 = 1 << (guardCount - 1) // every guard has its bit

// Off reports whether a guard is turned off.
func Off(g Guard) bool { return off.Load()&(1<<g) != 0 }

// InForce runs f with all guards in place: who judges must not be blind to what
// is turned off.
func InForce(f func()) {
	before := off.Swap(0)
	defer off.Store(before)
	f()
}

// Without runs f with a guard turned off. It is for one goroutine at a time.
func Without(g Guard, f func()) {
	off.Store(1 << g)
	defer off.Store(0)
	f()
}
