// Package rules is the room of the rule file. Load parses it (package declared:
// YAML to declarations with their places), checks it (package check: all problems
// at once, each with a place, a code and what to do) and compiles it (compile.go)
// into a Set: which entity an item is of (identify.go), and which item it refers
// to under a rule (join.go).
//
// The package names no kind of rule: Load is given the kinds (set.go), each of which
// reads its own keys (declared.Declaration). A caller asks a rule for its role: it has a
// parent, makes items, or displays what it works out. What one item causes is asked
// of the rule's Form (roles.go).
//
// Effects are pure: a function of the item's key and image and of nothing
// else, which is what promises 1 (converged), 2 (exactly once) and 5 (backfill
// beside traffic) are built on. Promise 8 (users' items are theirs) is kept
// here where keys are made: a key that does not read back from its template as
// the values that it was made from is never used, and rules that write keys,
// reserved names or each other's attributes are refused. Promise 9 (no loops)
// holds because circles are refused.
//
// It imports change, internal/decimal, internal/printable, rules/expr and a YAML parser, and knows
// no AWS client. docs/rules.md is the reference for authors of rule files.
package rules
