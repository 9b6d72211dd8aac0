package projections

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/projections/internal/kinds/copies"
	"github.com/dynamill/dynamill/projections/internal/plan"
	"github.com/dynamill/dynamill/projections/internal/state"
	"github.com/dynamill/dynamill/projections/internal/table"
)

// writeChildren writes a parent's state to its children, from where cursor
// points (nil: from the first), until it has looked at so many or there are no
// more. It returns how many of them refer to the parent, and where to go on.
func (e *Engine) writeChildren(ctx context.Context, pw parentWrite, cursor table.Row, most int) (referring int, next table.Row, err error) {
	in, ok := e.childrenQuery(pw)
	if !ok {
		return 0, nil, nil
	}
	var write func(context.Context, parentWrite, []table.Row) (int, error)
	switch {
	case pw.refill:
		write = e.fillReferring
	case pw.b.Rule.Collection:
		write = e.writeCollected
	default:
		write = e.writeReferred
	}
	for next = cursor; most > 0; {
		in.ExclusiveStartKey, in.Limit = next, new(int32(most))
		out, err := e.tables.Query(ctx, "looking up the children of "+pw.parent.String(), in)
		if err != nil {
			return referring, nil, err
		}
		n, err := write(ctx, pw, out.Items)
		if err != nil {
			return referring, nil, err
		}
		referring, most, next = referring+n, most-len(out.Items), out.LastEvaluatedKey
		if len(next) == 0 {
			return referring, nil, nil
		}
	}
	return referring, next, nil
}

// refill fills all children of parents anew, as if they had just come: for a
// parent that is rederived, whose record may be lost. Where the record's position
// is known, the parent's is raised to it: no earlier record writes what the parent was before.
func (w *work) refill(ctx context.Context, parents []copies.Refill) {
	for _, rf := range parents {
		w.ended(ctx, 0, rf.Binding, rf.Key, w.refillParent(ctx, rf))
	}
}

func (e *Engine) refillParent(ctx context.Context, rf copies.Refill) error {
	if !rf.Position.IsZero() {
		if _, err := e.raiseParent(ctx, rf.ItemRule, plan.VersionAt(rf.Epoch, rf.Position)); err != nil {
			return err
		}
	}
	at, err := e.parentAt(ctx, rf.ItemRule)
	if err != nil {
		return err
	}
	referring, next, err := e.writeChildren(ctx, parentWrite{b: rf.Binding, parent: rf.Key, refill: true}, nil, e.fanOutMax)
	switch {
	case err != nil:
		return err
	case len(next) > 0:
		return e.putTask(ctx, state.Task{Parent: rf.ItemRule, At: at, Refill: true, Cursor: next, Children: e.fanOutMax, Referring: referring})
	case referring == 0 && !rf.Position.IsZero():
		return e.retireIfGone(ctx, rf.ItemRule, at)
	}
	return nil
}

// fillReferring fills children anew, and prunes references that dangle. It
// returns how many still refer to the parent.
func (e *Engine) fillReferring(ctx context.Context, pw parentWrite, rows []table.Row) (int, error) {
	w := e.newWork(0)
	defer w.release()
	referring := 0
	for chunk := range slices.Chunk(rows, fillsAtOnce) {
		fills := &plan.Asked[plan.ItemRule, copies.Fill]{}
		keys := make([]change.Key, len(chunk))
		for i, r := range chunk {
			if keys[i] = state.ReferenceChild(r); pw.b.Rule.Collection {
				keys[i] = e.tables.KeyOf(r)
			}
			fills.Put(plan.ItemRule{Binding: pw.b, Key: keys[i]}, &copies.Fill{Parent: pw.parent, Refers: true})
		}
		if err := cmp.Or(w.fillChunk(ctx, fills.Keys(), fills), w.err); err != nil {
			return referring, err
		}
		for i, r := range chunk {
			if !fills.Of(plan.ItemRule{Binding: pw.b, Key: keys[i]}).Stray {
				referring++
			} else if !pw.b.Rule.Collection {
				if err := e.pruneReference(ctx, pw.b.ID, r); err != nil {
					return referring, err
				}
			}
		}
	}
	return referring, nil
}

// childrenQuery looks up a parent's children: those that lie in a collection
// given by its key, else those that have put a reference.
func (e *Engine) childrenQuery(pw parentWrite) (*dynamodb.QueryInput, bool) {
	c := table.NewExpression()
	in := &dynamodb.QueryInput{TableName: &e.tables.StateTable, ConsistentRead: new(true)}
	condition := ""
	if !pw.b.Rule.Collection {
		condition = c.Format("%n = %v", table.PK, table.Text(state.ReferenceKey(pw.b, pw.parent, change.Key{}).Partition))
	} else {
		partition, prefix, ok := pw.b.Rule.CollectionOf(pw.parent)
		if _, err := decimal.Parse(partition); !ok || e.tables.PartitionN && err != nil {
			return nil, false
		}
		in.TableName = &e.tables.Table
		condition = c.Format("%n = %v", e.tables.PartitionKey, table.KeyValue(partition, e.tables.PartitionN))
		if prefix != "" && e.tables.SortKey != "" && !e.tables.SortN {
			condition += c.Format(" AND begins_with(%n, %v)", e.tables.SortKey, table.Text(prefix))
		}
	}
	in.KeyConditionExpression, in.ExpressionAttributeNames, in.ExpressionAttributeValues = &condition, c.Names, c.Values
	return in, true
}

// writeCollected writes to children that were read from their collection.
func (e *Engine) writeCollected(ctx context.Context, pw parentWrite, rows []table.Row) (int, error) {
	var referring atomic.Int64
	err := table.Each(ctx, len(rows), func(ctx context.Context, i int) error {
		refers, err := e.writeChild(ctx, pw, e.tables.KeyOf(rows[i]), attributes.ItemFromTable(rows[i]))
		if refers {
			referring.Add(1)
		}
		return err
	})
	return int(referring.Load()), err
}

// writeReferred writes to children by their references, and prunes those that dangle.
func (e *Engine) writeReferred(ctx context.Context, pw parentWrite, rows []table.Row) (int, error) {
	keys := make([]change.Key, len(rows))
	for i, r := range rows {
		keys[i] = state.ReferenceChild(r)
	}
	items, err := e.tables.ReadItems(ctx, "reading the children of "+pw.parent.String(), keys)
	if err != nil {
		return 0, err
	}
	var referring atomic.Int64
	err = table.Each(ctx, len(rows), func(ctx context.Context, i int) error {
		refers, err := e.writeChild(ctx, pw, keys[i], table.Image(items[keys[i]]))
		if err == nil && !refers {
			err = e.pruneReference(ctx, pw.b.ID, rows[i])
		}
		if refers {
			referring.Add(1)
		}
		return err
	})
	return int(referring.Load()), err
}

// pruneReference deletes a reference whose child is gone or refers elsewhere, unless it was put again.
func (e *Engine) pruneReference(ctx context.Context, rule string, reference table.Row) error {
	c := table.NewExpression()
	condition := c.Format("%n = %v", "at", table.Text(table.TextOf(reference["at"])))
	return e.tables.DeleteState(ctx, rule, "pruning a reference", table.KeyOf(reference), condition, c)
}
