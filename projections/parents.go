package projections

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/guard"
	"github.com/dynamill/dynamill/projections/internal/plan"
)

// fanOut writes changed parents to their children: the parent's position for
// the rule is raised first, then the children are looked up. A child that
// comes meanwhile reads the parent after putting its reference, so either it
// sees the new parent or the lookup sees it.
func (w *work) fanOut(parents *plan.Asked[plan.ItemRule, plan.FanOut]) {
	for id, f := range parents.All() {
		w.failed(f.First, w.fanOutParent(w.ctx, id, f))
	}
}

func (e *Engine) fanOutParent(ctx context.Context, id plan.ItemRule, f *plan.FanOut) error {
	v := plan.VersionAt(id.Epoch, f.Position)
	if !guard.Off(guard.ParentRaised) {
		raised, err := e.raiseParent(ctx, id, v)
		if err != nil || !raised {
			return err // or a later change of the parent is being written already
		}
	}
	write := parentWrite{b: id.Binding, parent: id.Key, version: v, values: f.Values}
	look := e.fanOutReferences
	if id.Rule.Collection {
		look = e.fanOutCollection
	}
	left, err := look(ctx, write)
	if err == nil && guard.Off(guard.ParentRaised) {
		_, err = e.raiseParent(ctx, id, v)
	}
	if err == nil && left == 0 && f.Deleted {
		err = e.retireParent(ctx, id, v)
	}
	return err
}

// raiseParent raises the position up to which the rule has seen the parent. It reports false if it is higher already.
func (e *Engine) raiseParent(ctx context.Context, id plan.ItemRule, v plan.Version) (bool, error) {
	c := newExpression()
	set := c.sprintf("SET %n = %v REMOVE %n", "at", textValue(string(v)), "ttl")
	condition := guarded(guard.ParentHigher, c.sprintf("attribute_not_exists(%n) OR %n <= %v", "at", "at", textValue(string(v))))
	return e.update(ctx, "raising the position of parent "+id.Key.String(), e.stateUpdate(parentKey(id.Binding, id.Key), set, condition, c))
}

// retireParent lets the position of a deleted parent without children expire.
func (e *Engine) retireParent(ctx context.Context, id plan.ItemRule, v plan.Version) error {
	c := newExpression()
	set := c.sprintf("SET %n = %v", "ttl", numberValue(time.Now().Add(tombstoneTTL).Unix()))
	condition := c.sprintf("%n = %v", "at", textValue(string(v)))
	_, err := e.update(ctx, "retiring the position of parent "+id.Key.String(), e.stateUpdate(parentKey(id.Binding, id.Key), set, condition, c))
	return err
}

// parentWrite is what one state of a parent puts on its children.
type parentWrite struct {
	b       *plan.Binding
	parent  change.Key
	version plan.Version
	values  []change.Value
}

// fanOutCollection writes to children that lie in a collection given by the
// parent's key. It returns how many there are.
func (e *Engine) fanOutCollection(ctx context.Context, pw parentWrite) (int, error) {
	partition, prefix, ok := pw.b.Rule.CollectionOf(pw.parent)
	if !ok {
		return 0, nil
	}
	c := newExpression()
	condition := c.sprintf("%n = %v", e.partitionKey, keyValue(partition, e.partitionN))
	if prefix != "" && e.sortKey != "" && !e.sortN {
		condition += c.sprintf(" AND begins_with(%n, %v)", e.sortKey, textValue(prefix))
	}
	in := &dynamodb.QueryInput{
		TableName: &e.table, ConsistentRead: consistently(), KeyConditionExpression: &condition,
		ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,
	}
	var left atomic.Int64
	err := e.queryPages(ctx, "looking up the children of "+pw.parent.String(), in, func(rows []row) error {
		return each(ctx, len(rows), func(ctx context.Context, i int) error {
			refers, err := e.writeChild(ctx, pw, e.keyOf(rows[i]), attributes.ItemFromTable(rows[i]))
			if refers {
				left.Add(1)
			}
			return err
		})
	})
	return int(left.Load()), err
}

