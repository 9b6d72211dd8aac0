package rules_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamill/dynamill/internal/rules"
)

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
		want     []rules.FieldChange
	}{
		"nothing": {0, "author:", "writer:", nil},
		"attributes": {0, "[name as userName]", "[nick as userName, avatar]",
			[]rules.FieldChange{{"copy", "name as userName", "avatar, nick as userName"}}},
		"by": {0, "by: userId", "by: { userId: authorId }", []rules.FieldChange{{"by", "userId", "userId: authorId"}}},
		"if missing": {0, "by: userId }", "by: userId, if_missing: { userName: gone } }",
			[]rules.FieldChange{{"if_missing", "", `userName: "gone"`}}},
		"a key": {0, `"USER#${userId}"`, `"U#${userId}"`, []rules.FieldChange{{"key of User", "USER#${userId} / PROFILE",
			"U#${userId} / PROFILE"}}},
		"where":       {1, "ok == true", "ok", []rules.FieldChange{{"where", "ok == true", "ok"}}},
		"no where":    {1, ", where: ok == true", "", []rules.FieldChange{{"where", "ok == true", ""}}},
		"per":         {1, "Post.count", "Post.count, per: kind", []rules.FieldChange{{"per", "", "kind"}}},
		"of per":      {2, "Post.score", "Post.score, per: 'at[0:7]'", []rules.FieldChange{{"per", "", "at[0:7]"}}},
		"as":          {1, "Post.count", "Post.comments", []rules.FieldChange{{"as", "Post.count", "Post.comments"}}},
		"what counts": {1, "count: Comment", "count: Copy", []rules.FieldChange{{"count", "Comment", "Copy"}}},
		"kind":        {2, "sum: score, of: Comment", "count: Comment", []rules.FieldChange{{"kind", "sum", "count"}, {"value", "score", ""}}},
		"its value":   {2, "sum: score", "max: score * 2", []rules.FieldChange{{"kind", "sum", "max"}, {"value", "score", "score * 2"}}},
		"amount":      {2, "sum: score", "sum: score * 2", []rules.FieldChange{{"sum", "score", "score * 2"}}},
		"mirrored":    {3, "[text]", "[text, at]", []rules.FieldChange{{"attributes", "text", "at, text"}}},
		"set":         {3, "[text] }", "[text], set: { kind: copy } }", []rules.FieldChange{{"set", "", `kind: "copy"`}}},
		"from":        {0, "from: User", "from: Post", []rules.FieldChange{{"from", "User", "Post"}, {"by", "userId", "postId: userId"}}},
		"what tells it": {3, `sk: "COMMENT#${commentId}" } }` + "\nrules", `sk: "COMMENT#${commentId}" }, match: { kind: x } }` + "\nrules",
			[]rules.FieldChange{{"match of Copy", "", `kind: "x"`}, {"set", "", `kind: "x"`}}},
	} {
		t.Run(name, func(t *testing.T) {
			next := strings.Replace(compared, tt.old, tt.new, 1)
			if name == "from" {
				next = strings.Replace(next, "by: userId", "by: { postId: userId }", 1)
			}
			if diff := cmp.Diff(tt.want, rules.Compare(loadText(t, compared).Rules[tt.rule], loadText(t, next).Rules[tt.rule])); diff != "" {
				t.Error(diff)
			}
		})
	}
}
