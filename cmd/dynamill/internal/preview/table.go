package preview

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/output"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/session"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/settings"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/printable"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/internal/sighting"
	"github.com/dynamill/dynamill/internal/tablescan"
)

type checkedTable struct {
	Table     string          `json:"table"`
	Sampled   int             `json:"sampledItems"`
	Whole     bool            `json:"whole"` // the sample is all there is
	About     int64           `json:"approximateItems"`
	ReadUnits float64         `json:"readUnits"`
	Entities  []entityMatches `json:"entities"`
	Unmatched unmatchedItems  `json:"unmatched"`
}

type entityMatches struct {
	Entity string   `json:"entity"`
	Key    string   `json:"key"`
	Items  int      `json:"items"`
	Rules  []string `json:"rules"` // that read or write items of it
}

type unmatchedItems struct {
	Items    int      `json:"items"`
	Examples []string `json:"examples"`
}

// checkTable compares the rule file with a table: its keys, and what its items are.
func checkTable(ctx context.Context, out *output.Output, s *settings.Settings, set *rules.Set) (*checkedTable, []foundProblem, error) {
	table, err := s.TableName(set)
	if err != nil {
		return nil, nil, err
	}
	work := session.Of(out, s, set, table)
	description, err := work.Describe(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err := projections.CheckTable(description, set); err != nil {
		return nil, nil, err
	}
	tally := newMatchTally(set)
	sample, err := sampleTable(ctx, work.Env.Tables, table, checkSample, func(item change.Item) error {
		tally.count(item)
		return nil
	})
	if err != nil {
		return nil, nil, work.Env.Classify(fmt.Errorf("reading a sample of table %q: %w", table, err))
	}
	warnings := unexpired(ctx, work.Env.Tables, table, set)
	if tally.items > 0 { // an empty table says nothing about the rules
		for _, e := range tally.unmet() {
			warnings = append(warnings, tally.warning(e))
		}
		warnings = append(warnings, tally.unseenAttributes()...)
		warnings = append(warnings, tally.occupiedKeys()...)
	}
	return newCheckedTable(table, aws.ToInt64(description.ItemCount), sample, tally), warnings, nil
}

func newCheckedTable(table string, about int64, sample tableSample, tally *matchTally) *checkedTable {
	c := &checkedTable{
		Table: table, Sampled: sample.items, Whole: sample.whole, About: max(about, int64(sample.items)), ReadUnits: sample.readUnits,
		Unmatched: unmatchedItems{tally.unmatched, sighting.KeyStrings(tally.examples)},
	}
	if sample.whole {
		c.About = int64(sample.items)
	}
	for _, e := range tally.set.Entities {
		c.Entities = append(c.Entities, entityMatches{e.Name, e.TemplateText(), tally.matched[e], append([]string{}, tally.set.RulesOf(e)...)})
	}
	return c
}

// Text says the same to people.
func (c *checkedTable) Text() string {
	name := printable.Text(c.Table)
	if c.Sampled == 0 {
		return fmt.Sprintf("\ntable %s holds no items yet: run the check again when it does\n", name)
	}
	sampled := "all " + printable.Counted(c.Sampled, "item")
	if !c.Whole {
		sampled = printable.Counted(c.Sampled, "item") + " of about " + printable.Grouped(c.About)
	}
	table := output.NewColumns("", "ENTITY", "ITEMS", "KEY")
	for _, e := range c.Entities {
		table.Add(e.Entity, printable.Grouped(e.Items), e.Key)
	}
	table.Add("(none)", printable.Grouped(c.Unmatched.Items), "")
	text := fmt.Sprintf("\ntable %s: %s read, for %g read units\n%s", name, sampled, c.ReadUnits, table.Text())
	if len(c.Unmatched.Examples) == 0 {
		return text
	}
	examples := output.Columns{Indent: "  "}
	for _, key := range c.Unmatched.Examples {
		examples.Add(key)
	}
	return text + "keys of items of no entity, such as:\n" + examples.Text()
}

const unmatchedExamples = 3

// matchTally counts how many items are of each entity of a rule file.
type matchTally struct {
	set       *rules.Set
	items     int
	matched   map[*rules.Entity]int
	keyed     map[*rules.Entity]int             // items of no entity that have this entity's keys, but not its attributes
	seen      map[*rules.Entity]map[string]bool // attributes of an entity's items
	occupying map[*rules.Entity][]change.Key    // items that stand at keys of a derived entity, and that dynamill did not make
	unmatched int
	examples  []change.Key // of unmatched items, the first ones
}

func newMatchTally(set *rules.Set) *matchTally {
	return &matchTally{set: set, matched: map[*rules.Entity]int{}, keyed: map[*rules.Entity]int{}, seen: map[*rules.Entity]map[string]bool{},
		occupying: map[*rules.Entity][]change.Key{}}
}

// count takes one item in.
func (t *matchTally) count(item change.Item) {
	t.items++
	key := t.set.Table.KeyOf(item)
	for _, e := range t.set.Entities {
		if e.Derived && e.HasKey(key) && !projections.IsMade(key, item) {
			t.occupying[e] = append(t.occupying[e], key)
		}
	}
	if m, ok := t.set.Identify(key, item); ok {
		t.matched[m.Entity]++
		if t.seen[m.Entity] == nil {
			t.seen[m.Entity] = map[string]bool{}
		}
		for name := range item {
			t.seen[m.Entity][name] = true
		}
		return
	}
	t.unmatched++
	if len(t.examples) < unmatchedExamples {
		t.examples = append(t.examples, key)
	}
	for _, e := range t.set.Entities {
		if e.HasKey(key) {
			t.keyed[e]++
		}
	}
}

// unmet lists the entities that a rule reads or writes and that no counted item is of. dynamill makes targets of mirror rules.
func (t *matchTally) unmet() []*rules.Entity {
	var unmet []*rules.Entity
	for _, e := range t.set.Entities {
		if t.matched[e] == 0 && len(e.Makers) == 0 && len(t.set.RulesOf(e)) > 0 {
			unmet = append(unmet, e)
		}
	}
	return unmet
}

// warning says of an unmet entity which rules it concerns, and what may be wrong.
func (t *matchTally) warning(e *rules.Entity) foundProblem {
	names := t.set.RulesOf(e)
	w := foundProblem{
		Code: "entity.unmatched",
		Message: fmt.Sprintf("none of %s is a %s, which %s %s", printable.Counted(t.items, "sampled item"), e.Name, strings.Join(names, ", "),
			printable.Verb(len(names), "reads or writes", "read or write")),
	}
	switch n := t.keyed[e]; {
	case n > 0:
		w.Hint = fmt.Sprintf("its keys fit %s of no entity: a %s needs %s, too", printable.Counted(n, "sampled item"), e.Name, attributesOf(e))
	case len(t.examples) > 0:
		w.Hint = fmt.Sprintf("compare its keys, %s, with the table's: %s", e.TemplateText(), strings.Join(sighting.KeyStrings(t.examples), ", "))
	default:
		w.Hint = fmt.Sprintf("its keys are %s; a sample may miss entities with few items", e.TemplateText())
	}
	return w
}

// unseenAttributes warns of attributes that rules read of an entity's items and that none of those has which were counted.
func (t *matchTally) unseenAttributes() (warnings []foundProblem) {
	for _, read := range t.set.AttributesRead() {
		n, seen := t.matched[read.Entity], t.seen[read.Entity]
		if n == 0 || seen[read.Name] {
			continue
		}
		w := foundProblem{
			Code: "attribute.unseen",
			Message: fmt.Sprintf("none of %s of %s has the attribute %s, which %s %s", printable.Counted(n, "sampled item"), read.Entity.Name,
				read.Name, strings.Join(read.Rules, ", "), printable.Verb(len(read.Rules), "reads", "read")),
			Hint: fmt.Sprintf("a sample may miss what few items have; in an expression, a text stands in quotes: %q", read.Name),
		}
		if like := read.Like(slices.Sorted(maps.Keys(seen))); like != "" {
			w.Hint = fmt.Sprintf("did you mean %s?", like)
		}
		warnings = append(warnings, w)
	}
	return warnings
}

// occupiedKeys warns of items that dynamill would delete or replace, because they stand at keys of derived entities.
func (t *matchTally) occupiedKeys() (warnings []foundProblem) {
	for _, e := range t.set.Entities {
		if keys := t.occupying[e]; len(keys) > 0 {
			warnings = append(warnings, foundProblem{
				Code: "derived.occupied",
				Message: fmt.Sprintf("%s %s at keys of %s: every item there belongs to the rules, which delete or replace it",
					printable.Counted(len(keys), "sampled item"), printable.Verb(len(keys), "stands", "stand"), e.Name),
				Hint: fmt.Sprintf("give %s other keys, or keep a copy of what these items hold: %s", e.Name,
					strings.Join(sighting.KeyStrings(keys[:min(len(keys), unmatchedExamples)]), ", ")),
			})
		}
	}
	return warnings
}

// attributesOf shows the attributes that an entity's items must have.
func attributesOf(e *rules.Entity) string {
	texts := make([]string, len(e.Equals))
	for i, eq := range e.Equals {
		value := eq.Value.Text()
		switch eq.Value.Kind() {
		case change.KindString:
			value = fmt.Sprintf("%q", value)
		case change.KindBool:
			value = fmt.Sprint(eq.Value.Bool())
		}
		texts[i] = eq.Attribute + " == " + value
	}
	return strings.Join(texts, " and ")
}

// sampleSegments is how many parts of the table give equal numbers of items to a sample.
const sampleSegments = 16

// sampleBounds limit a sample. A page has up to 1 MB (DynamoDB API, Scan), which
// takes 128 read units.
type sampleBounds struct{ itemsMax, pagesMax int }

var (
	checkSample = sampleBounds{itemsMax: 1000, pagesMax: 64} // up to 8,192 read units
	planSample  = sampleBounds{itemsMax: 2000, pagesMax: 32} // up to 4,096 read units
)

// tableSample says how much of a table was read.
type tableSample struct {
	items     int
	whole     bool // these are all items of the table
	readUnits float64
}

// sampleTable hands items of the table to take, within the bounds. It reads from several segments, so that the items come from
// all over the table's partitions.
func sampleTable(ctx context.Context, client tablescan.Client, table string, bounds sampleBounds,
	take func(change.Item) error) (s tableSample, err error) {
	scan := &tablescan.Table{Client: client, TableName: table, Segments: sampleSegments, EventuallyConsistent: true}
	behind := map[int]tablescan.Key{} // of each segment that is not read to its end
	for i := range sampleSegments {
		behind[i] = nil
	}
	for pages := 0; len(behind) > 0; {
		share := (bounds.itemsMax - s.items + len(behind) - 1) / len(behind)
		for _, segment := range slices.Sorted(maps.Keys(behind)) {
			limit := min(share, bounds.itemsMax-s.items)
			if limit == 0 || pages == bounds.pagesMax {
				return s, nil
			}
			page, err := scan.Read(ctx, segment, behind[segment], limit)
			if err != nil {
				return s, err
			}
			pages++
			for _, item := range page.Items {
				if err := take(attributes.ItemFromTable(item)); err != nil {
					return s, err
				}
			}
			s.items += len(page.Items)
			s.readUnits += page.ReadUnits
			if behind[segment] = page.Next; page.Next == nil {
				delete(behind, segment)
			}
		}
	}
	s.whole = true
	return s, nil
}
