package population

import (
	"embed"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/internal/story"
)

//go:embed sets/*.yaml
var sets embed.FS

const (
	drawnPercent = 70  // of the rule sets are drawn
	draftsMax    = 100 // nearly every first draft is accepted
)

// Draw draws a population: a handwritten one, an example's, or, mostly, one
// whose rule set is drawn too.
func Draw(r *rand.Rand, kinds []rules.Kind) *Population {
	if r.IntN(100) >= drawnPercent {
		all := Written(kinds)
		if r.IntN(2) == 0 {
			return oneOf(r, all[:examples()]) // a new example takes nothing from the sets that go to the edges
		}
		return oneOf(r, all[examples():])
	}
	for range draftsMax {
		if p, err := New("drawn", draft(r, kinds), kinds); err == nil {
			return p
		}
	}
	panic(fmt.Sprintf("population: none of %d drafts of a rule file was accepted", draftsMax))
}

// DrawForLocal draws a population for DynamoDB Local, of which no rule shows an empty map. Its streams give an empty map without a type,
// and the AWS SDK for Go then takes the value of another attribute in its place.
func DrawForLocal(r *rand.Rand, kinds []rules.Kind) *Population {
	for {
		p := Draw(r, kinds)
		if !slices.ContainsFunc(p.Set.Rules, showsEmptyMaps) {
			return p
		}
	}
}

// showsEmptyMaps reports whether a rule shows {} over nothing, or of an item without the attributes that it shows.
func showsEmptyMaps(rule *rules.Rule) bool {
	return len(rule.Shown) > 0 || rule.HasPer() && !slices.Contains(rule.Form.Says(), rules.Said{Key: "if_none", Text: "absent"})
}

// examples is how many of the written populations are those of examples.
func examples() int { return len(story.Names()) }

// Written returns the populations that are not drawn: the examples', and then the
// handwritten ones. The first call reads them, with its kinds.
func Written(kinds []rules.Kind) []*Population {
	written.Do(func() { written.all = readWritten(kinds) })
	return written.all
}

var written struct {
	sync.Once
	all []*Population
}

func readWritten(kinds []rules.Kind) []*Population {
	var all []*Population
	add := func(name, src string) {
		p, err := New(name, src, kinds)
		if err != nil {
			panic("population: a rule file of the source is refused: " + err.Error())
		}
		all = append(all, p)
	}
	for _, name := range story.Names() {
		ex, err := story.Load(name, kinds)
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
}
