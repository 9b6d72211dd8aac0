package rulediff_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamill/dynamill/internal/proof/kindtest"
	"github.com/dynamill/dynamill/internal/rules/rulediff"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const compared = `
version: 1
table: { keys: [pk, sk] }
entities:
  User:    { key: { pk: "USER#${userId}", sk: "PROFILE" } }
  Post:    { key: { pk: "POST#${postId}", sk: "METADATA" } }
  Comment: { key: { pk: "POST#${postId}", sk: "COMMENT#${commentId}" } }
  Copy:    { key: { pk: "COPY#${postId}", sk: "COMMENT#${commentId}" } }
rules:
  author: { copy: [name as userName], from: User, to: Comment, by: userId }
  count:  { count: Comment, as: Post.count, where: ok == true }
  score:  { sum: score, of: Comment, as: Post.score }
  list:   { mirror: Comment, as: Copy, attributes: [text] }
`

func TestRulesAreComparedInTheWordsOfTheFile(t *testing.T) {
	for name, tt := range map[string]struct {
		rule     int
		old, new string
		want     []rulediff.FieldChange
	}{
		"nothing": {0, "author:", "writer:", nil},
		"attributes": {0, "[name as userName]", "[nick as userName, avatar]",
			[]rulediff.FieldChange{{"copy", "name as userName", "avatar, nick as userName"}}},
		"by": {0, "by: userId", "by: { userId: authorId }", []rulediff.FieldChange{{"by", "userId", "userId: authorId"}}},
		"if missing": {0, "by: userId }", "by: userId, if_missing: { userName: gone } }",
			[]rulediff.FieldChange{{"if_missing", "", `userName: "gone"`}}},
		"a key": {0, `"USER#${userId}"`, `"U#${userId}"`, []rulediff.FieldChange{{"key of User", "USER#${userId} / PROFILE",
			"U#${userId} / PROFILE"}}},
		"where":       {1, "ok == true", "ok", []rulediff.FieldChange{{"where", "ok == true", "ok"}}},
		"no where":    {1, ", where: ok == true", "", []rulediff.FieldChange{{"where", "ok == true", ""}}},
		"per":         {1, "Post.count", "Post.count, per: kind", []rulediff.FieldChange{{"per", "", "kind"}}},
		"of per":      {2, "Post.score", "Post.score, per: 'at[0:7]'", []rulediff.FieldChange{{"per", "", "at[0:7]"}}},
		"as":          {1, "Post.count", "Post.comments", []rulediff.FieldChange{{"as", "Post.count", "Post.comments"}}},
		"what counts": {1, "count: Comment", "count: Copy", []rulediff.FieldChange{{"count", "Comment", "Copy"}}},
		"kind":        {2, "sum: score, of: Comment", "count: Comment", []rulediff.FieldChange{{"kind", "sum", "count"}, {"value", "score", ""}}},
		"its value":   {2, "sum: score", "max: score * 2", []rulediff.FieldChange{{"kind", "sum", "max"}, {"value", "score", "score * 2"}}},
		"amount":      {2, "sum: score", "sum: score * 2", []rulediff.FieldChange{{"sum", "score", "score * 2"}}},
		"mirrored":    {3, "[text]", "[text, at]", []rulediff.FieldChange{{"attributes", "text", "at, text"}}},
		"set":         {3, "[text] }", "[text], set: { kind: copy } }", []rulediff.FieldChange{{"set", "", `kind: "copy"`}}},
		"from":        {0, "from: User", "from: Post", []rulediff.FieldChange{{"from", "User", "Post"}, {"by", "userId", "postId: userId"}}},
		"what tells it": {3, `sk: "COMMENT#${commentId}" } }` + "\nrules", `sk: "COMMENT#${commentId}" }, match: { kind: x } }` + "\nrules",
			[]rulediff.FieldChange{{"match of Copy", "", `kind: "x"`}, {"set", "", `kind: "x"`}}},
	} {
		t.Run(name, func(t *testing.T) {
			next := strings.Replace(compared, tt.old, tt.new, 1)
			if name == "from" {
				next = strings.Replace(next, "by: userId", "by: { postId: userId }", 1)
			}
			old, new := kindtest.LoadText(t, compared), kindtest.LoadText(t, next)
			if diff := cmp.Diff(tt.want, rulediff.Compare(old.Rules[tt.rule], new.Rules[tt.rule])); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRulesOfEveryTwoKindsAreCompared(t *testing.T) {
	var b strings.Builder
	for _, file := range []string{"everything.yaml", "blog.yaml", "shop.yaml"} {
		src, err := os.ReadFile("../testdata/good/" + file)
		if err != nil {
			t.Fatal(err)
		}
		set := kindtest.LoadText(t, string(src))
		for _, old := range set.Rules {
			for _, new := range set.Rules {
				for _, c := range rulediff.Compare(old, new) {
					fmt.Fprintf(&b, "%s -> %s: %s: %q %q\n", old.Name, new.Name, c.Field, c.Old, c.New)
				}
			}
		}
	}
	const golden = "testdata/compared.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("want (-) and got (+), run with -update to accept:\n%s", diff)
	}
}
