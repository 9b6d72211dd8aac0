// Package registry binds the rules of a file to those that the state table has in force: it opens the
// state table, registers new rules under a new epoch, retires those that are not in the file any
// more, compiles former ones again, and says what a file would change.
//
// A Registry then tells a running engine when the rules that it knows are not all there are.
package registry
