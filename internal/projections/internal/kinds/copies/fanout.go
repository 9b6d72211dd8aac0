package copies

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// run is the application of what copy rules ask for.
type run struct{ *host.Run }

var (
	_ host.Kind      = kind{}
	_ host.Postponer = kind{}
	_ host.Sweeper   = kind{}
)

// Apply implements host.Kind: parents go before children.
func (kind) Apply(ctx context.Context, r *host.Run, pl *plan.Changes) {
	w, changes := run{r}, plan.PartOf[Changes](pl)
	w.fanOut(ctx, &changes.FanOuts)
	w.refill(ctx, &changes.Refills)
	w.fill(ctx, &changes.Fills)
}

// writeChildren writes a parent's state to its children, from where cursor
// points (nil: from the first), until it has looked at so many or there are no
// more. It returns how many of them refer to the parent, and where to go on.
func (w run) writeChildren(ctx context.Context, pw parentWrite, cursor table.Row, most int) (referring int, next table.Row, err error) {
	in, ok := w.childrenQuery(pw)
	if !ok {
		return 0, nil, nil
	}
	write := w.writeRows
	if pw.refill {
		write = w.fillReferring
	}
	for next = cursor; most > 0; {
		in.ExclusiveStartKey, in.Limit = next, new(int32(most))
		out, err := w.Tables.Query(ctx, "looking up the children of "+pw.parent.String(), in)
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
func (w run) refill(ctx context.Context, parents *plan.OrderedMap[plan.ItemRule, change.Position]) {
	for id, position := range parents.All() {
		w.Ended(ctx, 0, id.Binding, id.Key, w.refillParent(ctx, id, *position))
	}
}

func (w run) refillParent(ctx context.Context, id plan.ItemRule, position change.Position) error {
	if !position.IsZero() {
		if _, err := w.raiseParent(ctx, id, plan.VersionAt(id.Epoch, position)); err != nil {
			return err
		}
	}
	at, err := w.parentAt(ctx, id)
	if err != nil {
		return err
	}
	referring, next, err := w.writeChildren(ctx, parentWrite{b: id.Binding, parent: id.Key, refill: true}, nil, w.FanOutMax)
	switch {
	case err != nil:
		return err
	case len(next) > 0:
		return w.putTask(ctx, state.Task{Parent: id, At: at, Refill: true, Cursor: next, Children: w.FanOutMax, Referring: referring})
	case referring == 0 && !position.IsZero():
		items, err := w.Tables.ReadItems(ctx, "reading parent "+id.Key.String(), []change.Key{id.Key})
		if err != nil || parentIn(w.Planner, id.Binding, id.Key, items) != nil {
			return err
		}
		return w.retireParent(ctx, id, at)
	}
	return nil
}

// fillReferring fills children anew, and prunes references that dangle. It
// returns how many still refer to the parent.
func (w run) fillReferring(ctx context.Context, pw parentWrite, rows []table.Row) (int, error) {
	fill := run{&host.Run{Host: w.Host}}
	referring := 0
	for chunk := range slices.Chunk(rows, fillsAtOnce) {
		fills, keys := &plan.OrderedMap[plan.ItemRule, Fill]{}, w.childKeys(pw.b, chunk)
		for _, child := range keys {
			fills.Put(plan.ItemRule{Binding: pw.b, Key: child}, &Fill{link: link{refers: true, parent: pw.parent}})
		}
		notChildren, err := fill.fillChunk(ctx, fills.Keys(), fills)
		if err = cmp.Or(err, fill.Err); err != nil {
			return referring, err
		}
		for i, r := range chunk {
			if !notChildren[plan.ItemRule{Binding: pw.b, Key: keys[i]}] {
				referring++
			} else if err := w.prune(ctx, pw.b, r); err != nil {
				return referring, err
			}
		}
	}
	return referring, nil
}

// childrenQuery looks up a parent's children: those that lie in a collection
// given by its key, else those that have put a reference.
func (w run) childrenQuery(pw parentWrite) (*dynamodb.QueryInput, bool) {
	c := table.NewExpression()
	if !pw.b.Rule.Collection {
		references := state.ReferenceKey(pw.b, pw.parent, change.Key{}).Partition
		return w.Tables.StateQuery(c.Format("%n = %v", table.PK, table.Text(references)), c), true
	}
	partition, prefix, ok := pw.b.Rule.CollectionOf(pw.parent)
	if _, err := decimal.Parse(partition); !ok || w.Tables.PartitionKind == change.KindNumber && err != nil {
		return nil, false
	}
	condition := c.Format("%n = %v", w.Tables.PartitionKey, table.KeyValue(partition, w.Tables.PartitionKind))
	if prefix != "" && w.Tables.SortKey != "" && w.Tables.SortKind == change.KindString {
		condition += c.Format(" AND begins_with(%n, %v)", w.Tables.SortKey, table.Text(prefix))
	}
	in := w.Tables.StateQuery(condition, c)
	in.TableName = &w.Tables.Table
	return in, true
}

// childKeys are the children that rows of their collection are, or that references name.
func (w run) childKeys(b *plan.Binding, rows []table.Row) []change.Key {
	keys := make([]change.Key, len(rows))
	for i, r := range rows {
		if keys[i] = state.ReferenceChild(r); b.Rule.Collection {
			keys[i] = w.Tables.KeyOf(r)
		}
	}
	return keys
}

// writeRows writes to children that were read from their collection, or whose references
// were. It prunes references that dangle.
func (w run) writeRows(ctx context.Context, pw parentWrite, rows []table.Row) (int, error) {
	keys, items, err := w.childKeys(pw.b, rows), map[change.Key]change.Item{}, error(nil)
	if !pw.b.Rule.Collection {
		items, err = w.Tables.ReadItems(ctx, "reading the children of "+pw.parent.String(), keys)
	} else {
		for i, r := range rows {
			items[keys[i]] = attributes.ItemFromTable(r)
		}
	}
	if err != nil {
		return 0, err
	}
	var referring atomic.Int64
	err = table.Each(ctx, len(rows), func(ctx context.Context, i int) error {
		refers, err := w.writeChild(ctx, pw, keys[i], table.Image(items[keys[i]]))
		if refers {
			referring.Add(1)
		} else if err == nil {
			err = w.prune(ctx, pw.b, rows[i])
		}
		return err
	})
	return int(referring.Load()), err
}

// prune deletes a row that dangles among those by which children are found, if it is a reference.
func (w run) prune(ctx context.Context, b *plan.Binding, row table.Row) error {
	if b.Rule.Collection {
		return nil
	}
	return pruneReference(ctx, w.Tables, b.ID, row)
}

// pruneReference deletes a reference whose child is gone or refers elsewhere, unless it was put again.
func pruneReference(ctx context.Context, tables *table.Tables, rule string, reference table.Row) error {
	c := table.NewExpression()
	condition := table.Whole(c.SameAs(reference, "at"))
	return tables.DeleteState(ctx, rule, "pruning a reference", table.KeyOf(reference), condition, c)
}
