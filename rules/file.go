package rules

// What a rule file says, with places, before anything is checked against
// anything else.
type (
	// Word is a text with its place.
	Word struct {
		place
		text string
		node *node // the whole value that it is part of
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
