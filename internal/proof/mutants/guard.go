package mutants

import (
	"embed"
	"fmt"
	"regexp"
	"strings"
)

// Guard is one precaution, with what the code is without it.
type Guard struct {
	Name     string
	Protects string // one sentence
	File     string // the patch file that holds it
	hunks    []hunk
}

// hunk is one change of one source file.
type hunk struct {
	path  string // from the module's root, with slashes
	lines []line
}

type line struct {
	sign byte // ' ' stays, '-' goes, '+' comes
	text string
}

//go:embed *.patch
var patches embed.FS

// All returns the guards, in the order of the files and of the guards in them.
func All() ([]Guard, error) {
	files, err := patches.ReadDir(".")
	if err != nil {
		return nil, err
	}
	var all []Guard
	fileOf := map[string]string{}
	for _, f := range files {
		text, err := patches.ReadFile(f.Name())
		if err != nil {
			return nil, err
		}
		guards, err := parse(f.Name(), string(text))
		if err != nil {
			return nil, err
		}
		for _, g := range guards {
			if first, ok := fileOf[g.Name]; ok {
				return nil, fmt.Errorf("guard %s stands in %s and in %s", g.Name, first, g.File)
			}
			fileOf[g.Name] = g.File
		}
		all = append(all, guards...)
	}
	return all, nil
}

var (
	heading = regexp.MustCompile(`^guard ([A-Z]\w*): (\S.*)$`)
	place   = regexp.MustCompile(`^@@ (\S+\.go)$`)
	asked   = regexp.MustCompile(`\bswitches\.\w+\("(\w*)"`)
)

// parse reads a patch file. Its name goes into errors.
func parse(name, text string) ([]Guard, error) {
	var guards []Guard
	for i, l := range strings.Split(text, "\n") {
		if err := addLine(&guards, l); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, i+1, err)
		}
	}
	for i := range guards {
		guards[i].File = name
		if err := guards[i].check(); err != nil {
			return nil, fmt.Errorf("%s: guard %s: %w", name, guards[i].Name, err)
		}
	}
	return guards, nil
}

// addLine adds one line of a patch file to the guards read so far.
func addLine(guards *[]Guard, text string) error {
	if m := heading.FindStringSubmatch(text); m != nil {
		*guards = append(*guards, Guard{Name: m[1], Protects: m[2]})
		return nil
	}
	var g *Guard
	if n := len(*guards); n > 0 {
		g = &(*guards)[n-1]
	}
	switch m := place.FindStringSubmatch(text); {
	case strings.HasPrefix(text, "#"):
	case g == nil && text == "":
	case g == nil:
		return fmt.Errorf(`want "guard <Name>: <what it protects>" before %q`, text)
	case m != nil:
		g.hunks = append(g.hunks, hunk{path: m[1]})
	case len(g.hunks) == 0 && text == "":
	case len(g.hunks) == 0:
		return fmt.Errorf(`want "@@ <file>" before %q`, text)
	case text == "": // a blank line that stays; an editor may have cut its sign off
		h := &g.hunks[len(g.hunks)-1]
		h.lines = append(h.lines, line{sign: ' '})
	case strings.ContainsAny(text[:1], " -+"):
		h := &g.hunks[len(g.hunks)-1]
		h.lines = append(h.lines, line{text[0], text[1:]})
	default:
		return fmt.Errorf(`want a line that begins with " ", "-", "+", "@@", "guard" or "#", not %q`, text)
	}
	return nil
}

// check cuts off the blank lines that end each change, and reports what the guard lacks.
func (g *Guard) check() error {
	asks := 0
	for i := range g.hunks {
		h := &g.hunks[i]
		for len(h.lines) > 0 && h.lines[len(h.lines)-1] == (line{sign: ' '}) {
			h.lines = h.lines[:len(h.lines)-1]
		}
		came := 0
		for _, l := range h.lines {
			if l.sign != '+' {
				continue
			}
			came++
			for _, m := range asked.FindAllStringSubmatch(l.text, -1) {
				if m[1] != g.Name {
					return fmt.Errorf("a change asks for the switch of %q", m[1])
				}
				asks++
			}
		}
		if came == 0 {
			return fmt.Errorf("a change of %s adds no line", h.path)
		}
	}
	if asks == 0 {
		return fmt.Errorf("no change asks for its switch: want switches.Off(%q)", g.Name)
	}
	return nil
}

// original are the lines that the source must have.
func (h hunk) original() string {
	var b strings.Builder
	for _, l := range h.lines {
		if l.sign != '+' {
			b.WriteString(l.text + "\n")
		}
	}
	return b.String()
}