// fanOutReferences writes to children by the parent's references and prunes
// those that dangle. It returns how many references are left.
func (e *Engine) fanOutReferences(ctx context.Context, pw parentWrite) (int, error) {
	c := newExpression()
	condition := c.sprintf("%n = %v", statePartition, textValue(referenceKey(pw.b, pw.parent, change.Key{}).partition))
	in := &dynamodb.QueryInput{
		TableName: &e.stateTable, ConsistentRead: consistently(), KeyConditionExpression: &condition,
		ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,
	}
	left := 0
	err := e.queryPages(ctx, "looking up the references to "+pw.parent.String(), in, func(rows []row) error {
		for chunk := range slices.Chunk(rows, batchGetMax) {
			keys := make([]change.Key, len(chunk))
			for i, r := range chunk {
				keys[i] = childOf(r)
			}
			items, err := e.readItems(ctx, "reading the children of "+pw.parent.String(), keys)
			if err != nil {
				return err
			}
			kept := make([]bool, len(chunk))
			err = each(ctx, len(chunk), func(ctx context.Context, i int) error {
				refers, err := e.writeChild(ctx, pw, keys[i], image(items[keys[i]]))
				if err == nil && !refers {
					err = e.pruneReference(ctx, chunk[i])
				}
				kept[i] = refers
				return err
			})
			if err != nil {
				return err
			}
			for _, k := range kept {
				if k {
					left++
				}
			}
		}
		return nil
	})
	return left, err
}

// childOf is the child that a reference names; long keys are kept beside their hash.
func childOf(reference row) change.Key {
	if key := textOf(reference["child"]); key != "" {
		return change.ParseKey(key)
	}
	return change.ParseKey(textOf(reference[stateSort]))
}

// pruneReference deletes a reference whose child is gone or refers elsewhere, unless it was put again.
func (e *Engine) pruneReference(ctx context.Context, reference row) error {
	c := newExpression()
	condition := guarded(guard.PrunePosition, c.sprintf("%n = %v", "at", reference["at"]))
	return e.deleteState(ctx, "pruning a reference", stateKeyOf(reference), condition, c)
}

// queryPages calls f for every page of a query.
func (e *Engine) queryPages(ctx context.Context, doing string, in *dynamodb.QueryInput, f func([]row) error) error {
	for {
		out, err := attempt(ctx, doing, func() (*dynamodb.QueryOutput, error) { return e.client.Query(ctx, in) })
		if err != nil {
			return err
		}
		if err := f(out.Items); err != nil {
			return err
		}
		if in.ExclusiveStartKey = out.LastEvaluatedKey; len(in.ExclusiveStartKey) == 0 {
			return nil
		}
	}
}

// copyUpdate writes a rule's copies and stamp on a child, provided that it
// still exists, refers to the same parent and carries the stamp that was read.
func (e *Engine) copyUpdate(pw parentWrite, child change.Key, seen change.Image, s plan.Stamp) *dynamodb.UpdateItemInput {
	c := newExpression()
	set := "SET " + c.sprintf("%n = %v", pw.b.Stamp, textValue(s.String()))
	var remove []string
	for i, copied := range pw.b.Rule.Copies {
		if v := pw.values[i]; v.Kind() == change.KindAbsent {
			remove = append(remove, c.name(copied.As))
		} else {
			set += c.sprintf(", %n = %v", copied.As, attributes.ToTable(v))
		}
	}
	if len(remove) > 0 {
		set += " REMOVE " + strings.Join(remove, ", ")
	}
	return e.itemUpdate(child, set, e.unmoved(c, pw.b, seen), c)
}

// unmoved is the condition that a child refers to what it referred to when it was read, and carries the same stamp.
func (e *Engine) unmoved(c *expression, b *plan.Binding, seen change.Image) string {
	condition := e.stillEntity(c, b.Rule.Target)
	if guard.Off(guard.ChildUnmoved) {
		return condition
	}
	for _, name := range append(slices.Clone(b.Rule.JoinReads), b.Stamp) {
		condition += c.same(name, seen.Lookup(name))
	}
	return condition
}
