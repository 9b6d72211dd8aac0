package population

import (
	"math/rand/v2"
	"regexp"
	"strings"

	"github.com/dynamill/dynamill/internal/rules"
)

// hotField makes a rule count by stream position.
const hotField = ", hot: true"

var hotFields = regexp.MustCompile(`, hot: true(, display_every: \w+)?`)

// Hot returns a population of the same rule file in which about two thirds of the rules that can count by stream position do; the same
// population if none can. All else of the file stays.
func (p *Population) Hot(r *rand.Rand) *Population {
	for _, line := range ruleLine.FindAllString(p.File, -1) {
		if kind := p.ruleKind(line); kind == nil || !addsUp(kind) || perField.MatchString(line) || r.IntN(3) == 0 {
			continue
		}
		field := hotField
		if r.IntN(4) == 0 {
			field += ", display_every: 200s" // longer than the step in which a history's time passes
		}
		draft := strings.Replace(p.File, line, closing.ReplaceAllString(writeShards.ReplaceAllString(line, ""), field+" }\n"), 1)
		if hotter, err := New(p.Name, draft, p.Set.Kinds()); err == nil && hotter.PartitionKind == p.PartitionKind &&
			hotter.SortKind == p.SortKind {
			p = hotter
		}
	}
	return p
}

// formerHot draws what the line of a rule that counts by stream position was before: often the same without that.
func (p *Population) formerHot(r *rand.Rand, kind rules.Kind, line string) string {
	former := hotFields.ReplaceAllString(line, "")
	if r.IntN(2) == 0 {
		return former
	}
	if former = p.formerLine(r, kind, former); former == "" || r.IntN(3) == 0 {
		return former
	}
	return closing.ReplaceAllString(writeShards.ReplaceAllString(former, ""), hotField+" }\n")
}
