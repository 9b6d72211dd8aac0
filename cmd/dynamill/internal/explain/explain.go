// Package explain says what the stream records of a file would cause, without a request, and what both tables hold of one
// item. It imports session, rules, projections, change, internal/dynamojson, and internal/replay for how a key is written.
package explain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/output"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/session"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/settings"
	"github.com/dynamill/dynamill/internal/printable"
	"github.com/dynamill/dynamill/internal/projections/audits"
	"github.com/dynamill/dynamill/internal/replay/sources"
)

// recordFileMax bounds what `explain` reads (bytes); a Lambda payload has at most 6 MB.
const recordFileMax = 16 << 20

type explained struct {
	Records []explainedRecord `json:"records"`
}

type explainedRecord struct {
	Key   string `json:"key"`
	Event string `json:"event"`
	audits.Explanation
}

// Run says what the records of a file would cause.
func Run(out *output.Output, s *settings.Settings, file string) error {
	set, err := s.Load()
	if err != nil {
		return err
	}
	src, err := s.Read("the record file", "the record file", file, recordFileMax+1)
	if err != nil {
		return err
	}
	if len(src) > recordFileMax {
		return ending.Invalid("%s is larger than %d MB: give fewer records", file, recordFileMax>>20)
	}
	records, err := Decode(src, set.Table)
	if err != nil {
		return ending.Invalid("%s: %w", file, err)
	}
	result := explained{make([]explainedRecord, len(records))}
	for i, record := range records {
		result.Records[i] = explainedRecord{record.Key.String(), eventOf(record), audits.Explain(set, record)}
	}
	out.PrintResult(result)
	return nil
}

func eventOf(record change.Record) string {
	switch {
	case record.Old == nil:
		return "INSERT"
	case record.New == nil && record.Expired:
		return "REMOVE (time to live)"
	case record.New == nil:
		return "REMOVE"
	}
	return "MODIFY"
}

// Text says it to people: a paragraph for each record.
func (e explained) Text() string {
	paragraphs := make([]string, len(e.Records))
	for i, r := range e.Records {
		table := output.Columns{Indent: "  "}
		for _, line := range r.Lines {
			table.Add(line.Rule, line.Effect, line.Write)
		}
		paragraphs[i] = printable.Text(r.Event+" "+r.Key+": "+r.entity()) + "\n" + table.Text()
		if len(r.Lines) == 0 && !r.Unmatched {
			paragraphs[i] += "  no rule reads what changed: nothing is written\n"
		}
		for _, s := range r.Stamps {
			paragraphs[i] += printable.Text("  stamp "+s.Attribute+" of "+s.Rule+": "+s.Says) + "\n"
		}
	}
	return strings.Join(paragraphs, "\n")
}

// entity says what the item is, and was if that differs.
func (r explainedRecord) entity() string {
	switch {
	case r.Unmatched:
		return "no entity of the rule file: ignored"
	case r.Old != "" && r.New != "" && r.Old != r.New:
		return fmt.Sprintf("%s, before: %s", r.New, r.Old)
	}
	return cmp.Or(r.New, r.Old)
}

type itemResult struct{ audits.KeyExplanation }

// Item says what both tables hold of the item with a key.
func Item(ctx context.Context, out *output.Output, s *settings.Settings, text string) error {
	w, err := session.New(out, s)
	if err != nil {
		return err
	}
	key, err := sources.ParseKey(text, sources.KeyNames{Partition: w.Set.Table.PartitionKey, Sort: w.Set.Table.SortKey})
	if err != nil {
		return ending.Invalid("--key: %w", err)
	}
	if err := w.Connect(ctx); err != nil {
		return err
	}
	audit, err := audits.Open(ctx, w.AuditConfig(nil))
	if err != nil {
		return w.Env.Classify(fmt.Errorf("explaining %s: %w", key, w.Env.ExplainLostState(ctx, err)))
	}
	found, err := audit.ExplainKey(ctx, key)
	switch {
	case errors.Is(err, audits.ErrKeyImpossible):
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
