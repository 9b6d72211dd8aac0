package preview

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/environment"
	"github.com/dynamill/dynamill/internal/printable"
	"github.com/dynamill/dynamill/internal/projections/audits"
	"github.com/dynamill/dynamill/internal/replay/verify"
	"github.com/dynamill/dynamill/internal/tablescan"
)

// seedEstimate is what `run` reads and writes when it seeds rules on a new table. The figures are projected from a sample.
type seedEstimate struct {
	Items      int64    `json:"items"`                  // to be read
	Exact      bool     `json:"exact"`                  // the sample was the whole table
	Sampled    int64    `json:"sampled"`                // items
	Writes     int64    `json:"writes"`                 // things to be written
	WriteUnits float64  `json:"writeUnits"`             // of these writes
	ReadUnits  int64    `json:"readUnits"`              // of one pass over the items
	Counted    []string `json:"countedRules,omitempty"` // rules that count by stream position, whose writes are not among these
	NotSampled string   `json:"notSampled,omitempty"`   // the reason why Writes and WriteUnits are not known
}

// seedSample gives a sample of the table to a verification.
type seedSample struct {
	client tablescan.Client
	table  string
	taken  tableSample
}

// Each gives the items of the sample to f.
func (s *seedSample) Each(ctx context.Context, f func(change.Item) error) (err error) {
	s.taken, err = sampleTable(ctx, s.client, s.table, planSample, f)
	return err
}

// estimateSeed judges a sample of the table as a dry run of replay judges all of it.
func estimateSeed(ctx context.Context, cfg audits.Config, logger *slog.Logger, c environment.Counts) (e *seedEstimate) {
	sample := &seedSample{client: cfg.Client, table: cfg.Table}
	var writes int64
	summary, err := judgeAhead(ctx, cfg, logger, sample, func(verify.Result) error { writes++; return nil })
	if err != nil {
		e = projectSeed(c, 0, false, 0, 0, err)
	} else {
		e = projectSeed(c, int64(sample.taken.items), sample.taken.whole, writes, summary.WriteUnits, nil)
	}
	e.Counted = cfg.Rules.Folded()
	return e
}

// judgeAhead judges items as if the rules were in force already, and writes nothing.
func judgeAhead(ctx context.Context, cfg audits.Config, logger *slog.Logger, items verify.Table, found func(verify.Result) error) (
	*verify.Summary, error,
) {
	cfg.Ahead = true
	audit, err := audits.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return verify.Run(ctx, verify.Config{Auditor: audit, Items: items, Ahead: true, Logger: logger, Found: found})
}

// projectSeed projects what a sample needs to all items that DynamoDB counted.
func projectSeed(c environment.Counts, sampled int64, whole bool, writes int64, units float64, failed error) *seedEstimate {
	e := &seedEstimate{Items: max(c.Items, sampled), Exact: whole, Sampled: sampled, Writes: writes, WriteUnits: units}
	switch {
	case failed != nil:
		e.NotSampled = failed.Error()
	case whole:
		e.Items = sampled
	case sampled > 0:
		factor := float64(e.Items) / float64(sampled)
		e.Writes, e.WriteUnits = int64(math.Round(float64(writes)*factor)), units*factor
	}
	read := c.Estimate(1, 0, e.Items, true, false)
	e.ReadUnits = read.Scan + read.Look
	return e
}

// text says it in a sentence.
func (e *seedEstimate) text() string {
	items := "approximately " + printable.Counted(e.Items, "item") + " (DynamoDB's own count, up to 6 hours old)"
	writes := "about " + printable.Counted(e.Writes, "write")
	from := "projected from a sample of " + printable.Counted(e.Sampled, "item")
	if e.Exact {
		items, writes, from = printable.Counted(e.Items, "item"), printable.Counted(e.Writes, "write"), "all items were looked at"
	}
	reads := fmt.Sprintf("it reads %s, for about %s read units a pass", items, printable.Grouped(e.ReadUnits))
	if e.NotSampled != "" {
		return reads + "; how much it writes is unknown, because the table could not be sampled: " + e.NotSampled
	}
	text := fmt.Sprintf("%s, and makes %s, for about %s write units (%s)", reads, writes, printable.Rounded(e.WriteUnits), from)
	if len(e.Counted) > 0 {
		text += fmt.Sprintf("; for %s it scans the table once more each, and makes about 2 writes, for 2 write units, for each target that has "+
			"sources", strings.Join(e.Counted, ", "))
	}
	return text
}
