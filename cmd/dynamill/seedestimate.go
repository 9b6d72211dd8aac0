package main

import (
	"context"
	"fmt"
	"log/slog"
	"math"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/projections"
	"github.com/dynamill/dynamill/replay/verify"
	"github.com/dynamill/dynamill/rules"
)

// seedEstimate is what `run` reads and writes when it seeds rules on a table
// that it has never run on. The figures are projected from a sample.
type seedEstimate struct {
	Items      int64   `json:"items"`                // to be read
	Exact      bool    `json:"exact"`                // the sample was the whole table
	Sampled    int64   `json:"sampled"`              // items
	Writes     int64   `json:"writes"`               // things to be written
	WriteUnits float64 `json:"writeUnits"`           // of these writes
	ReadUnits  int64   `json:"readUnits"`            // of one pass over the items
	NotSampled string  `json:"notSampled,omitempty"` // the reason why Writes and WriteUnits are not known
}

// seedSample gives a sample of the table to a verification.
type seedSample struct {
	client verify.ScanClient
	table  string
	taken  tableSample
}

// Each gives the items of the sample to f.
func (s *seedSample) Each(ctx context.Context, f func(change.Item) error) (err error) {
	s.taken, err = sampleTable(ctx, s.client, s.table, planSample, f)
	return err
}

// estimateSeed judges a sample of the table as a dry run of replay judges all of it.
func estimateSeed(ctx context.Context, client projections.Client, table, stateTable string, set *rules.Set, logger *slog.Logger, c counts) *seedEstimate {
	sample := &seedSample{client: client, table: table}
	audit, err := projections.OpenAudit(ctx, projections.AuditConfig{Client: client, Table: table, StateTable: stateTable, Rules: set, Logger: logger, Ahead: true})
	if err != nil {
		return projectSeed(c, 0, false, 0, 0, err)
	}
	var writes int64
	summary, err := verify.Run(ctx, verify.Config{
		Auditor: audit, Items: sample, Ahead: true, Logger: logger,
		Found: func(verify.Result) error { writes++; return nil },
	})
	if err != nil {
		return projectSeed(c, 0, false, 0, 0, err)
	}
	return projectSeed(c, int64(sample.taken.items), sample.taken.whole, writes, summary.WriteUnits, nil)
}

// projectSeed projects what a sample needs to all items that DynamoDB counted.
func projectSeed(c counts, sampled int64, whole bool, writes int64, units float64, failed error) *seedEstimate {
	e := &seedEstimate{Items: max(c.items, sampled), Exact: whole, Sampled: sampled, Writes: writes, WriteUnits: units}
	switch {
	case failed != nil:
		e.NotSampled = failed.Error()
	case whole:
		e.Items = sampled
	case sampled > 0:
		factor := float64(e.Items) / float64(sampled)
		e.Writes, e.WriteUnits = int64(math.Round(float64(writes)*factor)), units*factor
	}
	read := c.estimate(1, 0, e.Items, true, false)
	e.ReadUnits = read.scan + read.look
	return e
}

// text says it in a sentence.
func (e *seedEstimate) text() string {
	switch {
	case e.NotSampled != "":
		return fmt.Sprintf("it reads approximately %s (DynamoDB's own count, up to 6 hours old), for about %s read units a pass; how much it writes is unknown, because the table could not be sampled: %s",
			counted(int(e.Items), "item"), grouped(e.ReadUnits), e.NotSampled)
	case e.Exact:
		return fmt.Sprintf("it reads %s, for about %s read units a pass, and makes %s, for about %s write units (all items were looked at)",
			counted(int(e.Items), "item"), grouped(e.ReadUnits), counted(int(e.Writes), "write"), grouped(int64(e.WriteUnits+0.5)))
	}
	return fmt.Sprintf("it reads approximately %s (DynamoDB's own count, up to 6 hours old), for about %s read units a pass, and makes about %s, for about %s write units (projected from a sample of %s)",
		counted(int(e.Items), "item"), grouped(e.ReadUnits), counted(int(e.Writes), "write"), grouped(int64(e.WriteUnits+0.5)), counted(int(e.Sampled), "item"))
}
