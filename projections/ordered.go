package projections

import "iter"

// asked are the parts of one kind that a batch asks for, each under what it is
// about, in the order in which they were first asked for. A map would hand them
// out in another order every time, and no run could be done over as it was.
type asked[K comparable, P any] struct {
	parts map[K]*P
	keys  []K
}

// of returns the part under a key; nil if there is none.
func (a *asked[K, P]) of(key K) *P { return a.parts[key] }

// put sets the part under a key.
func (a *asked[K, P]) put(key K, part *P) {
	if a.parts == nil {
		a.parts = map[K]*P{}
	}
	if a.parts[key] == nil {
		a.keys = append(a.keys, key)
	}
	a.parts[key] = part
}

// all ranges over the parts.
func (a *asked[K, P]) all() iter.Seq2[K, *P] {
	return func(yield func(K, *P) bool) {
		for _, key := range a.keys {
			if !yield(key, a.parts[key]) {
				return
			}
		}
	}
}
