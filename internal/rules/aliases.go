package rules

import (
	"github.com/dynamill/dynamill/internal/rules/internal/check"
	"github.com/dynamill/dynamill/internal/rules/internal/declared"
)

// Names that kinds need of the packages that read and check a rule file.
type (
	// Declaration is one rule of a file, as its kind reads and checks it.
	Declaration = declared.Declaration
	// Word is a text with its place.
	Word = declared.Word
	// Constant is an attribute with its value, as a rule file says it.
	Constant = declared.Constant
	// Traits are what the language must know of a kind.
	Traits = declared.Traits
	// Key is a key of a rule.
	Key = declared.Key
	// Expression is a key of a rule that holds an expression.
	Expression = declared.Expression
	// WholeKey says why a kind's rules cannot join by a Unique value.
	WholeKey = declared.WholeKey
	// Equals is one attribute that an entity's items must have.
	Equals = check.Equals
)
