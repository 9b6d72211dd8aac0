// Package architecture holds the shape of the module as a test: which room may
// know which, how long a file may grow, how the rooms are called. A broken rule
// fails `go test` with the rule and its reason, before habit makes it the new shape.
//
// It reads import clauses only (go/parser), so it needs neither a build nor a
// module download, and sees files of every platform. It imports the standard
// library only and is imported by nothing.
package architecture
