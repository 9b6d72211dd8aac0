package rules

import (
	"github.com/dynamill/dynamill/internal/rules/internal/check"
	"github.com/dynamill/dynamill/internal/rules/internal/declared"
	"github.com/dynamill/dynamill/internal/rules/internal/document"
	"github.com/dynamill/dynamill/internal/rules/internal/templates"
)

// Names that kinds, and callers of Load, need of the packages that read and check a rule file.
type (
	Declaration = declared.Declaration
	Word        = declared.Word
	Written     = declared.Written
	Constant    = declared.Constant
	Traits      = declared.Traits
	Key         = declared.Key
	Expression  = declared.Expression
	WholeKey    = declared.WholeKey
	Equals      = check.Equals
	KeyText     = templates.KeyText
	KeyCase     = templates.Case
	Problem     = document.Problem
	Problems    = document.Problems
)

// What can stand under the word of a kind.
const (
	AList   = declared.AList
	ANumber = declared.ANumber
)
