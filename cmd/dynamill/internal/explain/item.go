package explain

import (
	"context"
	"errors"
	"fmt"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/output"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/session"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/settings"
	"github.com/dynamill/dynamill/internal/printable"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/replay"
)

// itemResult is the result of `explain --key`.
type itemResult struct{ projections.KeyExplanation }

// Item says what both tables hold of the item with a key.
func Item(ctx context.Context, out *output.Output, s *settings.Settings, text string) error {
	w, err := session.New(out, s)
	if err != nil {
		return err
	}
	key, err := replay.ParseKey(text, replay.KeyNames{Partition: w.Set.Table.PartitionKey, Sort: w.Set.Table.SortKey})
	if err != nil {
		return ending.Invalid("--key: %w", err)
	}
	if err := w.Connect(ctx); err != nil {
		return err
	}
	audit, err := projections.OpenAudit(ctx, w.AuditConfig(nil))
	if err != nil {
		return w.Env.Classify(fmt.Errorf("explaining %s: %w", key, w.Env.ExplainLostState(ctx, err)))
	}
	found, err := audit.ExplainKey(ctx, key)
	switch {
	case errors.Is(err, projections.ErrKeyImpossible):
		return ending.Invalid("--key %s: %w", printable.Shell(text), err)
	case err != nil:
		return w.Env.Classify(fmt.Errorf("explaining %s: %w", key, err))
	}
	out.PrintResult(itemResult{found})
	return nil
}

// Text says it to people: what the item is, its stamps, the rows, and what the rules ask for.
func (k itemResult) Text() string {
	text := printable.Text(k.Key+": "+k.entity()) + "\n"
	var stamps, rows, rules output.Columns
	stamps.Indent, rows.Indent, rules.Indent = "  ", "  ", "  "
	for _, s := range k.Stamps {
		stamps.Add(s.Attribute, s.Rule, s.Says)
	}
	for _, r := range k.Rows {
		rows.Add(r.Row, r.Rule, r.Says)
	}
	for _, l := range k.Lines {
		rules.Add(l.Rule, l.Effect, l.Write)
	}
	if k.Exists {
		text += section("stamps on it", stamps, "none")
	}
	text += section("rows of the state table", rows, "none that can be found by the key")
	if k.Exists {
		text += section("what the rules would ask for if it were inserted as it is", rules, "nothing")
	}
	return text
}

// section is a table below its title.
func section(title string, table output.Columns, none string) string {
	if text := table.Text(); text != "" {
		return title + ":\n" + text
	}
	return title + ": " + none + "\n"
}

// entity says what the item is.
func (k itemResult) entity() string {
	text := k.Entity
	switch {
	case !k.Exists:
		return "there is no such item"
	case text == "":
		text = "no entity of the rule file"
	}
	if k.Made {
		text += ", made by dynamill"
	}
	return text
}
