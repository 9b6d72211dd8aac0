package population

import (
	"embed"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path"
	"strings"
	"sync"

	"github.com/dynamill/dynamill/examples"
)

//go:embed sets/*.yaml
var sets embed.FS

const (
	drawnPercent = 70  // of the rule sets are drawn
	draftsMax    = 100 // nearly every first draft is accepted
)

// Draw draws a population: a handwritten one, an example's, or, mostly, one
// whose rule set is drawn too.
func Draw(r *rand.Rand) *Population {
	if r.IntN(100) >= drawnPercent {
		return oneOf(r, Written())
	}
	for range draftsMax {
		if p, err := New("drawn", draft(r)); err == nil {
			return p
		}
	}
	panic(fmt.Sprintf("population: none of %d drafts of a rule file was accepted", draftsMax))
}

// Written returns the populations that are not drawn: the examples' and the
// handwritten ones.
var Written = sync.OnceValue(func() []*Population {
	var all []*Population
	add := func(name, src string) {
		p, err := New(name, src)
		if err != nil {
			panic("population: a rule file of the source is refused: " + err.Error())
		}
		all = append(all, p)
	}
	for _, name := range examples.Names() {
		ex, err := examples.Load(name)
		if err != nil {
			panic("population: " + err.Error())
		}
		add(name, string(ex.Rules))
	}
	found, err := fs.Glob(sets, "sets/*.yaml")
	if err != nil {
		panic("population: a bad pattern in the source: " + err.Error())
	}
	for _, file := range found {
		src, err := sets.ReadFile(file)
		if err != nil {
			panic("population: " + err.Error())
		}
		add(strings.TrimSuffix(path.Base(file), ".yaml"), string(src))
	}
	return all
})
