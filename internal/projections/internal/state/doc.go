// Package state says what the rows of the state table are: the key of each kind of row, what a row
// holds, and the conditions under which it is written. docs/state-table.md describes the rows for operators.
//
// Each kind of row has a file, or shares that of the rows it belongs to. The package sends no
// request: a caller reads and writes rows through package table. Any text that another program
// has written in a row is read without a panic.
package state
