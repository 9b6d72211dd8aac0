package rules_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/dynamill/dynamill/rules"
)

const file = `version: 1
table: { keys: [pk, sk], name: app }
entities:
  Post:    { key: { pk: "POST#${postId}", sk: "METADATA" } }
  Comment: { key: { pk: "POST#${postId}", sk: "COMMENT#$n#${commentId}" } }
rules:
  comments: { count: Comment, as: Post.comments }
`

func TestLoadKeepsTheFile(t *testing.T) {
	set, err := rules.Load("dynamill.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	if set.Table != "app" || set.Filename() != "dynamill.yaml" || set.Text() != file {
		t.Errorf("table %q, file %q:\n%s", set.Table, set.Filename(), set.Text())
	}
	if len(set.Warnings) != 1 || !set.Warnings[0].Warning || set.Warnings[0].Line != 5 {
		t.Errorf("warnings %v, want one of $n in line 5", set.Warnings)
	}
}

func TestLoadReturnsEveryProblem(t *testing.T) {
	_, err := rules.Load("dynamill.yaml", []byte(strings.ReplaceAll(file, "Post", "Pots")+"  more: { count: Post, as: Pots }\n"))
	var problems *rules.Problems
	if !errors.As(err, &problems) || len(problems.List) != 2 {
		t.Fatalf("error %v, want two problems", err)
	}
	for _, p := range problems.List {
		if p.File != "dynamill.yaml" || p.Line != 8 || !strings.Contains(err.Error(), strings.TrimSuffix(p.String(), "\n")) {
			t.Errorf("problem %+v is not in the text:\n%v", p, err)
		}
	}
}
