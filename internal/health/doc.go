// Package health decides how a table is followed: a worker or a function applies
// its stream, it is behind, nothing applies it, or records are lost.
//
// It is pure. The caller reads lease rows, stream and event source mappings, and
// hands over what it found as Facts; Judge returns the state and the sentence that
// people read. It imports no other room.
package health
