// Package replay applies the rules to what is in a table already: it brings changed rules into force, mends what was lost,
// and makes good for stream records that were never read. It keeps the driver's part of promises 5 (beside the stream it
// changes nothing twice), 6 (rules can change) and 10 (nothing shows before it is complete).
//
// A source gives keys in pieces (package sources). Every item is rederived from what it is now, so a source may be old. Run
// works off several pieces at a time, and shares them with other processes.
// The state table holds the place in each piece, saved after every page. Next and WorkPiece do one piece at a time, for a
// caller that spreads the work over many short-lived processes.
//
// The package imports change, rules and internal rooms, and knows neither the engine nor the other drivers.
package replay
