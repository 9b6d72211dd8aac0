package verify_test

import (
	"fmt"
	"testing"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/proof/oracle"
)

const treeRules = `version: 1
table: { keys: [pk, sk] }
entities:
  Folder: { key: { pk: "FOLDER#${folderId}", sk: "METADATA" } }
rules:
  paths: { tree: Folder, by: { folderId: parentId }, path: name as path, lineage: folderIds }
`

func folder(id, in string) change.Item {
	it := texts("pk", "FOLDER#"+id, "sk", "METADATA", "name", "n"+id)
	if in != "" {
		it["parentId"] = change.String(in)
	}
	return it
}

// TestWrongTreeIsFoundAndMended spoils what folders show of their places, and what is parked of them. a is a root with b and c below it,
// x and y are a cycle with z below it, and d65 is too deep.
func TestWrongTreeIsFoundAndMended(t *testing.T) {
	ids := func(all ...string) change.Value {
		var list []change.Value
		for _, id := range all {
			list = append(list, change.String(id))
		}
		return change.List(list)
	}
	parked := func(id string) string { return oracle.RuleID("paths") + "/FOLDER#" + id + "/METADATA" }
	both := func(one, other func(*world, change.Item)) func(*world, change.Item) {
		return func(w *world, it change.Item) { one(w, it); other(w, it) }
	}
	bare := both(without("path"), both(without("folderIds"), without(stampName("paths"))))
	for name, s := range map[string]struct {
		id string // of the folder that is wrong then, and no other
		spoilt
	}{
		"a root's path":                    {"a", spoilt{app, "FOLDER#a", "METADATA", set("path", change.String("/other"))}},
		"a root without a path":            {"a", spoilt{app, "FOLDER#a", "METADATA", without("path")}},
		"a path of below":                  {"c", spoilt{app, "FOLDER#c", "METADATA", set("path", change.String("/na/nc"))}},
		"a path that is a number":          {"b", spoilt{app, "FOLDER#b", "METADATA", set("path", change.Number("1"))}},
		"another lineage":                  {"b", spoilt{app, "FOLDER#b", "METADATA", set("folderIds", ids("x", "b"))}},
		"a lineage without its own id":     {"c", spoilt{app, "FOLDER#c", "METADATA", set("folderIds", ids("a", "b"))}},
		"no lineage":                       {"c", spoilt{app, "FOLDER#c", "METADATA", without("folderIds")}},
		"neither, nor a stamp":             {"b", spoilt{app, "FOLDER#b", "METADATA", bare}},
		"a path in a cycle":                {"x", spoilt{app, "FOLDER#x", "METADATA", set("path", change.String("/nx"))}},
		"a lineage below a cycle":          {"z", spoilt{app, "FOLDER#z", "METADATA", set("folderIds", ids("z"))}},
		"a path where it is too deep":      {"d65", spoilt{app, "FOLDER#d65", "METADATA", set("path", change.String("/"))}},
		"a folder that is no longer there": {"b", spoilt{app, "FOLDER#a", "METADATA", under("gone", "gone")}},
		"a move that nobody applied":       {"c", spoilt{app, "FOLDER#c", "METADATA", set("parentId", change.String("d5"))}},
		"nothing parked of a cycle":        {"x", spoilt{state, "parked", parked("x"), under("gone", "gone")}},
		"nothing parked of a deep one":     {"d65", spoilt{state, "parked", parked("d65"), under("gone", "gone")}},
		"another code in a cycle":          {"y", spoilt{state, "parked", parked("y"), set("code", change.String("tree.too_deep"))}},
		"a cycle where there is none":      {"a", spoilt{state, "parked", parked("x"), again("paths", "FOLDER#a/METADATA", "tree.cycle")}},
		"too deep where it is not":         {"b", spoilt{state, "parked", parked("d65"), again("paths", "FOLDER#b/METADATA", "tree.too_deep")}},
		"a row of none that says no code":  {"b", spoilt{state, "parked", parked("d65"), again("paths", "FOLDER#b/METADATA", "")}},
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			w := worldOf(t, "trees", treeRules)
			for _, it := range []change.Item{
				folder("a", ""), folder("b", "a"), folder("c", "b"), folder("x", "y"), folder("y", "x"), folder("z", "y"), folder("d1", ""),
			} {
				w.put(app, it)
			}
			for i := 2; i <= 66; i++ {
				w.put(app, folder(fmt.Sprint("d", i), fmt.Sprint("d", i-1)))
			}
			w.follow()
			w.expectRight("before")
			w.damage(s.spoilt)
			w.lose()
			found, _ := w.verify(false)
			if len(found) == 0 {
				t.Error("nothing was found")
			}
			for _, f := range found {
				if f.Item != (change.Key{Partition: "FOLDER#" + s.id, Sort: "METADATA"}) {
					t.Errorf("this was right: %s", text(f))
				}
			}
			again, _ := w.verify(true)
			w.expectMended(again)
			w.follow()
			w.expectRight("after the repair")
			w.put(app, folder("x", "c"))
			w.delete(app, folder("d2", "d1"))
			w.follow()
			w.expectRight("after it has gone on")
		}))
	}
}
