package plan

import "iter"

// OrderedMap holds the parts of one kind that a batch asks for, each under what it is
// about, in the order in which they were first asked for. A map would hand them
// out in another order every time, and no run could be done over as it was.
type OrderedMap[K comparable, P any] struct {
	parts map[K]*P
	order []K
}

// Of returns the part under a key; nil if there is none. A nil OrderedMap has none.
func (a *OrderedMap[K, P]) Of(key K) *P {
	if a == nil {
		return nil
	}
	return a.parts[key]
}

// Put sets the part under a key.
func (a *OrderedMap[K, P]) Put(key K, part *P) {
	if a.parts == nil {
		a.parts = map[K]*P{}
	}
	if a.parts[key] == nil {
		a.order = append(a.order, key)
	}
	a.parts[key] = part
}

// OrPut returns the part under a key, which is first if there was none.
func (a *OrderedMap[K, P]) OrPut(key K, first P) *P {
	if part := a.Of(key); part != nil {
		return part
	}
	a.Put(key, &first)
	return a.parts[key]
}

// All ranges over the parts.
func (a *OrderedMap[K, P]) All() iter.Seq2[K, *P] {
	return func(yield func(K, *P) bool) {
		for _, key := range a.order {
			if !yield(key, a.parts[key]) {
				return
			}
		}
	}
}

// Keys are what the parts are about, in their order. They are not to be changed.
func (a *OrderedMap[K, P]) Keys() []K { return a.order }
