// Package declared reads the YAML of a rule file into declarations: it knows which keys there are and what
// they hold, and nothing of how they hang together. It asks each kind of rule for its keys.
package declared

import (
	"github.com/dynamill/dynamill/internal/rules/internal/document"
	"github.com/dynamill/dynamill/internal/rules/internal/templates"
)

// Bounds of a rule file.
const (
	EntitiesMax = 200
	RulesMax    = 500
)

// What a rule file says, with places, before anything is checked against
// anything else.
type (
	// Word is a text with its place.
	Word struct {
		At   document.Place
		Text string         // a name without its backquotes
		Node *document.Node // the whole value that it is part of

		Backquoted bool
		Expression bool // where a name or an expression may stand
	}
	// File is a whole rule file.
	File struct {
		Table    Table
		Entities []Entity
		Rules    []*Declaration
	}
	// Table is what the file says of the table.
	Table struct {
		Name, TypeAttribute Word
		Keys                []Word // one or two; none if they could not be read
		Case                templates.Case
	}
	// Entity is one entity.
	Entity struct {
		Name   Word
		Key    []FieldWord // attribute: template
		Unique Word
		Match  []Constant

		Derived                 Word // given if rules make its items, and the file says so
		Expire, ExpireAttribute Word
	}
	// FieldWord is a key with its text.
	FieldWord struct{ Name, Value Word }
)
