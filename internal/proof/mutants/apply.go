package mutants

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Apply reads the guarded files below the module's root and returns them with
// the switches of all guards, by their paths from there.
func Apply(root string, guards []Guard) (map[string]string, error) {
	edits := map[string][]edit{}
	sources := map[string]string{}
	var wrong []error
	for _, g := range guards {
		for _, h := range g.hunks {
			source, ok := sources[h.path]
			if !ok {
				text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(h.path)))
				if err != nil {
					wrong = append(wrong, fmt.Errorf("guard %s in %s: %w", g.Name, g.File, err))
					continue
				}
				source = string(text)
				sources[h.path] = source
			}
			found, err := h.edits(source)
			if err != nil {
				wrong = append(wrong, fmt.Errorf("the guarded code of %s in %s has changed: adapt internal/proof/mutants/%s: %w", g.Name, h.path,
					g.File, err))
				continue
			}
			for _, e := range found {
				e.guard = g.Name
				edits[h.path] = append(edits[h.path], e)
			}
		}
	}
	mutated := map[string]string{}
	for path, source := range sources {
		text, err := applyEdits(source, edits[path])
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", path, err))
		}
		mutated[path] = withSwitches(text)
	}
	return mutated, errors.Join(wrong...)
}

// edit replaces the bytes [from, to) of a source file.
type edit struct {
	from, to int
	text     string
	guard    string
}

// edits finds a change in its file. Lines that stay are no part of an edit, so
// that the changes of two guards may be made unique by the same lines.
func (h hunk) edits(source string) ([]edit, error) {
	original := h.original()
	switch n := strings.Count("\n"+source, "\n"+original); {
	case n == 0 || original == "":
		return nil, fmt.Errorf("these lines do not occur:\n%s", original)
	case n > 1:
		return nil, fmt.Errorf("these lines occur %d times:\n%s", n, original)
	}
	at := strings.Index("\n"+source, "\n"+original)
	var edits []edit
	changing := false
	for _, l := range h.lines {
		if l.sign == ' ' {
			at += len(l.text) + 1
			changing = false
			continue
		}
		if !changing {
			edits = append(edits, edit{from: at, to: at})
			changing = true
		}
		e := &edits[len(edits)-1]
		if l.sign == '+' {
			e.text += l.text + "\n"
			continue
		}
		at += len(l.text) + 1
		e.to = at
	}
	return edits, nil
}

// applyEdits makes all edits of a file. Insertions at one place keep the order of
// the guards; two guards cannot change one line.
func applyEdits(source string, edits []edit) (string, error) {
	slices.SortStableFunc(edits, func(a, b edit) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
	var b strings.Builder
	done := 0
	for i, e := range edits {
		if e.from < done {
			return "", fmt.Errorf("the guards %s and %s change the same lines:\n%s", edits[i-1].guard, e.guard, source[e.from:e.to])
		}
		b.WriteString(source[done:e.from] + e.text)
		done = e.to
	}
	return b.String() + source[done:], nil
}

var packageClause = regexp.MustCompile(`(?m)^package \w+$`)

// withSwitches adds the import of the switches to a file that asks for one, without a
// further line.
func withSwitches(text string) string {
	at := packageClause.FindStringIndex(text)
	if at == nil || !asked.MatchString(text) {
		return text
	}
	return text[:at[1]] + "; import " + `"github.com/dynamill/dynamill/internal/proof/mutants/switches"` + text[at[1]:]
}
