// Package preview says what a rule file finds in a table and would change there: the cost of each rule, which items are of which
// entity, what differs from the rules in force, and what seeding takes. It imports session, report, projections and
// internal/replay/verify.
package preview

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/environment"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/output"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/report"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/session"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/settings"
	"github.com/dynamill/dynamill/internal/following"
	"github.com/dynamill/dynamill/internal/printable"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/internal/rules/rulediff"
)

// Plan is the result of `plan`, as text and as JSON.
type Plan struct {
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
	Rule        string                 `json:"rule"`
	What        string                 `json:"what"`
	Former      string                 `json:"former,omitempty"` // name, of a renamed rule
	ID          string                 `json:"id,omitempty"`
	Differences []rulediff.FieldChange `json:"differences,omitempty"`
	Details     []string               `json:"details,omitempty"`
	Orphans     *int64                 `json:"orphans,omitempty"` // items that the rule would delete, if their parents were deleted now
}

// ShowPlan says what a rule file would change in the table.
func ShowPlan(ctx context.Context, out *output.Output, s *settings.Settings) error {
	w, err := session.New(out, s)
	if err != nil {
		return err
	}
	w.LogWarnings()
	description, err := w.Describe(ctx)
	if err != nil {
		return err
	}
	found, err := CompareRules(ctx, w)
	if err != nil {
		return err
	}
	p := NewPlan(found, w.Set, aws.ToInt64(description.ItemCount), aws.ToInt64(description.TableSizeBytes))
	p.Table = w.Table
	if err := p.addOrigins(ctx, w, description); err != nil {
		return err
	}
	if err := p.addOrphans(ctx, w, found); err != nil {
		return err
	}
	out.PrintResult(p)
	return nil
}

// CompareRules compares the rule file with the rules in force.
func CompareRules(ctx context.Context, w *session.Session) (*projections.Comparison, error) {
	found, err := projections.Compare(ctx, w.Env.Tables, w.Env.StateTable, w.Set)
	if found != nil && found.Table != "" {
		if owned := w.Env.CheckOwner(found.Table); owned != nil {
			return nil, owned
		}
	}
	if err != nil {
		return nil, w.Env.Classify(fmt.Errorf("comparing the rules with those in force in table %q: %w", w.Table, err))
	}
	return found, nil
}

// addOrigins says of a table without rules in force what `run` does first, and names a table of dynamill's own that was deleted.
func (p *Plan) addOrigins(ctx context.Context, w *session.Session, table *types.TableDescription) error {
	t, err := w.Env.Traces(ctx)
	if err != nil {
		return err
	}
	lost := t.Lost(aws.ToString(table.LatestStreamArn))
	p.Lost = w.Env.LostText(lost)
	if lost == following.LostState {
		p.Summary = "no rule change can be carried out before this table is restored or started over"
		return nil
	}
	if t.Registered {
		return nil
	}
	p.Seed = estimateSeed(ctx, w.AuditConfig(nil), w.Logger, environment.Counts{Items: p.Items, Bytes: p.Bytes})
	p.Summary = fmt.Sprintf("nothing has run on this table yet: `dynamill run` creates %s and %s, and seeds %s: %s",
		w.Env.StateTable, w.Env.LeaseTable, printable.Counted(len(w.Set.Rules), "rule"), p.Seed.text())
	return nil
}

