// Package architecture holds the shape of the module as a test: which room may
// know which, how long a file may grow, how the rooms are called. A broken rule
// fails `go test` with the rule and its reason, before habit makes it the new shape.
//
// It reads files with go/parser, most of them only up to their imports, and so sees
// files of every platform. All of it is tests: they import the standard library and, for the words of the kinds of
// rules, projections.
package architecture
