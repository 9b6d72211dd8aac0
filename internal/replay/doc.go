// Package replay applies the rules to what is in a table already: it brings
// changed rules into force, mends what was lost, and makes good for stream
// records that were never read. It keeps promises 5 (beside the stream it changes
// nothing twice), 6 (rules can change) and 10 (nothing shows before it is
// complete), as far as they are a driver's; the engine does the rest.
//
// A Source gives keys, in pieces: a parallel scan, an export, an archive of
// records, a list. Only keys: every item is rederived from what it is now, so a
// source may be as old as it likes. Run works off the pieces, several at a time,
// and shares them with other processes that are started alike. How far each piece
// is stands in the state table, saved after every page: a kill loses at most the
// pages in hand. Next and WorkPiece do the same one piece at a time, for a caller that
// spreads the work over many short-lived processes.
//
// The package imports change, rules and internal rooms, and knows neither the engine nor
// the other drivers: an Engine is what it declares.
package replay
