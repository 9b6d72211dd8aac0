package main

import (
	"cmp"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/recordjson"
	"github.com/dynamill/dynamill/projections"
)

// recordFileMax bounds what `explain` reads (bytes); a Lambda payload has at most 6 MB.
const recordFileMax = 16 << 20

// explainedRecord is what `explain` says of one record.
type explainedRecord struct {
	Key       string          `json:"key"`
	Event     string          `json:"event"`
	Old       string          `json:"oldEntity,omitempty"`
	New       string          `json:"newEntity,omitempty"`
	Unmatched bool            `json:"unmatched"`
	Lines     []explainedLine `json:"rules"`
}

type explainedLine struct {
	Rule   string `json:"rule"`
	Effect string `json:"effect"`
	Write  string `json:"write"`
}

func (a *app) explainCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "explain RECORD.json",
		Short: "Says what one stream record would cause",
		Long: "Reads stream records from a file (- for standard input) and says for each which entity its item is, what\n" +
			"effects it has under each rule, and which writes dynamill would make. Nothing is read from or written to AWS.\n\n" +
			"The file may be a Lambda event, the answer of GetRecords, a list of records or a single record.",
		Example: "  dynamill explain record.json\n" +
			"  aws dynamodbstreams get-records --shard-iterator \"$ITERATOR\" | dynamill explain -",
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			set, err := a.options.load()
			if err != nil {
				return err
			}
			src, err := a.readRecords(args[0])
			if err != nil {
				return err
			}
			table := recordjson.Table{Partition: set.Table.PartitionKey, Sort: set.Table.SortKey}
			records, err := recordjson.Decode(src, table)
			if err != nil {
				return invalid("%s: %w", args[0], err)
			}
			explained := make([]explainedRecord, len(records))
			for i, record := range records {
				explained[i] = explain(record, projections.Explain(set, record))
			}
			return a.printExplained(explained)
		},
	}
}

func (a *app) readRecords(name string) ([]byte, error) {
	in := a.stdin
	if name == standardInput {
		if err := a.options.claimStdin("the record file " + name); err != nil {
			return nil, err
		}
	} else {
		file, err := os.Open(name)
		if err != nil {
			return nil, invalid("the record file cannot be read: %w", err)
		}
		defer file.Close() //nolint:errcheck // it was only read
		in = file
	}
	src, err := io.ReadAll(io.LimitReader(in, recordFileMax+1))
	if err != nil {
		return nil, invalid("the record file cannot be read: %w", err)
	}
	if len(src) > recordFileMax {
		return nil, invalid("%s is larger than %d MB: give fewer records", name, recordFileMax>>20)
	}
	return src, nil
}

func explain(record change.Record, e projections.Explanation) explainedRecord {
	out := explainedRecord{
		Key: record.Key.String(), Event: eventOf(record), Old: e.Old, New: e.New,
		Unmatched: e.Unmatched, Lines: make([]explainedLine, len(e.Lines)),
	}
	for i, line := range e.Lines {
		out.Lines[i] = explainedLine{line.Rule, line.Effect, line.Write}
	}
	return out
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

func (a *app) printExplained(records []explainedRecord) error {
	if a.options.json {
		return a.printJSON(struct {
			Records []explainedRecord `json:"records"`
		}{records})
	}
	for i, r := range records {
		if i > 0 {
			if err := a.print("\n"); err != nil {
				return err
			}
		}
		if err := a.print("%s %s: %s\n", r.Event, r.Key, r.entity()); err != nil {
			return err
		}
		if len(r.Lines) == 0 && !r.Unmatched {
			if err := a.print("  no rule reads what changed: nothing is written\n"); err != nil {
				return err
			}
		}
		table := columns{indent: "  "}
		for _, line := range r.Lines {
			table.add(line.Rule, line.Effect, line.Write)
		}
		if err := table.writeTo(a.stdout); err != nil {
			return err
		}
	}
	return nil
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