// NewPlan says what comes of a comparison, for a table of about so many items and bytes.
func NewPlan(found *projections.Comparison, set *rules.Set, items, bytes int64) *Plan {
	p := &Plan{StateTable: found.StateTable, Epoch: found.Epoch, Items: items, Bytes: bytes, Rules: []ruleChange{}}
	replayed := 0
	for _, r := range found.Rules {
		line := ruleChange{Rule: r.Name, What: string(r.What), Former: r.FormerName, ID: r.ID, Details: planDetails(r, set)}
		if r.What == projections.RuleChanged && r.Former != nil {
			line.Differences = rulediff.Compare(r.Former, r.Rule)
		}
		same := r.What == projections.RuleUnchanged || r.What == projections.RuleRenamed || r.What == projections.RuleSpread
		if !same || !r.Live {
			replayed++
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
		p.Summary = fmt.Sprintf("%s to be carried out by `dynamill replay`, which reads all items of the table%s",
			printable.Counted(replayed, "rule"), sized(items, bytes))
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
	return fmt.Sprintf(" (about %s items, %s)", printable.Grouped(items), size)
}

// Text is the plan as people read it: a line for each rule, and below it what that means.
func (p *Plan) Text() string {
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

func saidAs(text string) string {
	if text == "" {
		return "nothing"
	}
	return "`" + printable.Text(text) + "`"
}

const (
	stillSeeded = "is still being seeded: `dynamill run` or `dynamill replay` finishes it"
	fileNotKept = "the former rule is not known: an earlier version registered it and kept no rule file; start `dynamill run` once with the " +
		"file that is in force"
	needsReplay    = "needs replay: "
	howManyUnknown = "; their number is known only once they are read"
)

func planDetails(r projections.RuleChange, set *rules.Set) []string {
	if r.Former == nil && (r.What == projections.RuleChanged || r.What == projections.RuleRemoved) {
		return []string{fileNotKept}
	}
	switch r.What {
	case projections.RuleAdded:
		return []string{needsReplay + r.Rule.Form.Replays()}
	case projections.RuleChanged:
		return append(moves(r.Former, r.Rule, set), needsReplay+r.Rule.Form.Replays())
	case projections.RuleRemoved:
		return moves(r.Former, nil, set)
	case projections.RuleRetiring:
		return []string{report.StillRetiring}
	case projections.RuleRenamed:
		return []string{"means what it meant: nothing moves"}
	case projections.RuleSpread:
		return []string{fmt.Sprintf("write_shards: %d instead of %d: nothing moves", r.Rule.Suffixes(), r.Shards)}
	}
	if !r.Live {
		return []string{stillSeeded}
	}
	return nil
}

// moves says what is taken back of a rule that means something else now, or is gone (next is nil).
func moves(former, next *rules.Rule, set *rules.Set) []string {
	if former.MakesItems() {
		if next != nil && next.MakesItems() && former.Target.HasKeysLike(next.Target) {
			lines := []string{fmt.Sprintf("rewrites the %s items in place, and deletes those that it does not ask for any more, with all that is "+
				"on them%s", former.Target.Name, howManyUnknown)}
			if gone := unclaimed(former, set); len(gone) > 0 {
				lines = append(lines, fmt.Sprintf("takes %s off them", strings.Join(gone, ", ")))
			}
			return lines
		}
		return []string{fmt.Sprintf("deletes the %s items that the former rule made, with all that is on them%s", former.Target.Name,
			howManyUnknown)}
	}
	var lines []string
	gone := unclaimed(former, set)
	if len(gone) > 0 {
		lines = append(lines, fmt.Sprintf("takes %s off every %s that still has it from the former rule%s", strings.Join(gone, ", "),
			former.Target.Name, howManyUnknown))
	}
	kept := slices.DeleteFunc(slices.Clone(former.Writes), func(name string) bool { return slices.Contains(gone, name) })
	if len(kept) > 0 {
		lines = append(lines, fmt.Sprintf("overwrites %s on every %s", strings.Join(kept, ", "), former.Target.Name))
	}
	return lines
}

// sameMatch reports whether two entities are told from others by the same values.
func sameMatch(a, b *rules.Entity) bool {
	return slices.EqualFunc(a.Equals, b.Equals, func(x, y rules.Equals) bool { return x.Attribute == y.Attribute && x.Value.Equal(y.Value) })
}

// unclaimed are the attributes that a former rule wrote and that no rule writes on the same items now.
func unclaimed(former *rules.Rule, set *rules.Set) []string {
	return slices.DeleteFunc(slices.Clone(former.Writes), func(name string) bool {
		return slices.ContainsFunc(set.Rules, func(r *rules.Rule) bool {
			return r.Target.HasKeysLike(former.Target) && sameMatch(r.Target, former.Target) && slices.Contains(r.Writes, name)
		})
	})
}
