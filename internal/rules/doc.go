// Package rules is the room of the rule file. Load parses it (package declared), checks it (packages check and conflicts) and
// compiles it (compile.go) into a Set: which entity an item is of (identify.go), and which item it refers to under a rule (join.go).
//
// The package names no kind of rule: Load is given the kinds (set.go), each of which reads its own keys
// (declared.Declaration). What one item causes is asked of the rule's Form (roles.go).
//
// Effects are a function of the item's key and image and of nothing else, which promises 1 (converged), 2 (exactly once) and
// 5 (backfill beside traffic) are built on. Promise 8 (users' items are theirs) is kept where keys are made: one that does
// not read back from its template as the values that it was made from is never used. Rules that write keys, reserved
// names or each other's attributes are refused, and circles, for promise 9 (no loops).
//
// It imports change, internal/decimal, internal/printable, rules/expr and a YAML parser. docs/rules.md is for authors of rule files.
package rules
