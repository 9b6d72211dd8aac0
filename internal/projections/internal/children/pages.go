package children

import (
	"context"
	"math"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// Span is a parent's children, or the first of them.
type Span struct {
	Parent change.Key
	End    table.Row // the last key of children to look at; nil: all are
}

// pages are the rows by which a parent's children are found, page by page.
type pages struct {
	Run
	b     *plan.Binding
	span  Span
	place table.Row // behind the rows that were taken; nil: before the first, and if none are left
	ahead chan page // nil: none is read ahead
}

type page struct {
	rows []table.Row
	next table.Row
	err  error
}

// take returns the next rows, at most so many, but for a page that was read ahead.
func (p *pages) take(ctx context.Context, most int) ([]table.Row, error) {
	var taken page
	if p.ahead == nil {
		taken = p.read(ctx, most)
	} else {
		taken, p.ahead = <-p.ahead, nil
	}
	if taken.err == nil {
		p.place = taken.next
	}
	return taken.rows, taken.err
}

// readAhead begins to read the page behind the place. The caller waits for it with take or close.
func (p *pages) readAhead(ctx context.Context, most int) {
	if len(p.place) > 0 {
		p.ahead = make(chan page, 1)
		go func() { p.ahead <- p.read(ctx, most) }()
	}
}

func (p *pages) close() {
	if p.ahead != nil {
		<-p.ahead
	}
}

func (p *pages) read(ctx context.Context, most int) page {
	c := table.NewExpression()
	in, ok := p.childrenQuery(c, p.b, p.span)
	if !ok {
		return page{}
	}
	if p.b.Rule.Collection {
		in.ProjectionExpression = new(c.List(p.childAttributes(p.b)))
	}
	in.ExclusiveStartKey, in.Limit = p.place, new(int32(min(most, math.MaxInt32)))
	out, err := p.Tables.Query(ctx, "looking up the children of "+p.span.Parent.String(), in)
	if err != nil {
		return page{err: err}
	}
	return page{out.Items, out.LastEvaluatedKey, nil}
}

// childrenQuery looks up a parent's children: those that lie in a collection
// given by its key, else those that have put a reference.
func (w Run) childrenQuery(c *table.Expression, b *plan.Binding, span Span) (*dynamodb.QueryInput, bool) {
	if !b.Rule.Collection {
		references := state.ReferenceKey(b, span.Parent, change.Key{}).Partition
		condition := c.Format("%n = %v", table.PK, table.Text(references))
		if span.End != nil {
			condition += c.Format(" AND %n <= %v", table.SK, span.End[table.SK])
		}
		return w.Tables.StateQuery(condition, c), true
	}
	partition, prefix, ok := b.Rule.Join.CollectionOf(span.Parent)
	if _, err := decimal.Parse(partition); !ok || w.Tables.PartitionKind == change.KindNumber && err != nil {
		return nil, false
	}
	condition := c.Format("%n = %v", w.Tables.PartitionKey, table.KeyValue(partition, w.Tables.PartitionKind))
	begins := prefix != "" && w.Tables.SortKey != "" && w.Tables.SortKind == change.KindString
	switch end := span.End[w.Tables.SortKey]; {
	case begins && end != nil:
		condition += c.Format(" AND %n BETWEEN %v AND %v", w.Tables.SortKey, table.Text(prefix), end)
	case begins:
		condition += c.Format(" AND begins_with(%n, %v)", w.Tables.SortKey, table.Text(prefix))
	case end != nil:
		condition += c.Format(" AND %n <= %v", w.Tables.SortKey, end)
	}
	in := w.Tables.StateQuery(condition, c)
	in.TableName = &w.Tables.Table
	return in, true
}

// childAttributes are the attributes of a child that tell what it is, to which parent it refers, and what it holds of that.
func (w Run) childAttributes(b *plan.Binding) []string {
	names := append([]string{w.Tables.PartitionKey, b.Stamp}, b.Rule.Writes...)
	if names = append(names, familyOf(b).Reads(b)...); w.Tables.SortKey != "" {
		names = append(names, w.Tables.SortKey)
	}
	for _, e := range w.Planner.Set.Entities {
		for _, eq := range e.Equals {
			names = append(names, eq.Attribute)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
