// Package architecture holds the shape of the module as a test: which room may
// know which, how long a file may grow, how the rooms are called. A broken rule
// fails `go test` with the rule and its reason, before habit makes it the new shape.
//
// It reads files with go/parser, most of them only up to their imports, and so sees
// files of every platform. It imports the standard library only and is imported by
// nothing. Its tests ask projections for the words of the kinds of rules.
package architecture
