package projections

import (
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// A record that could not be read may have 300 KB, and there may be many of
// them. So lists are read page by page and without it, and only FindParked
// reads it.

// parkedAttributes are those of a parked record in a list: all but raw.
var parkedAttributes = []string{"id", "rule", "item", "code", "reason", "parking", "parkedAt", "position", "value"}

// EachParked calls f with every page of what is parked, sorted by id, without
// Raw. What f parks or clears may or may not be among the pages that follow.
func (rd *ruleReader) EachParked(ctx context.Context, f func(page []Parked) error) error {
	return rd.reader.QueryPages(ctx, listingParked, rd.parkedQuery(table.NewExpression(), parkedAttributes...), func(rows []table.Row) error {
		page, err := rd.readAllParked(ctx, rows)
		if err != nil {
			return err
		}
		return f(slices.DeleteFunc(page, Parked.outlived))
	})
}

// Parked lists what is parked, sorted by id, without Raw. Where there may be
// much of it, EachParked needs less memory.
func (e *Engine) Parked(ctx context.Context) ([]Parked, error) {
	var all []Parked
	err := e.EachParked(ctx, func(page []Parked) error {
		all = append(all, page...)
		return nil
	})
	return all, err
}

// ParkedBehind lists at most limit of what is parked behind an id, sorted by id,
// without Raw. The empty id is before all others. more says that others may follow.
func (e *Engine) ParkedBehind(ctx context.Context, id string, limit int) (page []Parked, more bool, err error) {
	c := table.NewExpression()
	in := e.parkedQuery(c, parkedAttributes...)
	if id != "" {
		in.KeyConditionExpression = new(*in.KeyConditionExpression + c.Format(" AND %n > %v", table.SK, table.Text(state.ParkedKey(id).Sort)))
	}
	in.Limit = new(int32(limit)) //nolint:gosec // of a page
	out, err := e.tables.Query(ctx, listingParked, in)
	if err != nil {
		return nil, false, err
	}
	page, err = e.readAllParked(ctx, out.Items)
	return page, len(out.LastEvaluatedKey) > 0, err
}

// CountParked counts what is parked. Nothing of it is sent here.
func (e *Engine) CountParked(ctx context.Context) (total int, err error) {
	in := e.parkedQuery(table.NewExpression())
	in.Select = ddb.SelectCount
	for {
		out, err := e.tables.Query(ctx, countingParked, in)
		if err != nil {
			return 0, err
		}
		total += int(out.Count)
		if in.ExclusiveStartKey = out.LastEvaluatedKey; len(in.ExclusiveStartKey) == 0 {
			return total, nil
		}
	}
}

// FindParked reads what is parked under an id, whole. It returns ErrNotParked for an unknown id.
func (rd *ruleReader) FindParked(ctx context.Context, id string) (Parked, error) {
	key := state.ParkedKey(id)
	rows, err := rd.reader.ReadState(ctx, "reading what is parked", []table.Key{key})
	if err != nil {
		return Parked{}, err
	}
	item, ok := rows[key]
	if !ok {
		return Parked{}, fmt.Errorf("%s: %w", id, ErrNotParked)
	}
	page, err := rd.readAllParked(ctx, []table.Row{item})
	if err != nil {
		return Parked{}, err
	}
	return page[0], nil
}

const (
	listingParked  = "listing what is parked"
	countingParked = "counting what is parked"
)

// parkedQuery asks for some attributes of everything that is parked.
func (rd *ruleReader) parkedQuery(c *table.Expression, attributes ...string) *dynamodb.QueryInput {
	in := rd.reader.StateQuery(c.Format("%n = %v", table.PK, table.Text(state.ParkedPartition)), c)
	if len(attributes) > 0 {
		in.ProjectionExpression = new(c.List(attributes))
	}
	return in
}

func (rd *ruleReader) readAllParked(ctx context.Context, rows []table.Row) ([]Parked, error) {
	page := make([]Parked, len(rows))
	for i, item := range rows {
		page[i] = rd.readParked(item)
	}
	return page, rd.readClaimants(ctx, page)
}

// outlived reports whether the target of a row is no longer contested: the worker that
// changed its set is about to delete the row.
func (p Parked) outlived() bool { return p.contested != nil && len(p.Claimants) < 2 }

func (rd *ruleReader) readParked(item table.Row) Parked {
	row := state.ReadParked(item)
	p := Parked{Parked: row, Rule: "record", Key: row.Item}
	if t, ok := audit.ReadContested(attributes.ItemFromTable(item)); ok {
		p.contested, p.Value, p.Key = &t, t.Value, t.Target
	}
	if row.Rule != "" { // a record that could not be read has none
		p.Rule = rd.ruleName(row.Rule)
	}
	return p
}
