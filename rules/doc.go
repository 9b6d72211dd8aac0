// Package rules reads the rule file: it parses, checks and compiles it into a
// Set, whose methods say, purely, what one item causes under one rule. It
// knows no AWS client and imports change and internal/decimal only.
package rules
