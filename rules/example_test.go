package rules_test

import (
	"fmt"

	"github.com/dynamill/dynamill/rules"
)

// Load names every problem of a file, with its place and what to do about it.
func ExampleLoad() {
	_, err := rules.Load("dynamill.yaml", []byte(`version: 1
table: { keys: [pk, sk] }
entities:
  User:    { key: { pk: "USER#${userId}", sk: "PROFILE" } }
  Comment: { key: { pk: "POST#${postId}", sk: "COMMENT#${commentId}" } }
rules:
  author: { copy: name as userName, from: Usr, to: Comment, by: userId }
`))
	fmt.Println(err)
	// Output:
	// dynamill.yaml:7:43: rule.unknown_entity: there is no entity "Usr"
	//        7 |   author: { copy: name as userName, from: Usr, to: Comment, by: userId }
	//          |                                           ^^^
	//     hint: did you mean User?
}
