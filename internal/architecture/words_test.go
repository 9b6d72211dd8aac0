package architecture

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamill/dynamill/internal/projections"
)

// All that is known of a kind of rule stands in the folder of its family.
func TestRulesNameNoKind(t *testing.T) {
	words := map[string]bool{}
	for _, kind := range projections.Kinds {
		if plural := kind.Traits().Plural; plural != "" { // a kind that is planned has none
			words[kind.Word()], words[plural] = true, true
		}
	}
	// A compiled rule file is a Set, Go has the builtin functions delete, min and max, and English the others.
	for _, word := range []string{"set", "delete", "min", "max", "first", "last"} {
		delete(words, word)
	}
	if len(words) < 8 {
		t.Fatalf("only %d words of kinds", len(words))
	}
	for _, file := range goFiles(t, filepath.Join(moduleRoot, "internal/rules")) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range kindWords(t, file, text, words) {
			t.Error(found)
		}
	}
}

// goFiles lists a package's files that are no tests.
func goFiles(t *testing.T, folder string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil || len(all) == 0 {
		t.Fatalf("no files in %s: %v", folder, err)
	}
	var files []string
	for _, file := range all {
		if !strings.HasSuffix(file, "_test.go") {
			files = append(files, file)
		}
	}
	return files
}

// kindWords finds the words in a file's names and texts. What other packages declare, as strings.Count, is left out.
func kindWords(t *testing.T, name string, text []byte, words map[string]bool) []string {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	imported := map[string]bool{}
	for _, spec := range file.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		imported[path[strings.LastIndexByte(path, '/')+1:]] = true
	}
	var found []string
	look := func(at token.Pos, said string) {
		for _, word := range wordsOf(said) {
			if words[word] {
				found = append(found, fmt.Sprintf("%s: %q names a kind of rule: it belongs to the kind's own package", files.Position(at), said))
				return
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.SelectorExpr:
			if of, ok := n.X.(*ast.Ident); ok && imported[of.Name] {
				return false
			}
		case *ast.Ident:
			look(n.Pos(), n.Name)
		case *ast.BasicLit:
			look(n.Pos(), n.Value)
		}
		return true
	})
	return found
}

// wordsOf takes a name or a text apart, in lower case: memberCount and "member_count" are member and count.
func wordsOf(said string) []string {
	var b strings.Builder
	lower := false
	for _, c := range said {
		if unicode.IsUpper(c) && lower {
			b.WriteByte(' ')
		}
		lower = unicode.IsLower(c)
		if !unicode.IsLetter(c) {
			c = ' '
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return strings.Fields(b.String())
}

func TestNamesOfKindsAreFound(t *testing.T) {
	const head = "package rules\n\nimport \"strings\"\n\n"
	words := map[string]bool{"count": true, "sum": true}
	for name, tt := range map[string]struct {
		code string
		want int
	}{
		"a constant":                   {"const Count = 1", 1},
		"a part of a name":             {"func memberCount() {}", 1},
		"a text":                       {"var code = \"rule.count_by_unique\"", 1},
		"a part of a sentence":         {"var hint = `write sum: price`", 1},
		"a method of a value":          {"var n = rule.Sum()", 1},
		"a comment":                    {"// A count.\nvar n = 1", 0},
		"another package's function":   {"var n = strings.Count(a, b)", 0},
		"a word that begins alike":     {"var counted, summary = \"counter\", 1", 0},
		"a name in letters of a digit": {"var x = \"sum256\"", 1},
	} {
		if got := kindWords(t, "x.go", []byte(head+tt.code), words); len(got) != tt.want {
			t.Errorf("%s: found %q, want %d", name, got, tt.want)
		}
	}
	if diff := cmp.Diff([]string{"member", "count", "of", "x"}, wordsOf("memberCount_of x7")); diff != "" {
		t.Error(diff)
	}
}
