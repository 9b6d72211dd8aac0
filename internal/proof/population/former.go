package population

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/internal/rules"
)

// formerDraftsMax is how many drafts of a former file are tried: most of them are accepted.
const formerDraftsMax = 10

var (
	ruleLine    = regexp.MustCompile(`(?m)^  ([\w-]+):( *)\{ (\w+):.*\n`)
	ifNone      = regexp.MustCompile(`, if_none: \w+`)
	perField    = regexp.MustCompile(`, per: (?:"[^"]*"|[^,} ]+)`)
	writeShards = regexp.MustCompile(`, write_shards: \d`)
	whereField  = regexp.MustCompile(`, where: [^,\[\]{}]+`)
	joinField   = regexp.MustCompile(`, (by|each): \w+`)
	otherField  = regexp.MustCompile(`, (if_missing|set): \{[^{}]*\}`)
	total       = regexp.MustCompile(`as: (\w+)\.(\w+)`)
	firstPair   = regexp.MustCompile(`\[[^,\[\]]+, `)
	asPair      = regexp.MustCompile(` as (\w+)`)
	ownText     = regexp.MustCompile(`\{ set: \{ (\w+): '`) // of a rule that works attributes out
	treeLineage = regexp.MustCompile(`, lineage: \w+`)
	treePath    = regexp.MustCompile(`, path: (\w+) as (\w+)`)
	closing     = regexp.MustCompile(` \}\n$`)
)

// Formerly draws a rule file as it may have been before it became this one: some
// rules were not there, had other names, or meant something else. It reports
// false if no draft is a rule file for the same table.
func (p *Population) Formerly(r *rand.Rand) (string, bool) {
	for range formerDraftsMax {
		text := ruleLine.ReplaceAllStringFunc(p.File, func(line string) string {
			kind := p.ruleKind(line)
			if kind == nil || r.IntN(2) == 0 {
				return line
			}
			if hotFields.MatchString(line) {
				return p.formerHot(r, kind, line)
			}
			if kind.Traits().Displays != "" && !addsUp(kind) && r.IntN(2) == 0 {
				return formerOrder(line, r.IntN(4))
			}
			return p.formerLine(r, kind, line)
		})
		former, err := New("former", text, p.Set.Kinds())
		if err == nil && text != p.File && former.PartitionKind == p.PartitionKind && former.SortKind == p.SortKind {
			return text, true
		}
	}
	return "", false
}

// formerTree is what the line of a tree was before.
func formerTree(x int, line string) string {
	switch {
	case x < 7 && treeLineage.MatchString(line):
		return treeLineage.ReplaceAllString(line, "")
	case x < 10 && treePath.MatchString(line):
		return treePath.ReplaceAllString(line, ", path: $1 as ${2}Once")
	}
	return line
}

// formerLine draws what the line of a rule was before.
func (p *Population) formerLine(r *rand.Rand, of rules.Kind, line string) string {
	name, kind, aggregate := ruleLine.FindStringSubmatch(line)[1], of.Word(), addsUp(of)
	added := func(field string) string { return closing.ReplaceAllString(line, ", "+field+" }\n") }
	switch x := r.IntN(12); {
	case x < 2:
		return ""
	case x < 4:
		return strings.Replace(line, name+":", name+"-once:", 1)
	case kind == "tree":
		return formerTree(x, line)
	case x < 5 && aggregate:
		return total.ReplaceAllString(line, "as: $1.${2}Once")
	case x < 6 && aggregate:
		return closing.ReplaceAllString(writeShards.ReplaceAllString(line, ""), fmt.Sprintf(", write_shards: %d }\n", 1+r.IntN(4)))
	case x < 7 && aggregate && r.IntN(2) == 0:
		return p.otherPer(r, name, kind, line)
	case x < 8 && kind != "copy" && !strings.Contains(line, "where:"):
		return added(fmt.Sprintf("where: has(%s)", p.slotName(r, name)))
	case x < 8 && whereField.MatchString(line):
		return whereField.ReplaceAllString(line, "")
	case x < 9 && joinField.MatchString(line):
		return joinField.ReplaceAllString(line, ", $1: "+p.slotName(r, name))
	case x < 10 && ownText.MatchString(line):
		return ownText.ReplaceAllString(line, "{ set: { ${1}: 'once")
	case x < 10 && otherField.MatchString(line):
		return otherField.ReplaceAllString(line, "")
	case x < 11 && firstPair.MatchString(line):
		return firstPair.ReplaceAllString(line, "[")
	case aggregate && len(of.Traits().Expressions) == 1:
		for _, other := range adders(p.Set.Kinds()) {
			if other != kind {
				return strings.Replace(perField.ReplaceAllString(ifNone.ReplaceAllString(line, ""), ""), "{ "+kind+":", "{ "+other+":", 1)
			}
		}
	case !aggregate && asPair.MatchString(line):
		return asPair.ReplaceAllString(line, " as ${1}Once")
	}
	return ""
}

// otherPer has the targets of a total show a number for each value if they did not, or one number if they did; or something
// else over nothing.
func (p *Population) otherPer(r *rand.Rand, name, kind, line string) string {
	switch has := perField.MatchString(line); {
	case has && len(line)%2 == 0:
		return perField.ReplaceAllString(line, "")
	case !has && kind != "average" && len(line)%3 == 0:
		return closing.ReplaceAllString(line, ", per: "+inYAML(named(p.slotName(r, name)))+" }\n")
	}
	return otherNone(kind, line)
}

var (
	orderWord  = regexp.MustCompile(`\{ (min|max|first|last): `)
	orderCount = regexp.MustCompile(`(first|last): (\d)`)
	orderField = regexp.MustCompile(`, order: [^,}]+`)
)

// formerOrder draws what the line of a rule that shows some of its items was before.
func formerOrder(line string, n int) string {
	other := map[string]string{"min": "max", "max": "min", "first": "last", "last": "first"}
	switch word := orderWord.FindStringSubmatch(line)[1]; {
	case n == 0:
		return strings.Replace(line, "{ "+word+": ", "{ "+other[word]+": ", 1)
	case n == 1 && orderCount.MatchString(line):
		return orderCount.ReplaceAllString(line, "$1: 1$2")
	case n == 2 && orderField.MatchString(line):
		return orderField.ReplaceAllString(line, ", order: "+remark)
	}
	return total.ReplaceAllString(line, "as: $1.${2}Once")
}

// otherNone has the targets of a total show 0 if they did not, or not if they did.
func otherNone(kind, line string) string {
	if kind == "average" || ifNone.MatchString(line) {
		return ifNone.ReplaceAllString(line, "")
	}
	return closing.ReplaceAllString(line, ", if_none: absent }\n")
}

// ruleKind is the kind of the rule that a line has; nil: it has an entity.
func (p *Population) ruleKind(line string) rules.Kind {
	word := ruleLine.FindStringSubmatch(line)[3]
	for _, k := range p.Set.Kinds() {
		if k.Word() == word {
			return k
		}
	}
	return nil
}

// slotName draws an attribute of a rule's sources or targets.
func (p *Population) slotName(r *rand.Rand, name string) string {
	for _, rule := range p.Set.Rules {
		if rule.Name != name {
			continue
		}
		for _, e := range []*rules.Entity{rule.Source, rule.Target} {
			if k := p.kinds[slices.Index(p.Set.Entities, e)]; r.IntN(2) == 0 {
				return oneOf(r, k.slots).name
			}
		}
	}
	return remark
}
