package architecture

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// exportedMax bounds the names that users' programs can refer to: types, functions, constants, variables and methods.
const exportedMax = 200

// TestExportedIsWhatProgramsNeed counts what is exported outside internal and cmd. None of it may name an internal type: a
// program could hold such a value and could not write its type down.
func TestExportedIsWhatProgramsNeed(t *testing.T) {
	count := map[string]int{}
	total := 0
	for _, s := range readModule(t) {
		if s.isTest() || s.pkg == "main" || strings.HasPrefix(s.path, "cmd/") || strings.Contains("/"+s.path, "/internal/") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), moduleRoot+"/"+s.path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		names, leaks := exportedOf(file)
		for _, leak := range leaks {
			t.Errorf("%s: %s", s.path, leak)
		}
		count[s.folder()] += len(names)
		total += len(names)
	}
	if total < 50 || total > exportedMax {
		t.Errorf("%d exported names, not 50 to %d: %v", total, exportedMax, count)
	}
}

// exportedOf returns the names that a file exports, methods as Type.Method, and one sentence for each that refers to an
// internal package.
func exportedOf(file *ast.File) (names, leaks []string) {
	inside := map[string]string{} // package name: path
	for _, spec := range file.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		if !strings.Contains(path, "/internal/") {
			continue
		}
		name := path[strings.LastIndexByte(path, '/')+1:]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		inside[name] = path
	}
	export := func(name string, parts ...ast.Node) {
		names = append(names, name)
		for _, part := range parts {
			for _, path := range referredTo(part, inside) {
				leaks = append(leaks, fmt.Sprintf("%s is exported and refers to %s", name, path))
			}
		}
	}
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if receiver := receiverOf(d); d.Name.IsExported() && ast.IsExported(receiver) {
				export(strings.TrimPrefix(receiver+"."+d.Name.Name, "Func."), d.Type)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					if s.Name.IsExported() {
						export(s.Name.Name, s.Type)
					}
				case *ast.ValueSpec:
					for i, name := range s.Names {
						if name.IsExported() {
							export(name.Name, typeOrValue(s, i))
						}
					}
				}
			}
		}
	}
	return names, leaks
}

// receiverOf names the type of a method; "Func" of a function.
func receiverOf(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return "Func"
	}
	name := ""
	ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && name == "" {
			name = id.Name
		}
		return name == ""
	})
	return name
}

// typeOrValue is what decides the type of a constant or variable.
func typeOrValue(s *ast.ValueSpec, i int) ast.Node {
	switch {
	case s.Type != nil:
		return s.Type
	case len(s.Values) == len(s.Names):
		return s.Values[i]
	case len(s.Values) > 0:
		return s.Values[0]
	}
	return s.Names[i]
}

// referredTo lists the internal packages that a declaration refers to, fields that are not exported aside.
func referredTo(part ast.Node, inside map[string]string) (paths []string) {
	ast.Inspect(part, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.StructType:
			for _, field := range n.Fields.List {
				if len(field.Names) == 0 || slices.ContainsFunc(field.Names, (*ast.Ident).IsExported) {
					paths = append(paths, referredTo(field.Type, inside)...)
				}
			}
			return false
		case *ast.SelectorExpr:
			if of, ok := n.X.(*ast.Ident); ok && inside[of.Name] != "" {
				paths = append(paths, inside[of.Name])
			}
		}
		return true
	})
	return paths
}

func TestExportedNamesAreFound(t *testing.T) {
	const head = "package x\n\nimport (\n\t\"m/internal/deep\"\n\tother \"m/internal/far/away\"\n\t\"time\"\n)\n\n"
	for name, tt := range map[string]struct {
		code  string
		names []string
		leaks int
	}{
		"a function":               {"func Load(time.Time) error { return deep.Do() }", []string{"Load"}, 0},
		"its parameter":            {"func Load(a *deep.T) error", []string{"Load"}, 1},
		"its results":              {"func Load() ([]deep.T, map[string]other.T)", []string{"Load"}, 2},
		"a name of its own":        {"func load(deep.T) {}\n\nvar x deep.T\n\ntype y = deep.T", nil, 0},
		"an alias":                 {"type T = other.T", []string{"T"}, 1},
		"a type made of one":       {"type T deep.T", []string{"T"}, 1},
		"a field":                  {"type T struct{ A, b deep.T }", []string{"T"}, 1},
		"fields of its own":        {"type T struct {\n\ta deep.T\n\tB struct{ c other.T }\n}", []string{"T"}, 0},
		"an embedded type":         {"type T struct{ *deep.T }", []string{"T"}, 1},
		"an interface":             {"type T interface{ Do(deep.T) }", []string{"T"}, 1},
		"a method":                 {"func (t *T) Do(other.T) {}", []string{"T.Do"}, 1},
		"a method of a type of it": {"func (t *T[K]) Do() {}\n\nfunc (t hidden) Do(deep.T) {}", []string{"T.Do"}, 0},
		"a variable":               {"var A, B = deep.X, time.Now()", []string{"A", "B"}, 1},
		"a variable with its type": {"var A error = deep.Err", []string{"A"}, 0},
		"constants":                {"const (\n\tA = iota\n\tB\n)", []string{"A", "B"}, 0},
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "x.go", head+tt.code, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		names, leaks := exportedOf(file)
		if diff := cmp.Diff(tt.names, names); diff != "" || len(leaks) != tt.leaks {
			t.Errorf("%s: %d leaks, want %d: %q; names (-want +got):\n%s", name, len(leaks), tt.leaks, leaks, diff)
		}
	}
}
