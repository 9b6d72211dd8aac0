// Package stamp spells what the engine writes on items and rows: versions, which sort as they compare, and stamps, which
// hold a version between a context and a digest. docs/state-table.md is its legend.
package stamp
