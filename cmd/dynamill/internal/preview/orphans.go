package preview

import (
	"context"
	"fmt"
	"slices"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/session"
	"github.com/dynamill/dynamill/internal/printable"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/replay/verify"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/internal/tablescan"
)

// plan counts orphans only in a table of at most this many items and bytes: it reads all items.
const (
	orphanItemsMax = 1_000_000
	orphanBytesMax = 1 << 30
)

// orphanSegments is the number of parallel segments of that scan.
const orphanSegments = 4

// addOrphans adds, for each new or changed delete rule, how many items already have no parent. It deletes nothing.
func (p *Plan) addOrphans(ctx context.Context, w *session.Session, found *projections.Comparison) error {
	var asked []*rules.Rule
	var names []string
	for _, r := range found.Rules {
		if r.Rule != nil && r.Rule.Deletes() && (r.What == projections.RuleAdded || r.What == projections.RuleChanged) {
			asked, names = append(asked, r.Rule), append(names, r.Rule.Name)
		}
	}
	if len(asked) == 0 {
		return nil
	}
	counted := p.Items <= orphanItemsMax && p.Bytes <= orphanBytesMax
	numbers := map[string]int64{}
	if counted {
		var err error
		if numbers, err = countOrphans(ctx, w, names); err != nil {
			return w.Env.Classify(fmt.Errorf("counting the orphans of table %q: %w", w.Table, err))
		}
	}
	for _, r := range asked {
		i := slices.IndexFunc(p.Rules, func(line ruleChange) bool { return line.Rule == r.Name })
		text := fmt.Sprintf("the table is large: `dynamill replay --dry-run --rule %s`, with this rule file, says how many %s items have no %s "+
			"already", r.Name, r.Target.Name, r.Source.Name)
		if counted {
			p.Rules[i].Orphans = new(numbers[r.Name])
			text = OrphansText(r, numbers[r.Name])
		}
		p.Rules[i].Details = append(p.Rules[i].Details, text)
	}
	return nil
}

// countOrphans counts by rule.
func countOrphans(ctx context.Context, w *session.Session, names []string) (map[string]int64, error) {
	numbers := map[string]int64{}
	items := &tablescan.Table{Client: w.Env.Tables, TableName: w.Table, Segments: orphanSegments}
	_, err := judgeAhead(ctx, w.AuditConfig(names), w.Logger, items, func(r verify.Result) error {
		if r.Status == verify.Listed {
			numbers[r.Rule]++
		}
		return nil
	})
	return numbers, err
}

// OrphansText says how many children a rule finds without a parent, and what becomes of them.
func OrphansText(r *rules.Rule, n int64) string {
	if n == 0 {
		return fmt.Sprintf("every %s has its %s: there are no orphans", r.Target.Name, r.Source.Name)
	}
	return fmt.Sprintf("%s without a %s would be deleted by `dynamill verify --delete-orphans`, and by nothing else, unless the stream "+
		"still holds the deletion of its %s", printable.Counted(n, r.Target.Name+" item"), r.Source.Name, r.Source.Name)
}
