package change

import (
	"iter"
	"maps"
	"time"
)

// Record is one change of one item, as a stream or a test reports it.
type Record struct {
	Key      Key
	Position Position
	Old, New Image     // nil where the item did not exist before, or does not after
	Created  time.Time // floored to the second by DynamoDB; for showing lag, never for deciding
	Expired  bool      // a deletion by DynamoDB's time to live
}

// Image is one state of an item, read lazily: only what is looked up is decoded.
type Image interface {
	// Lookup returns the attribute's value; the zero Value if the item has no such attribute.
	Lookup(name string) Value
	// All ranges over every attribute, in no particular order.
	All() iter.Seq2[string, Value]
}

// Item is an Image that is decoded already.
type Item map[string]Value

// Lookup returns the attribute's value.
func (it Item) Lookup(name string) Value { return it[name] }

// All ranges over the attributes.
func (it Item) All() iter.Seq2[string, Value] { return maps.All(it) }
