package preview

import (
	"slices"
	"testing"
)

// TestCheckNotesCopiesThatEchoChanges has a count of comments that is copied to these comments, and to others.
func TestCheckNotesCopiesThatEchoChanges(t *testing.T) {
	set := loaded(t, `version: 1
table: { keys: [pk, sk] }
entities:
  Post:    { key: { pk: "POST#${postId}", sk: "METADATA" } }
  Comment: { key: { pk: "POST#${postId}", sk: "COMMENT#${commentId}" } }
  Link:    { key: { pk: "POST#${postId}", sk: "LINK#${linkId}" } }
rules:
  count:   { count: Comment, as: Post.comments }
  copied:  { copy: comments as ofComments, from: Post, to: Comment }
  title:   { copy: title, from: Post, to: Comment }
  to-link: { copy: comments, from: Post, to: Link }
`)
	want := []string{"copied reads what count works out from the Comment items of a Post: each change of one of them is written to all " +
		"of them"}
	if got := echoNotes(set); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
