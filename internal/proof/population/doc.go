// Package population draws what a random fault history of the engine is about:
// a rule set, and the items that an application with that rule set writes.
//
// grammar.go and its neighbours draw rule files (layout.go: tables, entity.go:
// entities, sentences.go: rules, condition.go: conditions), sets holds
// handwritten ones. Whatever the rule file, file.go reads from it how keys are
// made and what is joined with what, vocabulary.go decides from that which few
// values each name can have, and itemkind.go draws items. The pools are tiny, so
// that a hundred writes meet at the same parents, groups, mirror items and
// unique values again and again, and they hold what goes wrong in practice:
// missing, empty and mistyped values, a number where a text is usual, a # that
// smuggles past a template. In a wild population (wild.go) they hold what is
// at the edges of DynamoDB as well.
//
// Everything is a function of the random source. The package is for tests; it
// imports internal/story, rules, their expr, change and internal/decimal.
package population
