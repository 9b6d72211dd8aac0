package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/spf13/cobra"

	"github.com/dynamill/dynamill/internal/following"
	"github.com/dynamill/dynamill/internal/printable"
	"github.com/dynamill/dynamill/projections"
	"github.com/dynamill/dynamill/rules"
)

// rulePlan is the result of `plan`, as text and as JSON.
type rulePlan struct {
	Table      string        `json:"table"`
	StateTable string        `json:"stateTable"`
	Epoch      int           `json:"epoch"` // of the rules in force; 0 if there are none
	Items      int64         `json:"items"` // about, in the table
	Bytes      int64         `json:"bytes"`
	Replay     bool          `json:"replay"` // something is to be replayed
	Summary    string        `json:"summary"`
	Lost       string        `json:"lost,omitempty"` // which of dynamill's tables was deleted, and what to do
	Seed       *seedEstimate `json:"seed,omitempty"` // of a table on which nothing has run
	Rules      []ruleChange  `json:"rules"`
}

type ruleChange struct {
	Rule        string              `json:"rule"`
	What        string              `json:"what"`
	Former      string              `json:"former,omitempty"` // name, of a renamed rule
	ID          string              `json:"id,omitempty"`
	Differences []rules.FieldChange `json:"differences,omitempty"`
	Details     []string            `json:"details,omitempty"`
}

func (a *app) planCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "plan",
		Short: "Says what a rule file would change in the table",
		Long: "Compares the rule file with the rules in force in the table, and says of each rule whether it is unchanged, renamed,\n" +
			"added, changed or removed, and what `dynamill replay` would do to carry that out: what it reads, which attributes it\n" +
			"moves or takes off, and which mirror items it deletes. Of a table on which nothing has run it says what seeding reads\n" +
			"and writes, projected from up to 2,000 items. It names a deleted state table or lease table. It writes nothing.",
		Example: "  dynamill plan --table app\n  dynamill plan --rules new.yaml --table app --json",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.plan(cmd.Context()) },
	}
}

func (a *app) plan(ctx context.Context) error {
	set, table, err := a.options.loadForTable()
	if err != nil {
		return err
	}
	logger := a.logger(a.stderr)
	logWarnings(logger, set)
	env, err := a.options.connect(ctx, table, logger)
	if err != nil {
		return err
	}
	description, err := env.describe(ctx)
	if err != nil {
		return err
	}
	found, err := projections.Compare(ctx, env.tables, env.stateTable, set)
	if err != nil {
		return env.classify(fmt.Errorf("comparing the rules with those in force in table %q: %w", table, err))
	}
	if found.Table != "" {
		if err := env.checkOwner(found.Table); err != nil {
			return err
		}
	}
	p := newPlan(found, set, aws.ToInt64(description.ItemCount), aws.ToInt64(description.TableSizeBytes))
	p.Table = table
	if err := p.addOrigins(ctx, env, set, description, a.logger(a.stderr)); err != nil {
		return err
	}
	if a.options.json {
		return a.printJSON(p)
	}
	return a.printText(p.text())
}

// addOrigins says of a table without rules in force what `run` does first, and
// names a table of dynamill's own that was deleted.
func (p *rulePlan) addOrigins(ctx context.Context, env *environment, set *rules.Set, table *types.TableDescription, logger *slog.Logger) error {
	t, err := env.traces(ctx, aws.ToString(table.LatestStreamArn))
	if err != nil {
		return err
	}
	p.Lost = env.lostText(t.Lost())
	if t.Lost() == following.LostState {
		p.Summary = "nothing can be carried out before that"
		return nil
	}
	if t.Registered {
		return nil
	}
	p.Seed = estimateSeed(ctx, env.tables, env.table, env.stateTable, set, logger, counts{items: p.Items, bytes: p.Bytes})
	p.Summary = fmt.Sprintf("nothing has run on this table yet: `dynamill run` creates %s and %s, and seeds %s: %s", env.stateTable, env.leaseTable, counted(len(set.Rules), "rule"), p.Seed.text())
	return nil
}

func newPlan(found *projections.Comparison, set *rules.Set, items, bytes int64) *rulePlan {
	p := &rulePlan{StateTable: found.StateTable, Epoch: found.Epoch, Items: items, Bytes: bytes, Rules: []ruleChange{}}
	replayed := 0
	for _, r := range found.Rules {
		line := ruleChange{Rule: r.Name, What: string(r.What), Former: r.FormerName, ID: r.ID, Details: planDetails(r, set)}
		if r.What == projections.RuleChanged && r.Former != nil {
			line.Differences = rules.Compare(r.Former, r.Rule)
		}
		switch r.What {
		case projections.RuleAdded, projections.RuleChanged, projections.RuleRemoved, projections.RuleRetiring:
			replayed++
		case projections.RuleUnchanged, projections.RuleRenamed, projections.RuleSpread:
			if !r.Live {
				replayed++
			}
		}
		p.Rules = append(p.Rules, line)
	}
	p.Replay = replayed > 0
	switch {
	case found.Idle():
		p.Summary = "nothing to do"
	case replayed == 0:
		p.Summary = "nothing to replay: it takes effect when a process starts with this file"
	default:
		p.Summary = fmt.Sprintf("%s to be carried out by `dynamill replay`, which reads all items of the table%s", counted(replayed, "rule"), sized(items, bytes))
	}
	return p
}

// sized is what DynamoDB says of a table's size, every six hours or so.
func sized(items, bytes int64) string {
	if items == 0 {
		return ""
	}
	size := fmt.Sprintf("%d bytes", bytes)
	for i, unit := range []string{"KB", "MB", "GB", "TB"} {
		if n := float64(bytes) / float64(int64(1)<<(10*(i+1))); n >= 1 {
			size = fmt.Sprintf("%.1f %s", n, unit)
		}
	}
	return fmt.Sprintf(" (about %s items, %s)", grouped(items), size)
}

// text is the plan as people read it: a line for each rule, and below it what that means.
func (p *rulePlan) text() string {
	var b strings.Builder
	for _, r := range p.Rules {
		fmt.Fprintf(&b, "%-9s  %s", r.What, printable.Text(r.Rule))
		if r.Former != "" {
			fmt.Fprintf(&b, ", which was %s", printable.Text(r.Former))
		}
		b.WriteString("\n")
		for _, d := range r.Differences {
			fmt.Fprintf(&b, "             %s: %s becomes %s\n", d.Field, saidAs(d.Old), saidAs(d.New))
		}
		for _, line := range r.Details {
			fmt.Fprintf(&b, "             %s\n", printable.Text(line))
		}
	}
	if p.Lost != "" {
		fmt.Fprintf(&b, "%s\n", printable.Text(p.Lost))
	}
	fmt.Fprintf(&b, "%s\n", printable.Text(p.Summary))
	return b.String()
}

// saidAs shows what a rule file says, or that it says nothing.
func saidAs(text string) string {
	if text == "" {
		return "nothing"
	}
	return "`" + printable.Text(text) + "`"
}
