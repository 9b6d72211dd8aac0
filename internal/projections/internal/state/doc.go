// Package state says what the rows of the state table are: their keys, what they hold, and the conditions under which they are written.
// docs/state-table.md describes them for operators. Each kind of row has a file, or shares that of the rows it belongs to. The package
// sends no request. It reads any text that another program has written in a row without a panic.
package state
