package architecture

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// linesMax is the length at which a file must be taken apart; about 400 is the aim.
const linesMax = 500

// topLevel lists the folders of the layout that may hold Go files.
var topLevel = []string{
	"change", "cmd", "docs", "dynamilltest", "examples", "internal", "projections", "rules", "scripts", "streamreader",
}

// vagueNames are package names that say nothing about what is inside.
var vagueNames = []string{"util", "utils", "common", "types", "helper", "helpers", "misc", "shared", "base"}

// source is one Go file of the module.
type source struct {
	path      string // slash-separated, from the module's root
	pkg       string // the package clause
	imports   []string
	lines     int
	generated bool
}

func (s source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }

// folder is the file's package as the arrows write it.
func (s source) folder() string { return "./" + path.Dir(s.path) }

// readTree reads every Go file below root, except in testdata, in hidden
// folders, in those that begin with "_" and in other modules, which the go
// command skips too.
func readTree(root string) ([]source, error) {
	var tree []source
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() {
			hidden := strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata" || name == "node_modules"
			if file != root && (hidden || isModule(file)) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		relative, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		s, err := readSource(filepath.ToSlash(relative), text)
		tree = append(tree, s)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the tree: %w", err)
	}
	return tree, nil
}

// isModule reports whether a folder is the root of a module.
func isModule(folder string) bool {
	_, err := os.Stat(filepath.Join(folder, "go.mod"))
	return err == nil
}

func readSource(file string, text []byte) (source, error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, text, parser.ImportsOnly|parser.ParseComments)
	if err != nil {
		return source{}, fmt.Errorf("reading the imports of %s: %w", file, err)
	}
	s := source{path: file, pkg: parsed.Name.Name, lines: countLines(text), generated: ast.IsGenerated(parsed)}
	for _, spec := range parsed.Imports {
		importPath, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return source{}, fmt.Errorf("reading the imports of %s: %w", file, err)
		}
		s.imports = append(s.imports, local(importPath))
	}
	return s, nil
}

// countLines counts as an editor does: a last line needs no line feed.
func countLines(text []byte) int {
	lines := bytes.Count(text, []byte("\n"))
	if len(text) > 0 && text[len(text)-1] != '\n' {
		lines++
	}
	return lines
}

// graphOf gathers what each package imports outside its tests: a test may wire
// rooms together to see them work.
func graphOf(tree []source) imports {
	graph := imports{}
	for _, s := range tree {
		if !s.isTest() {
			graph[s.folder()] = append(graph[s.folder()], s.imports...)
		}
	}
	return graph
}

// misshapes returns one sentence for every file that is too long, in a folder
// that the layout does not know, or in a package with a vague name.
func misshapes(tree []source) []string {
	var found []string
	for _, s := range tree {
		if s.lines > linesMax && !s.generated {
			found = append(found, fmt.Sprintf("%s has %d lines, more than %d: look for the seam and take it apart", s.path, s.lines, linesMax))
		}
		top, _, inside := strings.Cut(s.path, "/")
		if inside && !slices.Contains(topLevel, top) {
			found = append(found, fmt.Sprintf("%s is in the top-level folder %q, which is no room of the layout (%s)", s.path, top,
				strings.Join(topLevel, ", ")))
		}
		if slices.Contains(vagueNames, strings.TrimSuffix(s.pkg, "_test")) {
			found = append(found, fmt.Sprintf("%s: package %s says nothing about what it holds: name it after its main noun", s.path, s.pkg))
		}
	}
	return found
}
