package rules

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
	load := func(text string) *Set {
		set, err := Load("dynamill.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
	for name, tt := range map[string]struct {
		rule     int
		old, new string
		want     []FieldChange
	}{
		"nothing":       {0, "author:", "writer:", nil},
		"attributes":    {0, "[name as userName]", "[nick as userName, avatar]", []FieldChange{{"copy", "name as userName", "avatar, nick as userName"}}},
		"by":            {0, "by: userId", "by: { userId: authorId }", []FieldChange{{"by", "userId", "userId: authorId"}}},
		"if missing":    {0, "by: userId }", "by: userId, if_missing: { userName: gone } }", []FieldChange{{"if_missing", "", `userName: "gone"`}}},
		"a key":         {0, `"USER#${userId}"`, `"U#${userId}"`, []FieldChange{{"key of User", "USER#${userId} / PROFILE", "U#${userId} / PROFILE"}}},
		"where":         {1, "ok == true", "ok", []FieldChange{{"where", "ok == true", "ok"}}},
		"no where":      {1, ", where: ok == true", "", []FieldChange{{"where", "ok == true", ""}}},
		"as":            {1, "Post.count", "Post.comments", []FieldChange{{"as", "Post.count", "Post.comments"}}},
		"what counts":   {1, "count: Comment", "count: Copy", []FieldChange{{"count", "Comment", "Copy"}}},
		"kind":          {2, "sum: score, of: Comment", "count: Comment", []FieldChange{{"kind", "sum", "count"}}},
		"amount":        {2, "sum: score", "sum: score * 2", []FieldChange{{"sum", "score", "score * 2"}}},
		"mirrored":      {3, "[text]", "[text, at]", []FieldChange{{"attributes", "text", "at, text"}}},
		"set":           {3, "[text] }", "[text], set: { kind: copy } }", []FieldChange{{"set", "", `kind: "copy"`}}},
		"from":          {0, "from: User", "from: Post", []FieldChange{{"from", "User", "Post"}, {"by", "userId", "postId: userId"}}},
		"what tells it": {3, `sk: "COMMENT#${commentId}" } }` + "\nrules", `sk: "COMMENT#${commentId}" }, match: { kind: x } }` + "\nrules", []FieldChange{{"match of Copy", "", `kind: "x"`}, {"set", "", `kind: "x"`}}},
	} {
		t.Run(name, func(t *testing.T) {
			next := strings.Replace(compared, tt.old, tt.new, 1)
			if name == "from" {
				next = strings.Replace(next, "by: userId", "by: { postId: userId }", 1)
			}
			if diff := cmp.Diff(tt.want, Compare(load(compared).Rules[tt.rule], load(next).Rules[tt.rule])); diff != "" {
				t.Error(diff)
			}
		})
	}
}
