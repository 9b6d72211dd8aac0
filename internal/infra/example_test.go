package infra_test

import (
	"fmt"
	"log"

	"github.com/dynamill/dynamill/internal/infra"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/rules"
)

func ExampleFilters() {
	set, err := rules.Load("dynamill.yaml", []byte(`
version: 1
table: { keys: [pk, sk] }
entities:
  Post:    { key: { pk: "POST#${postId}", sk: "METADATA" } }
  Comment: { key: { pk: "POST#${postId}", sk: "COMMENT#${commentId}" } }
rules:
  comment-count: { count: Comment, as: Post.commentCount }
`), projections.Kinds)
	if err != nil {
		log.Fatal(err)
	}
	for _, pattern := range infra.Filters(set, nil) {
		fmt.Println(pattern)
	}
	// Output: {"dynamodb":{"Keys":{"pk":{"S":[{"prefix":"POST#"}]},"sk":{"S":[{"prefix":"COMMENT#"},"METADATA"]}}}}
}
