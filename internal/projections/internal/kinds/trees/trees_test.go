package trees_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/audits"
	"github.com/dynamill/dynamill/internal/projections/internal/kinds/trees"
	"github.com/dynamill/dynamill/internal/proof/kindtest"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/internal/rules/rulediff"
)

const file = `
version: 1
table: { keys: [pk, sk] }
entities:
  Folder: { key: { pk: "TENANT#${tenantId}", sk: "FOLDER#${folderId}" } }
rules:
  paths: { tree: Folder, by: { folderId: parentId }, path: name as path, lineage: folderIds }
`

func load(t *testing.T, old, new string) *rules.Rule {
	return kindtest.Rule(t, kindtest.LoadText(t, strings.Replace(file, old, new, 1)), "paths")
}

func TestParentIsOfTheSameTenant(t *testing.T) {
	s := kindtest.LoadText(t, file)
	r := kindtest.Rule(t, s, "paths")
	for name, tt := range map[string]struct {
		item change.Item
		want string // "" is a root
		bad  string
	}{
		"a text":                     {change.Item{"parentId": change.String("a"), "name": change.String("n")}, "TENANT#t/FOLDER#a", ""},
		"a number":                   {change.Item{"parentId": change.Number("7")}, "TENANT#t/FOLDER#7", ""},
		"itself":                     {change.Item{"parentId": change.String("f")}, "TENANT#t/FOLDER#f", ""},
		"nothing":                    {change.Item{}, "", ""},
		"NULL":                       {change.Item{"parentId": change.Null()}, "", ""},
		"empty":                      {change.Item{"parentId": change.String("")}, "", ""},
		"a list":                     {change.Item{"parentId": change.List(nil)}, "", "value.type"},
		"a # in it":                  {change.Item{"parentId": change.String("a#b")}, "", "key.smuggled"},
		"a name that is a list":      {change.Item{"parentId": change.String("a"), "name": change.List(nil)}, "", "value.type"},
		"a name that is NULL":        {change.Item{"parentId": change.String("a"), "name": change.Null()}, "TENANT#t/FOLDER#a", ""},
		"a name that is a number":    {change.Item{"name": change.Number("1.50")}, "", ""},
		"a name that is a condition": {change.Item{"name": change.Bool(true)}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := trees.LinkIn(r, kindtest.Identify(t, s, "TENANT#t", "FOLDER#f", tt.item), tt.item)
			got := ""
			if l.Refers {
				got = l.Parent.String()
			}
			bad := ""
			if l.Bad != nil {
				bad = l.Bad.Code
			}
			if got != tt.want || bad != tt.bad {
				t.Errorf("refers to %q, %q", got, bad)
			}
		})
	}
}

func TestMeaningOfATree(t *testing.T) {
	one := load(t, "", "")
	if got := one.Writes; !cmp.Equal(got, []string{"path", "folderIds"}) || !cmp.Equal(one.Reads, []string{"name"}) ||
		!cmp.Equal(one.JoinReads, []string{"parentId"}) {
		t.Errorf("writes %q, reads %q and %q", got, one.Reads, one.JoinReads)
	}
	same := load(t, "path: name as path, lineage: folderIds", "lineage: folderIds, path: name as path")
	if same.Fingerprint != one.Fingerprint {
		t.Error("the order of the keys means something")
	}
	for change, want := range map[[2]string][]rulediff.FieldChange{
		{"name as path", "title as path"}:     {{Field: "path", Old: "name as path", New: "title as path"}},
		{", lineage: folderIds", ""}:          {{Field: "lineage", Old: "folderIds"}},
		{"lineage: folderIds", "lineage: up"}: {{Field: "lineage", Old: "folderIds", New: "up"}},
		{"parentId", "upId"}:                  {{Field: "by", Old: "tenantId, folderId: parentId", New: "tenantId, folderId: upId"}},
	} {
		other := load(t, change[0], change[1])
		if diff := cmp.Diff(want, rulediff.Compare(one, other)); diff != "" {
			t.Errorf("%q: %s", change, diff)
		}
	}
}

func TestTreesSayWhatTheyCostAndDo(t *testing.T) {
	for written, shown := range map[string]string{
		"path: name as path, lineage: folderIds": "path, folderIds",
		"path: name as way":                      "way",
		"lineage: folderIds":                     "folderIds",
	} {
		form := load(t, "path: name as path, lineage: folderIds", written).Form
		cost := rules.Cost{WriteUnits: 2, Text: "1 WU and 1 WU per KB of each Folder that comes, and of each that moves or is renamed, " +
			"with all below it + 1 WU per Folder that comes or goes, 2 WU if it changes its parent"}
		if diff := cmp.Diff(cost, form.Cost()); diff != "" {
			t.Errorf("what `%s` costs (-want +got):\n%s", written, diff)
		}
		if got, want := form.Replays(), "writes "+shown+" on every Folder, level by level"; got != want {
			t.Errorf("a replay of `%s` %q, want %q", written, got, want)
		}
		if needs := form.Needs(); len(needs) != 1 || needs[0].Action != "dynamodb:ConditionCheckItem" {
			t.Errorf("`%s` needs %v", written, needs)
		}
	}
}

func TestExplainTellsWhatIsSet(t *testing.T) {
	s := kindtest.LoadText(t, file)
	key := change.Key{Partition: "TENANT#t", Sort: "FOLDER#f"}
	item := func(more change.Item) change.Item {
		it := change.Item{"pk": change.String(key.Partition), "sk": change.String(key.Sort)}
		for name, v := range more {
			it[name] = v
		}
		return it
	}
	for want, it := range map[string]change.Item{
		"refers to no parent => set path, folderIds as a root's":                item(nil),
		"refers to TENANT#t/FOLDER#a => set path, folderIds from what it shows": item(change.Item{"parentId": change.String("a")}),
		"cannot be read: Folder.name is of type L: only strings, numbers and booleans have a text => park it (value.type)": item(
			change.Item{"name": change.List(nil)}),
	} {
		var got []string
		for _, line := range audits.Explain(s, change.Record{Key: key, New: it}).Lines {
			got = append(got, line.Effect+" => "+line.Write)
		}
		if diff := cmp.Diff([]string{want}, got); diff != "" {
			t.Error(diff)
		}
	}
}
