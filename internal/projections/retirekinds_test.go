package projections

import (
	"strings"
	"testing"

	"github.com/dynamill/dynamill/change"
)

// remarkRules have a rule of each kind that socialRules have not, but for trees.
const remarkRules = orderedRules + `  mean:         { average: stars, of: Comment, as: Post.mean }
  label:        { set: { label: "${commentId}: ${text}", short: "${text}" }, of: Comment }
  gone:         { delete: Comment, with: Post }
`

// remarks fills a table with something for every rule of remarkRules.
func (w *world) remarks() {
	w.put(w.keyItem(thePost))
	for _, id := range []string{"1", "2", "3", "4"} {
		w.remark(id, change.Item{"at": number(id), "stars": number(id), "tags": change.List([]change.Value{s("red"), s("tag " + id)})})
	}
}

// nestedFolders fills a table with folders and files.
func (w *world) nestedFolders() {
	for _, it := range []change.Item{folder("a", "", "A"), folder("b", "a", "B"), folder("c", "b", "C"), folder("lost", "none", "L")} {
		it["nick"] = s(strings.ToLower(it["name"].Text()))
		w.put(it)
	}
	w.put(change.Item{"pk": s("FOLDER#c"), "sk": s("FILE#1"), "size": number("7")})
}

// TestARuleOfAnyOtherKindMovesWhatItWrote changes the kinds that socialRules have not.
func TestARuleOfAnyOtherKindMovesWhatItWrote(t *testing.T) {
	for _, test := range []struct {
		file    string
		fill    func(*world)
		changes map[string]ruleChange
	}{
		{remarkRules, (*world).remarks, map[string]ruleChange{
			"last N: fewer, and another attribute": {"recent",
				`recent: { last: 2, of: Comment, as: Post.recent, attributes: [text], order: at }`, []string{"_dm_recent"}},
			"last N: removed": {"recent", "", []string{"_dm_recent", "recent"}},
			"last becomes first": {"last-comment", `last-comment: { first: [text as lastText], of: Comment, to: Post, order: at }`,
				[]string{"_dm_last-comment", "lastAt"}},
			"min becomes max":        {"lowest", `lowest: { max: stars, of: Comment, as: Post.lowest }`, []string{"_dm_lowest"}},
			"min: another attribute": {"lowest", `lowest: { min: stars, of: Comment, as: Post.least }`, []string{"_dm_lowest", "lowest"}},
			"first of a derived item: another order": {"best",
				`best: { first: [text as bestText], of: Comment, to: Tag, each: tags as tag, order: at }`, []string{"_dm_best"}},
			"first of a derived item: removed": {"best", "", []string{"_dm_best", "bestText"}},
			"average: another amount":          {"mean", `mean: { average: stars * 2, of: Comment, as: Post.mean }`, []string{"_dm_mean"}},
			"average: removed":                 {"mean", "", []string{"_dm_mean", "mean"}},
			"set: one attribute of two": {"label", "label: { set: { label: \"${text}\" }, of: Comment }",
				[]string{"_dm_label", "short"}},
			"set: removed":    {"label", "", []string{"_dm_label", "label", "short"}},
			"delete: removed": {"gone", "", nil},
		}},
		{folderRules, (*world).nestedFolders, map[string]ruleChange{
			"tree: another name": {"paths", `paths: { tree: Folder, by: { folderId: parentId }, path: nick as path, lineage: folderIds }`,
				[]string{"_dm_paths"}},
			"sum up a tree: removed": {"tree-size", "", []string{"_dm_tree-size", "totalSize"}},
		}},
		{strings.Join(strings.Split(folderRules, "\n")[:8], "\n") + "\n", (*world).nestedFolders, map[string]ruleChange{
			"tree: no lineage": {"paths", `paths: { tree: Folder, by: { folderId: parentId }, path: name as path }`,
				[]string{"_dm_paths", "folderIds"}},
		}},
	} {
		for name, to := range test.changes {
			for _, driver := range []string{"seed", "replay"} {
				t.Run(name+"/"+driver, func(t *testing.T) { newWorld(t, test.file).changeAndBack(driver, test.fill, to) })
			}
		}
	}
}
