package projections

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dynamill/dynamill/change"
)

// TestContestedValueThatIsGivenUpDuringSeedingIsOffTheList changes the rules that count by a
// unique value. Between the passes that bring the new rules into force, items give up a value
// that is listed.
func TestContestedValueThatIsGivenUpDuringSeedingIsOffTheList(t *testing.T) {
	// The second file adds a rule that shares the locator, the third takes those away that are live.
	added := oddRules + "  on-shelf: { count: Doc, as: Folder.shelved, by: { slug: shelf } }\n"
	changed := withoutLines(added, "in-folder:", "notes-in:", "folder-docs:")
	for name, leave := range map[string]func(w *world){
		"all items are deleted": func(w *world) {
			w.delete(change.Key{Partition: "FOLDER#f1"})
			w.delete(change.Key{Partition: "FOLDER#f2"})
		},
		"all items change": func(w *world) {
			putFolder(w, "f1", "y")
			putFolder(w, "f2", "z")
		},
		"one item changes": func(w *world) { putFolder(w, "f2", "y") },
	} {
		for at := range 10 {
			t.Run(fmt.Sprintf("%s at pass %d", name, at), func(t *testing.T) {
				w := newWorld(t, oddRules)
				e := w.seeded()
				putFolder(w, "f1", "x")
				putFolder(w, "f2", "x")
				from := w.drain(e, 0)
				w.expectListed(e, "contested:@Folder/x unique.contested: FOLDER#f1 FOLDER#f2")
				w.changing(added, nil)
				e = w.changing(changed, nil)
				for done := 0; ; done++ {
					pass, left, err := e.NextPass(w.ctx)
					if err != nil {
						t.Fatal(err)
					}
					if left == 0 {
						break
					}
					if done == at/2 && at%2 == 0 {
						leave(w)
						from = w.drain(e, from)
					}
					if err := w.work(e, pass); err != nil {
						t.Fatal(err)
					}
					if done == at/2 && at%2 == 1 {
						leave(w)
						from = w.drain(e, from)
					}
					if err := e.Complete(w.ctx, pass); err != nil {
						t.Fatal(err)
					}
				}
				w.drain(e, from)
				w.expectTrue()
			})
		}
	}
}

func TestContestedValueOfRetiredRulesIsOffTheList(t *testing.T) {
	w := newWorld(t, oddRules)
	e := w.seeded()
	putFolder(w, "f1", "x")
	putFolder(w, "f2", "x")
	putDoc(w, "d1", "c1")
	putDoc(w, "d2", "c1")
	from := w.drain(e, 0)
	e = w.changing(withoutLines(oddRules, "Folder.", "folder-docs", "by-code", "ByCode"), nil)
	if err := e.Seed(w.ctx, nil); err != nil {
		t.Fatal(err)
	}
	w.drain(e, from)
	w.expectTrue()
}

// withoutLines leaves away the lines of a text that contain some words.
func withoutLines(text string, words ...string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(line, word) })
	}), "\n")
}
