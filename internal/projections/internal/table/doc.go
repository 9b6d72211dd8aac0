// Package table sends the engine's requests to the user's table and the state table. Each is tried again while that may help, counted,
// metered for its rule, and kept within a budget of writes. Contend is the loop of all work that other writers may undo.
// It knows no rule: which rows there are, and what they say, is package state's.
package table
