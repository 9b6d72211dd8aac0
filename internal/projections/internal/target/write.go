package target

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/awscall"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// Write is what one rule wants of one item of the user's table, and what must hold of
// the item for it. Every target is written in this form, in a ledger transaction or alone.
type Write struct {
	*table.Expression
	Binding   *plan.Binding
	doing     string
	key       change.Key
	Condition string
	// LooksAgain says that a refused write parks nothing and returns the refusal: the caller reads the item and decides. Of a write that joins
	// several, the batch then sends each of them alone.
	LooksAgain bool

	set, remove []string
	text        *text // of all writes of this form
}

// text is the statement of writes that differ in key and values alone.
type text struct {
	once sync.Once
	table.Statement
	fits bool
}

// statement is the write as a statement; false if it fits none.
func (t *Write) statement(rd *table.Reader) (ddb.BatchStatementRequest, bool) {
	key := rd.ItemKey(t.key)
	t.text.once.Do(func() {
		t.text.Statement, t.text.fits = t.Statement(rd.Table, slices.Sorted(maps.Keys(key)), t.set, t.remove, t.Condition)
	})
	return t.text.For(key, t.Values), t.text.fits
}

// On is a write for a rule of an item that has this key. It changes nothing yet.
func On(b *plan.Binding, doing string, key change.Key) *Write {
	return &Write{Expression: table.NewExpression(), Binding: b, doing: doing, key: key, text: &text{}}
}

// Put sets an attribute, or removes it if the value is absent.
func (t *Write) Put(attribute string, v change.Value) {
	if v.Kind() == change.KindAbsent {
		t.TakeOff(attribute)
		return
	}
	t.set = append(t.set, t.Format("%n = %v", attribute, attributes.ToTable(v)))
}

// PutPlaceholder sets an attribute to the value of a placeholder.
func (t *Write) PutPlaceholder(attribute, placeholder string) {
	t.set = append(t.set, t.Format("%n = %s", attribute, placeholder))
}

// Again is the same write of another item, with values of its own under the same placeholders. Only those may be changed.
func (t *Write) Again(doing string, key change.Key) *Write {
	again := *t
	again.Expression, again.doing, again.key = t.Expression.Again(), doing, key
	return &again
}

// Stamp sets the rule's stamp.
func (t *Write) Stamp(s stamp.Stamp) { t.Put(t.Binding.Stamp, change.String(s.String())) }

// TakeOff removes attributes.
func (t *Write) TakeOff(names ...string) {
	for _, name := range names {
		t.remove = append(t.remove, t.Name(name))
	}
}

// expressionBytesMax is the most bytes of a condition or an update (Amazon DynamoDB developer guide, "Quotas", expression parameters).
const expressionBytesMax = 4 << 10

// joinedWith returns one write of an item that does two, if the conditions of both hold. It reports false if one request does not hold
// both, or if one of them writes an attribute that the other writes or asks for.
func (t *Write) joinedWith(other *Write) (*Write, bool) {
	if t.conflictsWith(other) || other.conflictsWith(t) {
		return nil, false
	}
	c := table.NewExpression()
	both := &Write{Expression: c, Binding: t.Binding, doing: t.doing, key: t.key, LooksAgain: true, text: &text{}}
	for i, one := range []*Write{t, other} {
		into := one.Translator(c)
		for _, part := range one.set {
			both.set = append(both.set, into(part))
		}
		for _, part := range one.remove {
			both.remove = append(both.remove, into(part))
		}
		if i > 0 {
			both.Condition += " AND "
		}
		both.Condition += "(" + into(one.Condition) + ")"
	}
	return both, len(both.update()) <= expressionBytesMax && len(both.Condition) <= expressionBytesMax
}

// conflictsWith reports whether the write changes an attribute that another one asks for or writes.
func (t *Write) conflictsWith(other *Write) bool {
	concerns := other.NamesIn(slices.Concat(other.set, other.remove, []string{other.Condition})...)
	for name := range t.NamesIn(slices.Concat(t.set, t.remove)...) {
		if concerns[name] {
			return true
		}
	}
	return false
}

// Holds adds the condition that attributes still hold what was seen.
func (t *Write) Holds(seen change.Image, names ...string) {
	for _, name := range names {
		t.Condition += t.Same(name, seen.Lookup(name))
	}
}

// update is the update expression.
func (t *Write) update() string {
	var parts []string
	if len(t.set) > 0 {
		parts = append(parts, "SET "+strings.Join(t.set, ", "))
	}
	if len(t.remove) > 0 {
		parts = append(parts, "REMOVE "+strings.Join(t.remove, ", "))
	}
	return strings.Join(parts, " ")
}

// InTransaction is the write as a part of a transaction; one that changes nothing is a check.
func (t *Write) InTransaction(rd *table.Reader) ddb.TransactWriteItem {
	update := t.update()
	if update == "" {
		return ddb.TransactWriteItem{ConditionCheck: &ddb.ConditionCheck{
			TableName: &rd.Table, Key: rd.ItemKey(t.key), ConditionExpression: &t.Condition,
			ExpressionAttributeNames: t.Names, ExpressionAttributeValues: t.Values, ReturnValuesOnConditionCheckFailure: table.AllOld,
		}}
	}
	return ddb.TransactWriteItem{Update: &ddb.Update{
		TableName: &rd.Table, Key: rd.ItemKey(t.key), UpdateExpression: &update, ConditionExpression: &t.Condition,
		ExpressionAttributeNames: t.Names, ExpressionAttributeValues: t.Values, ReturnValuesOnConditionCheckFailure: table.AllOld,
	}}
}

// Outcome is how the write of a target ended.
type Outcome uint8

// How the write of a target can end.
const (
	Written  Outcome = iota
	RaceLost         // the item is not as the conditions say
	Refused          // DynamoDB never takes the write: the (item, rule) is parked, unless the caller looks again
)

// Writer writes targets.
type Writer struct {
	Tables *table.Tables
	// ParkRefused parks the (item, rule) if DynamoDB refuses its write for good, and returns every other error.
	ParkRefused func(ctx context.Context, b *plan.Binding, item change.Key, err error) error
}

var _ Sender = (*Writer)(nil)

// Write implements Sender: it sends the write alone.
func (w *Writer) Write(ctx context.Context, t *Write) (ended Outcome, current change.Image, err error) {
	update := t.update()
	_, err = w.Tables.UpdateItem(ctx, t.Binding.ID, t.doing, &dynamodb.UpdateItemInput{
		TableName: &w.Tables.Table, Key: w.Tables.ItemKey(t.key), UpdateExpression: &update, ConditionExpression: &t.Condition,
		ExpressionAttributeNames: t.Names, ExpressionAttributeValues: t.Values,
		ReturnValuesOnConditionCheckFailure: table.AllOld,
	})
	var failed *ddb.ConditionalCheckFailedException
	switch {
	case err == nil:
		return Written, nil, nil
	case table.Refusal(err) != "" && t.LooksAgain:
		return Refused, nil, err
	case table.Refusal(err) != "":
		return Refused, nil, w.ParkRefused(ctx, t.Binding, t.key, err)
	case awscall.Classify(err) != awscall.Condition:
		return RaceLost, nil, err
	case errors.As(err, &failed) && len(failed.Item) > 0:
		current = attributes.ItemFromTable(failed.Item)
	}
	return RaceLost, current, nil
}
