package expression

import (
	_ "embed"
	"strings"
)

// reservedWords are the names that an expression must write as placeholders
// (developer guide, "Reserved words in DynamoDB").
//
//go:embed reserved.txt
var reservedWords string

var reservedSet = func() map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(reservedWords) {
		set[word] = true
	}
	return set
}()

func reserved(word string) bool { return reservedSet[strings.ToUpper(word)] }
