package preview

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/output"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/session"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/settings"
	"github.com/dynamill/dynamill/internal/printable"
	"github.com/dynamill/dynamill/internal/sighting"
	"github.com/dynamill/dynamill/projections"
	"github.com/dynamill/dynamill/rules"
)

// checkedTable is what `check --table` says of a table.
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
	return newCheckedTable(table, aws.ToInt64(description.ItemCount), sample, tally), tally.warnings(), nil
}

func newCheckedTable(table string, about int64, sample tableSample, tally *matchTally) *checkedTable {
	c := &checkedTable{
		Table: table, Sampled: sample.items, Whole: sample.whole, About: max(about, int64(sample.items)), ReadUnits: sample.readUnits,
		Unmatched: unmatchedItems{tally.unmatched, sighting.KeyTexts(tally.examples)},
	}
	if sample.whole {
		c.About = int64(sample.items)
	}
	for _, e := range tally.set.Entities {
		c.Entities = append(c.Entities, entityMatches{e.Name, e.KeyText(), tally.matched[e], NotNil(tally.set.RulesOf(e))})
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
