package deletions_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/audits"
	"github.com/dynamill/dynamill/internal/proof/kindtest"
	"github.com/dynamill/dynamill/internal/rules/rulediff"
)

const file = `
version: 1
table: { keys: [pk, sk] }
entities:
  Post:    { key: { pk: "POST#${postId}", sk: "METADATA" }, unique: slug }
  Comment: { key: { pk: "POST#${postId}", sk: "COMMENT#${commentId}" } }
  Like:    { key: { pk: "USER#${userId}", sk: "LIKE#${likeId}" } }
rules:
  comments: { delete: Comment, with: Post }
  likes:    { delete: Like, with: Post, by: postId }
  named:    { delete: Like, with: Post, by: { slug: about } }
`

func TestRulesSayThatTheyDelete(t *testing.T) {
	s := kindtest.LoadText(t, file)
	const (
		reference = " + 1 WU per child that comes or goes, 2 WU if it changes its parent"
		replays   = "notes in the state table to which Post every Like belongs, when the pass reaches it; " +
			"it deletes no Like whose Post is gone already, " +
			"unless the stream still holds that deletion: `dynamill verify` lists the others"
	)
	for rule, want := range map[string]struct {
		cost, replays string
		actions       []string
	}{
		"comments": {"DELETES Comment items: 2 WU per child and KB, 4 WU for each 50 of them, and 1 WU, when a Post is deleted",
			"deletes no Comment whose Post is gone already, unless the stream still holds that deletion: `dynamill verify` lists the others",
			[]string{"dynamodb:ConditionCheckItem", "dynamodb:DeleteItem", "dynamodb:Query"}},
		"likes": {"DELETES Like items: 2 WU per child and KB, 4 WU for each 50 of them, and 1 WU, when a Post is deleted" + reference,
			replays, []string{"dynamodb:ConditionCheckItem", "dynamodb:DeleteItem"}},
		"named": {"DELETES Like items: 2 WU per child and KB, 6 WU for each 50 of them, and 8 WU, when a Post is deleted" +
			" + 4 WU per Post that comes" + reference, replays, []string{"dynamodb:ConditionCheckItem", "dynamodb:DeleteItem"}},
	} {
		r := kindtest.Rule(t, s, rule)
		if cost := r.Form.Cost().Text; cost != want.cost {
			t.Errorf("%s costs %q, want %q", rule, cost, want.cost)
		}
		if replays := r.Form.Replays(); replays != want.replays {
			t.Errorf("a replay of %s %q, want %q", rule, replays, want.replays)
		}
		var actions []string
		for _, need := range r.Form.Needs() {
			actions = append(actions, need.Action)
		}
		if diff := cmp.Diff(want.actions, actions); diff != "" {
			t.Error(diff)
		}
	}
	named := kindtest.Rule(t, s, "named")
	if !named.ByUnique || !named.Deletes() || len(named.Writes) > 0 {
		t.Errorf("the rule by a slug: %+v", named)
	}
}

func TestOtherJoinsAreOtherRules(t *testing.T) {
	s := kindtest.LoadText(t, file)
	prints := []string{}
	for _, r := range s.Rules {
		prints = append(prints, r.Fingerprint)
	}
	slices.Sort(prints)
	if len(slices.Compact(prints)) != len(s.Rules) {
		t.Errorf("%v", prints)
	}
	changed := rulediff.Compare(kindtest.Rule(t, s, "likes"), kindtest.Rule(t, s, "named"))
	if diff := cmp.Diff([]rulediff.FieldChange{{Field: "by", Old: "postId", New: "slug: about"}}, changed); diff != "" {
		t.Error(diff)
	}
}

func TestExplainTellsWhatWouldBeDeleted(t *testing.T) {
	s := kindtest.LoadText(t, file)
	post := change.Item{"pk": change.String("POST#1"), "sk": change.String("METADATA"), "slug": change.String("first")}
	like := change.Item{"pk": change.String("USER#1"), "sk": change.String("LIKE#1"), "postId": change.String("1"), "about": change.String("first")}
	said := func(before, after change.Image, pk, sk string) string {
		x := audits.Explain(s, change.Record{Key: change.Key{Partition: pk, Sort: sk}, Old: before, New: after})
		var lines []string
		for _, line := range x.Lines {
			lines = append(lines, line.Rule+": "+line.Effect+" => "+line.Write)
		}
		return strings.Join(lines, "\n")
	}
	for name, c := range map[string]struct{ got, want string }{
		"a post is deleted": {said(post, nil, "POST#1", "METADATA"), `
comments: the Post was deleted => delete every Comment of POST#1/METADATA, unless there is one again
likes: the Post was deleted => delete every Like of POST#1/METADATA, unless there is one again
named: the Post found as first was deleted => delete every Like that names it, unless there is one again
unique Post: takes back being found as first => clear it in the state table`},
		"a post comes": {said(nil, post, "POST#1", "METADATA"), `
comments: the Post is there => forget its former deletion, if there was one
likes: the Post is there => forget its former deletion, if there was one
unique Post: asks for being found as first => write it to the state table`},
		"a post changes": {said(post, change.Item{"pk": post["pk"], "sk": post["sk"], "slug": post["slug"], "title": change.String("new")},
			"POST#1", "METADATA"), ""},
		"a like comes": {said(nil, like, "USER#1", "LIKE#1"), `
likes: refers to POST#1/METADATA => delete it if that was deleted, and is not there
named: refers to first => delete it if that was deleted, and is not there`},
		"a like goes": {said(like, nil, "USER#1", "LIKE#1"), `
likes: the child is gone => drop its reference
named: the child is gone => drop its reference`},
	} {
		if diff := cmp.Diff(strings.TrimPrefix(c.want, "\n"), c.got); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}
