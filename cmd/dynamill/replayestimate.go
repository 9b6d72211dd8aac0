package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// counts are what DynamoDB last counted, every six hours or so.
type counts struct {
	items, bytes           int64
	state                  bool // there is a state table
	stateItems, stateBytes int64
}

func (r *replayer) count(ctx context.Context) (c counts, err error) {
	table, err := r.env.describe(ctx)
	if err != nil {
		return c, err
	}
	c.items, c.bytes = aws.ToInt64(table.ItemCount), aws.ToInt64(table.TableSizeBytes)
	out, err := r.env.tables.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &r.env.stateTable})
	var missing *types.ResourceNotFoundException
	switch {
	case errors.As(err, &missing): // nothing has run yet
		return c, nil
	case err != nil:
		return c, r.env.classify(fmt.Errorf("describing the state table %s: %w", r.env.stateTable, err))
	case out.Table != nil:
		c.state, c.stateItems, c.stateBytes = true, aws.ToInt64(out.Table.ItemCount), aws.ToInt64(out.Table.TableSizeBytes)
	}
	return c, nil
}

// A read unit is a consistent read of 4 KB (DynamoDB developer guide, "DynamoDB read and write operations").
const readUnitBytes = 4096

func scanUnits(bytes int64, eventually bool) int64 {
	units := math.Ceil(float64(bytes) / readUnitBytes)
	if eventually {
		units = math.Ceil(units / 2)
	}
	return int64(units)
}

// itemUnits is what it takes to read so many items of a table and as many ledger entries, one by one.
func (c counts) itemUnits(items int64) int64 {
	if items == 0 || c.items == 0 {
		return 2 * items
	}
	return items * (1 + scanUnits(c.bytes/c.items+1, false))
}

// estimate is what a replay takes to read, in units.
type estimate struct{ scan, look, sweep int64 }

// estimate reckons with so many passes over so many items, which a scan finds unless
// they come from elsewhere, and so many over the state table.
func (c counts) estimate(passes, sweeps, items int64, scanned, eventually bool) (e estimate) {
	if scanned {
		e.scan = passes * scanUnits(c.bytes, eventually)
	}
	e.look = passes * c.itemUnits(items)
	e.sweep = sweeps * (scanUnits(c.stateBytes, eventually) + 2*c.stateItems)
	return e
}

// passesOver says how many passes go over the items, and how many over the state
// table: the last one, where former rules are taken back or everything is in force.
func (r *replayer) passesOver(left int, formers bool) (items, state int64) {
	switch {
	case left > 0 && formers:
		return int64(left) - 1, 1
	case left > 0:
		return int64(left), 0
	case r.options.whole():
		return 1, 1
	}
	return 1, 0
}

// announce says, before anything is read or written at length, what will be
// done and what it takes as far as that can be told.
func (r *replayer) announce(ctx context.Context, left int) error {
	description, items := r.engine.Describe(), r.counts.items
	facts := columns{}
	facts.add("table", r.env.table+" in "+r.env.where())
	facts.add("state", description.StateTable)
	if r.source == nil {
		facts.add("source", "scan of "+r.env.table)
	} else {
		pieces, err := r.source.Pieces(ctx)
		if err != nil {
			return fmt.Errorf("listing the pieces of the %s: %w", r.source.Describe(), err)
		}
		items = 0
		for _, p := range pieces {
			items += p.Items
		}
		facts.add("source", r.source.Describe()+", "+counted(len(pieces), "piece"))
	}
	switch {
	case left > 0:
		facts.add("does", "brings rules into force in "+passes(left)+": "+strings.Join(r.bringing(), ", "))
	case r.options.whole():
		facts.add("does", "brings every item to what the rules ask for, then cleans up after items that have vanished")
	default:
		facts.add("does", "brings items to what the rules ask for")
	}
	if r.source == nil {
		facts.add("items", fmt.Sprintf("about %s, %.1f MB (DynamoDB's own count, up to 6 hours old)", grouped(items), float64(r.counts.bytes)/1e6))
	} else if items > 0 {
		facts.add("items", "about "+grouped(items))
	}
	over, sweeps := r.passesOver(left, len(description.FormerRules) > 0)
	e := r.counts.estimate(over, sweeps, items, r.source == nil, r.options.eventuallyConsistent)
	if total := e.scan + e.look + e.sweep; total > 0 {
		facts.add("reads", fmt.Sprintf("about %s read units: %s to scan, %s to look at each item and its ledger entry, %s to sweep; more where copies and mirrors are checked",
			grouped(total), grouped(e.scan), grouped(e.look), grouped(e.sweep)))
	}
	if left > 0 {
		facts.add("writes", "what the rules ask for and does not stand there yet")
	} else {
		facts.add("writes", "none where all is right")
	}
	return facts.writeTo(r.status)
}
