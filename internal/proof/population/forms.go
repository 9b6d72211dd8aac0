package population

import (
	"fmt"
	"hash/fnv"
	"strings"
)

// forms draws how keys hold texts: all of a table in one letter case, a variable in one, or as a padded number. It draws by
// what the file says and not from the source of the draft, so that drafts stay what they are beside it.
type forms struct {
	file string // the file without forms
	off  bool   // a key is a number, which has no form
}

// draws reports so often in a hundred that something has a form.
func (f forms) draws(percent uint64, what string) bool {
	h := fnv.New64a()
	fmt.Fprint(h, what, "\n", f.file)
	sum := h.Sum64()
	return !f.off && (sum^sum>>32)%100 < percent // its lowest bits alone depend on little
}

// table is the case of all keys.
func (f forms) table() string {
	switch {
	case f.draws(8, "lower"):
		return ", case: lower"
	case f.draws(4, "upper"):
		return ", case: upper"
	}
	return ""
}

// of writes a variable of some templates with its form.
func (f forms) of(templates []string, variable string) string {
	what := strings.Join(templates, "/") + "/" + variable
	rest := strings.Contains(what, variable+"...")
	switch {
	case f.draws(10, "lower "+what):
		return variable + ":lower"
	case f.draws(5, "upper "+what):
		return variable + ":upper"
	case !rest && f.draws(14, "padded "+what) && !f.readsText(variable):
		return variable + ":03"
	}
	return variable
}

// readsText reports whether an expression reads a variable as a text. A padded number is none, so that the rule would never have an effect.
func (f forms) readsText(variable string) bool {
	for _, text := range []string{"lower(" + variable + ")", "trim(" + variable + ")", variable + "[", variable + " + ''"} {
		if strings.Contains(f.file, text) {
			return true
		}
	}
	return false
}

// in writes templates with the forms of their variables.
func (f forms) in(templates, variables []string) []string {
	written := make([]string, len(templates))
	for i, template := range templates {
		for _, v := range variables {
			template = strings.ReplaceAll(template, "${"+v+"}", "${"+f.of(templates, v)+"}")
			template = strings.ReplaceAll(template, "${"+v+"...}", "${"+f.of(templates, v)+"...}")
		}
		written[i] = template
	}
	return written
}
