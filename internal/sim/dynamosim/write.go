package dynamosim

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/sim/dynamosim/expression"
	"github.com/dynamill/dynamill/internal/sim/dynamosim/values"
)

// write is one change asked for: a put, an update, a delete, or a mere check.
// It is made from a request, which it has proved valid as far as that can be
// done without looking at the item.
type write struct {
	table     *table
	key       key
	keyItem   values.Item
	put       values.Item
	update    *expression.Update
	remove    bool
	inserts   bool // a statement that fails if the item is there
	condition *expression.Condition
	returnOld bool // with a failed condition
	// mismatch says how the write disagrees with the table's key schema. A transaction reports that as a
	// reason for its cancellation, any other request as its error.
	mismatch error
}

// conditional is what every kind of write request carries.
type conditional struct {
	names     map[string]string
	vals      values.Item
	condition *string
	onFailure types.ReturnValuesOnConditionCheckFailure
}

func (s *Sim) newPut(name *string, item values.Item, c conditional) (*write, error) {
	attrs, err := expression.NewAttributes(c.names, c.vals)
	if err != nil {
		return nil, err
	}
	if err := checkPlaceholders(c, c.condition != nil); err != nil {
		return nil, err
	}
	t, err := s.table(name)
	if err != nil {
		return nil, err
	}
	w := &write{table: t}
	if w.put, err = values.Normalize(item); err != nil {
		return nil, err
	}
	if err := w.setCondition(attrs, c); err != nil {
		return nil, err
	}
	if err := t.checkEmptyKey(w.put); err != nil {
		return nil, err
	}
	if err := checkItem(w.put); err != nil {
		return nil, err
	}
	if w.key, w.mismatch = t.keyIn(w.put, ""); w.mismatch == nil {
		w.keyItem = t.keyOf(w.put)
	}
	return w, nil
}

func (s *Sim) newKeyed(name *string, keyItem values.Item, update *string, c conditional) (*write, error) {
	attrs, err := expression.NewAttributes(c.names, c.vals)
	if err != nil {
		return nil, err
	}
	if err := checkPlaceholders(c, c.condition != nil || update != nil); err != nil {
		return nil, err
	}
	t, err := s.table(name)
	if err != nil {
		return nil, err
	}
	w := &write{table: t}
	if update != nil {
		u, err := expression.ParseUpdate(*update, attrs)
		if err != nil {
			return nil, err
		}
		w.update = &u
		for _, p := range u.Paths() {
			if t.isKey(p[0].Name) {
				w.mismatch = invalid("One or more parameter values were invalid: Cannot update attribute %s. This attribute is part of the key",
					p[0].Name)
			}
		}
	}
	if err := w.setCondition(attrs, c); err != nil {
		return nil, err
	}
	if w.keyItem, err = values.Normalize(keyItem); err != nil {
		return nil, err
	}
	if err := t.checkEmptyKey(w.keyItem); err != nil {
		return nil, err
	}
	var mismatch error
	if w.key, w.keyItem, mismatch = t.key(w.keyItem); w.mismatch == nil {
		w.mismatch = mismatch
	}
	return w, nil
}

// setCondition comes last, when all other expressions have been parsed.
func (w *write) setCondition(attrs *expression.Attributes, c conditional) error {
	w.returnOld = c.onFailure == types.ReturnValuesOnConditionCheckFailureAllOld
	if c.condition != nil {
		condition, err := expression.ParseCondition("ConditionExpression", *c.condition, attrs)
		if err != nil {
			return err
		}
		w.condition = &condition
	}
	return attrs.CheckUsed()
}

func checkPlaceholders(c conditional, hasExpression bool) error {
	if hasExpression || c.names == nil && c.vals == nil {
		return nil
	}
	if c.names != nil {
		return invalid("ExpressionAttributeNames can only be specified when using expressions")
	}
	return invalid("ExpressionAttributeValues can only be specified when using expressions: ConditionExpression is null")
}

func checkItem(item values.Item) error {
	if values.Size(item) > itemBytesMax {
		return invalid("Item size has exceeded the maximum allowed size")
	}
	return nil
}

// outcome is what a write would do to the table as it is now.
type outcome struct {
	*write
	old, after values.Item // nil where there is no item
	failed     bool        // the condition does not hold
}

// plan works out the outcome. An error is one of the write and the item together, such as a path that leads nowhere.
func (w *write) plan() (outcome, error) {
	o := outcome{write: w}
	if w.mismatch != nil {
		return o, w.mismatch
	}
	if r := w.table.lookup(w.key); r != nil {
		o.old = r.item
	}
	o.after = o.old
	if w.condition != nil && !w.condition.Holds(o.old) {
		o.failed = true
		return o, nil
	}
	switch {
	case w.put != nil:
		o.after = w.put
	case w.remove:
		o.after = nil
	case w.update != nil:
		base := o.old
		if base == nil {
			base = w.keyItem
		}
		after, err := w.update.Apply(base)
		if err != nil {
			return o, err
		}
		if err := values.CheckDepth(after); err != nil {
			return o, err
		}
		if values.Size(after) > itemBytesMax {
			return o, invalid("Item size to update has exceeded the maximum allowed size")
		}
		o.after = after
	}
	return o, w.table.checkIndexKeys(o.after)
}

// commit makes the outcome true and tells the stream.
func (s *Sim) commit(o outcome) {
	if o.old == nil && o.after == nil || o.old != nil && o.after != nil && values.Equal(o.old, o.after) {
		return
	}
	s.store(o.table, o.key, o.after)
	s.record(o.table, o.key, o.old, o.after, nil)
}

// single runs a write that is not part of a transaction.
func (s *Sim) single(w *write) (outcome, *types.ConsumedCapacity, error) {
	if s.held[holdID(w.table, w.key)] > 0 {
		return outcome{}, nil, &types.TransactionConflictException{Message: aws.String("Transaction is ongoing for the item")}
	}
	o, err := w.plan()
	if err != nil {
		return o, nil, err
	}
	consumed := s.chargeWrite(w.table, writeUnits(o))
	if o.failed {
		failure := &types.ConditionalCheckFailedException{Message: aws.String("The conditional request failed")}
		if w.returnOld {
			failure.Item = values.Clone(o.old)
		}
		return o, nil, failure
	}
	s.commit(o)
	return o, consumed, nil
}

// Hold makes the item with this key appear to be in another transaction until
// release is called: writing it fails with a TransactionConflictException, and
// transactions with it are cancelled for TransactionConflict. Reads are not affected.
func (s *Sim) Hold(tableName string, keyItem map[string]types.AttributeValue) (release func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.table(&tableName)
	if err != nil {
		return nil, err
	}
	k, _, err := t.key(keyItem)
	if err != nil {
		return nil, err
	}
	id := holdID(t, k)
	s.held[id]++
	released := false
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !released {
			released = true
			if s.held[id]--; s.held[id] == 0 {
				delete(s.held, id)
			}
		}
	}, nil
}

func holdID(t *table, k key) string { return t.id + "\x00" + k.id() }

func (k key) id() string { return k.partition.text + "\x00" + k.sort.text }
