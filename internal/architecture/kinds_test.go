package architecture

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dynamill/dynamill/internal/projections"
)

// kindRooms know the kinds: their folders with the list, and the rooms that only tests need.
var kindRooms = append([]string{"./internal/projections/internal/kinds", "./internal/architecture", "./examples", "./docs"},
	verification...)

// kindTexts are files with texts of flags. Help names the kinds to people.
var kindTexts = []string{"cmd/dynamill/verify.go"}

// All that is known of a kind of rule stands in the folder of its family. The list, internal/projections/internal/kinds/kinds.go,
// is the one file outside these folders that names a kind.
func TestOnlyTheListNamesKinds(t *testing.T) {
	words := wordsForKinds(t)
	var naming []string
	for _, s := range readModule(t) {
		if s.isTest() || inAny(s.folder(), kindRooms) || slices.Contains(kindTexts, s.path) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(moduleRoot, filepath.FromSlash(s.path)))
		if err != nil {
			t.Fatal(err)
		}
		if found := words.namedIn(t, s.path, text); len(found) > 0 {
			naming = append(naming, s.path)
			t.Error(strings.Join(found, "\n"))
		}
	}
	if len(naming) > 0 {
		t.Errorf("%d files name a kind of rule: ask the rule, or its kind, instead (%s)", len(naming), strings.Join(naming, ", "))
	}
}

// kindNames are the words that name kinds.
type kindNames struct {
	own    map[string]bool // words that nothing else has, in any name or text
	shared map[string]bool // words that English and Go use, too: they name a kind as a text of their own, or beside "rule" or "kind"
}

// wordsForKinds takes the words from the list of kinds and from the folders of the families.
func wordsForKinds(t *testing.T) kindNames {
	t.Helper()
	names := kindNames{own: map[string]bool{"mirrored": true, "copied": true}, shared: map[string]bool{}}
	for _, family := range families {
		names.own[path.Base(family)] = true
	}
	delete(names.own, "computed") // English has many other uses for it,
	delete(names.own, "ordered")  // and for this
	for _, kind := range projections.Kinds {
		if plural := kind.Traits().Plural; plural != "" { // a kind that is planned has none
			names.shared[kind.Word()], names.shared[plural] = true, true
		}
	}
	for _, word := range []string{"mirror", "mirrors", "copies", "aggregate"} {
		names.own[word] = true
	}
	if len(names.shared) < 8 {
		t.Fatalf("only %d words of kinds", len(names.shared))
	}
	return names
}

// namesakes are texts with the word of a kind that mean something else.
var namesakes = map[string]string{
	"internal/projections/internal/state/accumulator.go": `"sum"`,   // the partition of accumulators
	"internal/projections/internal/state/cursor.go":      `"last"`,  // the last key of a page
	"internal/rules/expr/function.go":                    `"count"`, // a function of other languages
	"internal/rules/rulediff/rulediff.go":                `"set"`,   // the key of several kinds
	"cmd/dynamill/internal/demo/demo.go":                 `"set"`,   // what the application does
	"internal/story/story.go":                            `"delete"`,
}

// namedIn finds what names a kind in a file: names, texts and imports, but no comment, no field's tag and nothing that
// another module declares.
func (k kindNames) namedIn(t *testing.T, name string, text []byte) (found []string) {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	foreign := map[string]bool{}
	look := func(at token.Pos, said string, alone bool) {
		if namesakes[name] != said && k.names(wordsOf(said), alone && said == strings.ToLower(said)) {
			found = append(found, fmt.Sprintf("%s: %s", files.Position(at), said))
		}
	}
	for _, spec := range file.Imports {
		importPath, _ := strconv.Unquote(spec.Path.Value)
		switch {
		case inAny(local(importPath), families):
			look(spec.Pos(), path.Base(importPath), true)
		case local(importPath) == importPath:
			foreign[path.Base(importPath)] = true
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field: // a tag is the name of a field in an output
			n.Tag = nil
		case *ast.SelectorExpr:
			if of, ok := n.X.(*ast.Ident); ok && foreign[of.Name] {
				return false
			}
		case *ast.Ident:
			look(n.Pos(), n.Name, false)
		case *ast.BasicLit:
			look(n.Pos(), n.Value, n.Kind == token.STRING)
		}
		return true
	})
	return found
}

// names reports whether words name a kind. A text stands alone; an identifier does not.
func (k kindNames) names(words []string, text bool) bool {
	for i, word := range words {
		beside := i > 0 && words[i-1] == "kind" || i+1 < len(words) && (words[i+1] == "rule" || words[i+1] == "rules")
		if k.own[word] || k.shared[word] && (beside && !text || len(words) == 1 && text) {
			return true
		}
	}
	return false
}

func TestFilesThatNameKindsAreFound(t *testing.T) {
	const head = "package x\n\nimport \"strings\"\n\n"
	names := wordsForKinds(t)
	for name, tt := range map[string]struct {
		code string
		want int
	}{
		"a text that is the word":           {`var s = kind == "count"`, 1},
		"a plural":                          {`var s = "sums"`, 1},
		"a code":                            {`var s = "mirror.contested"`, 1},
		"a sentence about a kind":           {`var s = "shows not all of its copies"`, 1},
		"a name with the kind's own word":   {"func upsertMirror() {}", 1},
		"a family":                          {"var aggregatesDue int", 1},
		"a rule of the kind":                {"func copyRule() {}", 1},
		"a constant of the kind":            {"const KindSum = 1", 1},
		"a number of things":                {"var countParked, ruleCount, sums int", 0},
		"a name that others give":           {`var s = "Sum"`, 0},
		"a sentence that counts":            {`var s = "the sum and the count of what is copied"`, 1},
		"a sentence with the verb":          {`var s = "count again"`, 0},
		"the builtin function":              {"var n = copy(a, b)", 0},
		"another module's function":         {"var n = strings.Count(a, b) + strings.Copies", 0},
		"a field's tag":                     {"type t struct {\n\tN int `json:\"copies\"`\n}", 0},
		"a comment":                         {"// A mirror.\nvar n = 1", 0},
		"a word that begins like the kinds": {`var counter, summary = "copyright", 1`, 0},
	} {
		if got := names.namedIn(t, "x.go", []byte(head+tt.code)); len(got) != tt.want {
			t.Errorf("%s: found %q, want %d", name, got, tt.want)
		}
	}
	family := "package x\n\nimport \"" + module + "/internal/projections/internal/kinds/copies\"\n"
	if got := names.namedIn(t, "x.go", []byte(family)); len(got) != 1 {
		t.Errorf("the import of a family: found %q", got)
	}
}
