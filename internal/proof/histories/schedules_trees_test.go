package histories

import (
	"fmt"

	"github.com/dynamill/dynamill/internal/proof/adversary"
)

// folders is a rule that gives folders their paths, and the folders above them.
const folders = `version: 1
table: { keys: [pk, sk] }
entities:
  Folder: { key: { pk: "FOLDER#${folderId}", sk: "METADATA" } }
rules:
  paths: { tree: Folder, by: { folderId: parentId }, path: name as path, lineage: folderIds }
`

// folder is an item of the schedules of trees; in "" it is a root.
func folder(id, in, name string) string {
	text := "pk=FOLDER#" + id + ", sk=METADATA, name=" + name
	if in != "" {
		text += ", parentId=" + in
	}
	return text
}

// moves puts a folder into another one, and leaves its other attributes as they are.
func moves(turns int, id, in string) Step {
	return step(turns, Update, "pk=FOLDER#"+id+", sk=METADATA, parentId="+in)
}

// chain is that many folders, each in the one before.
func chain(n int) (steps []Step) {
	for i := range n {
		in := ""
		if i > 0 {
			in = fmt.Sprint("f", i)
		}
		steps = append(steps, step(0, Put, folder(fmt.Sprint("f", i+1), in, "n")))
	}
	return steps
}

func treeSchedules() []schedule {
	judged := Step{Turns: Rest, Kind: Judge}
	tooDeep := append(chain(66), judged, step(Rest, Delete, "pk=FOLDER#f1, sk=METADATA"), judged)
	between := append(chain(66), judged, puts(folder("m", "f30", "m")), moves(Rest, "f31", "m"), judged, moves(Rest, "f31", "f30"), judged)
	return []schedule{
		{
			guard: "TreeFollows", name: "a folder is renamed two levels up", rules: folders,
			steps: []Step{
				puts(folder("a", "", "old")), puts(folder("b", "a", "b")), puts(folder("c", "b", "c")), puts(folder("a", "", "new")), judged,
			},
		},
		{
			// Neither of the two is written when the other one is filled.
			guard: "CycleWalked", name: "two folders are put into each other at once", rules: folders,
			steps: []Step{puts(folder("a", "", "a")), moves(Rest, "a", "b"), step(0, Put, folder("b", "a", "b")), judged},
		},
		{
			guard: "CycleExamined", name: "a folder is put into one that is in it", rules: folders,
			steps: []Step{puts(folder("a", "", "a")), puts(folder("b", "a", "b")), moves(Rest, "a", "b"), judged},
		},
		{
			guard: "CycleLeft", name: "a folder leaves a cycle", rules: folders,
			steps: []Step{
				puts(folder("a", "", "a")), puts(folder("b", "a", "b")), moves(Rest, "a", "b"), moves(Rest, "a", "c"), judged,
			},
		},
		{
			// That another program overwrites what a shows is parked of a, in the place of the cycle. Then a leaves: b must not stay parked.
			guard: "CycleTold", name: "a folder leaves a cycle of which its own row tells no more", rules: folders, healsMax: 1,
			steps: []Step{
				puts(folder("a", "", "a")), puts(folder("b", "a", "b")), moves(Rest, "a", "b"), judged, {Turns: Rest, Kind: Fight},
				moves(Rest, "a", "c"),
			},
		},
		{
			// A worker has walked around a cycle, and falls asleep before it parks the items. Then one of them leaves the cycle.
			guard: "CycleChecked", name: "a sleeper parks a cycle that is no more", rules: folders,
			steps: []Step{
				puts(folder("a", "", "a")), puts(folder("b", "a", "b")), moves(Rest, "a", "b"), moves(Struck, "a", "c"),
				befalls(adversary.Woke), judged,
			},
			strikes: []adversary.Strike{at(`^TransactWriteItems\s+put app-dynamill \{.*code=tree.cycle`, 0, adversary.Froze)},
		},
		{
			// A worker falls asleep before it clears a cycle that a folder has left. Then the folder is back, and another worker finds it parked.
			guard: "CycleCleared", name: "a sleeper clears a cycle that is there again", rules: folders, taken: true,
			steps: []Step{
				puts(folder("a", "", "a")), puts(folder("b", "a", "b")), moves(Rest, "a", "b"), moves(Rest, "a", "c"), moves(Struck, "a", "b"),
				befalls(adversary.Woke), judged,
			},
			strikes: []adversary.Strike{at(`(?s)^TransactWriteItems.*delete app-dynamill\(parked`, 0, adversary.Froze)},
		},
		{
			// A worker is held up before it looks at what is parked of b, which has gone from one cycle to another. The other one is found by
			// the record of e. Then b leaves that, too, and is no more in any: a must not stay parked.
			guard: "CycleTold", name: "a folder goes from one cycle to another, and out", rules: folders, shards: 2,
			steps: []Step{
				puts(folder("a", "", "a")), puts(folder("b", "a", "b")), puts(folder("e", "b", "e")), moves(Rest, "a", "b"), moves(Rest, "b", "e"),
				step(Struck, Update, "pk=FOLDER#e, sk=METADATA, name=other"), moves(Rest, "b", "z"), befalls(adversary.Woke), judged,
			},
			strikes: []adversary.Strike{holds(`^BatchGetItem app-dynamill\(parked/[^/]*/FOLDER#b/METADATA\)`, 1)},
		},
		{guard: "DeepParked", name: "folders are 66 levels deep", rules: folders, steps: tooDeep},
		{guard: "DeepCleared", name: "the root of folders that are too deep is deleted", rules: folders, steps: tooDeep},
		// The one that was too deep is below the next one by now, and is parked no more.
		{guard: "DeepCleared", name: "a folder comes between others, above one that is too deep, and goes", rules: folders, steps: between},
	}
}
