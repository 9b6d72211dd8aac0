package rules

import "github.com/dynamill/dynamill/internal/rules/internal/document"

// What a rule file says, with places, before anything is checked against
// anything else.
type (
	// Word is a text with its place.
	Word struct {
		at   document.Place
		text string
		node *document.Node // the whole value that it is part of
	}
	fileDecl struct {
		table    tableDecl
		entities []entityDecl
		rules    []*Declaration
	}
	tableDecl struct {
		name, typeAttribute Word
		keys                []Word // one or two; none if they could not be read
	}
	entityDecl struct {
		name   Word
		key    []fieldWord // attribute: template
		unique Word
		match  []Constant
	}
	fieldWord struct{ name, value Word }
)
