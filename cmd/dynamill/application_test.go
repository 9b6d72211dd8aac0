package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/proof/population"
	"github.com/dynamill/dynamill/internal/rules"
)

const (
	burstMax    = 15 // writes without a pause
	pauseMax    = 700 * time.Millisecond
	memoriesMax = 4
	conflictMax = 50 // attempts against the engine's transactions
)

// application writes what a population's application would, and what it should
// not: items as they were a while ago, derived attributes and stamps included,
// and values of its own over what rules derived. It is the only one that writes
// base items, so that it knows what they are.
type application struct {
	*world
	*population.Population
	random *rand.Rand

	base     map[change.Key]change.Item // what it wrote last
	memories [][]change.Item            // whole tables that it read, the oldest first
	writes   int
}

// writeUntil writes in bursts until ctx ends.
func (a *application) writeUntil(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := a.remember(); err != nil {
			return err
		}
		for range 1 + a.random.IntN(burstMax) {
			if err := a.write(); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(a.random.Int64N(int64(pauseMax)))):
		}
	}
	return nil
}

func (a *application) remember() error {
	all, err := a.scan(a.table)
	if err != nil {
		return err
	}
	if a.memories = append(a.memories, all); len(a.memories) > memoriesMax {
		a.memories = a.memories[1:]
	}
	return nil
}

// write does one thing.
func (a *application) write() error {
	newest := a.memories[len(a.memories)-1]
	if len(newest) == 0 {
		return a.put(a.Item(a.random))
	}
	it := newest[a.random.IntN(len(newest))]
	switch n := a.random.IntN(100); {
	case n < 30:
		return a.put(a.Item(a.random))
	case n < 50: // read, modified and put whole: a rename, a move to another parent
		return a.put(a.Vary(a.random, it))
	case n < 65:
		return a.delete(it)
	case n < 72:
		return a.put(a.Item(a.random), a.Item(a.random), a.Item(a.random))
	case n < 80:
		return a.set(a.Item(a.random))
	case n < 90: // put back as it was long ago, even if it was deleted since
		if oldest := a.memories[0]; len(oldest) > 0 {
			it = oldest[a.random.IntN(len(oldest))]
		}
		return a.put(it)
	}
	return a.vandalise(it)
}

// put puts whole items, several in one transaction.
func (a *application) put(items ...change.Item) error {
	byKey := map[change.Key]change.Item{}
	for _, it := range items {
		byKey[a.Key(it)] = it
	}
	in := &dynamodb.TransactWriteItemsInput{}
	for key, it := range byKey {
		a.base[key] = it
		in.TransactItems = append(in.TransactItems, types.TransactWriteItem{Put: &types.Put{TableName: &a.table,
			Item: attributes.ItemToTable(it)}})
	}
	return a.insist(func(ctx context.Context) error {
		if len(byKey) > 1 {
			_, err := a.client.TransactWriteItems(ctx, in)
			return err
		}
		_, err := a.client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &a.table, Item: in.TransactItems[0].Put.Item})
		return err
	})
}

func (a *application) delete(it change.Item) error {
	delete(a.base, a.Key(it))
	return a.insist(func(ctx context.Context) error {
		_, err := a.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: &a.table, Key: a.keyAttributes(it)})
		return err
	})
}

// vandalise deletes an item, or overwrites or removes what rules wrote on it, or a stamp.
func (a *application) vandalise(it change.Item) error {
	var derived []string
	m, known := a.Population.Set.Identify(a.Key(it), it)
	for name := range it {
		written := known && slices.ContainsFunc(slices.Concat(m.Entity.Displays, m.Entity.Children, m.Entity.Makers),
			func(r *rules.Rule) bool { return slices.Contains(r.Writes, name) })
		if written || strings.HasPrefix(name, stampPrefix) {
			derived = append(derived, name)
		}
	}
	if len(derived) == 0 {
		return a.delete(it)
	}
	slices.Sort(derived)
	name := derived[a.random.IntN(len(derived))]
	wrong := a.keyOf(it)
	wrong[name] = change.Value{}
	if a.random.IntN(2) == 0 && !strings.HasPrefix(name, stampPrefix) {
		wrong[name] = change.Number(fmt.Sprint(70 + a.random.IntN(9)))
	}
	return a.set(wrong)
}

// set sets attributes with an UpdateItem; an absent value removes one.
func (a *application) set(it change.Item) error {
	in := &dynamodb.UpdateItemInput{
		TableName: &a.table, Key: a.keyAttributes(it), ReturnValues: types.ReturnValueAllNew,
		ExpressionAttributeNames: map[string]string{},
	}
	var sets, removes []string
	for i, name := range slices.Sorted(maps.Keys(it)) {
		if _, isKey := in.Key[name]; isKey {
			continue
		}
		alias, value := fmt.Sprintf("#n%d", i), fmt.Sprintf(":v%d", i)
		in.ExpressionAttributeNames[alias] = name
		if it[name].Kind() == change.KindAbsent {
			removes = append(removes, alias)
			continue
		}
		if in.ExpressionAttributeValues == nil {
			in.ExpressionAttributeValues = map[string]types.AttributeValue{}
		}
		in.ExpressionAttributeValues[value] = attributes.ToTable(it[name])
		sets = append(sets, alias+" = "+value)
	}
	expression := ""
	if len(sets) > 0 {
		expression += "SET " + strings.Join(sets, ", ")
	}
	if len(removes) > 0 {
		expression += " REMOVE " + strings.Join(removes, ", ")
	}
	if expression != "" {
		in.UpdateExpression = &expression
	} else {
		in.ExpressionAttributeNames = nil
	}
	return a.insist(func(ctx context.Context) error {
		out, err := a.client.UpdateItem(ctx, in)
		if err != nil {
			return err
		}
		a.learn(it, attributes.ItemFromTable(out.Attributes))
		return nil
	})
}

// learn takes over what an UpdateItem did to an item. What rules make comes and
// goes by itself, so there all that is on the item becomes the application's.
func (a *application) learn(set, now change.Item) {
	key := a.Key(set)
	base, ours := a.base[key]
	if !ours || a.isMade(now) || a.wasDeleted(base, set, now) {
		a.base[key] = now
		return
	}
	base = maps.Clone(base)
	for name, value := range set {
		if base[name] = value; value.Kind() == change.KindAbsent {
			delete(base, name)
		}
	}
	a.base[key] = base
}

// wasDeleted reports whether a rule had deleted the item with its parent, so that the UpdateItem made it anew: of what the application had
// put there before, nothing is left.
func (a *application) wasDeleted(base, set, now change.Item) bool {
	goes := func(r *rules.Rule) bool { return r.Deletes() && r.Target.HasKey(a.Key(set)) }
	if !slices.ContainsFunc(a.Population.Set.Rules, goes) {
		return false
	}
	for name := range base {
		if _, written := set[name]; !written && now[name].Kind() != change.KindAbsent {
			return false
		}
	}
	return true
}

// isMade reports whether the item's key is one under which a rule makes items.
func (a *application) isMade(it change.Item) bool {
	return slices.ContainsFunc(a.Population.Set.Entities, func(e *rules.Entity) bool {
		return len(e.Makers) > 0 && e.HasKey(a.Key(it))
	})
}

func (a *application) keyOf(it change.Item) change.Item {
	key := change.Item{}
	for _, name := range []string{a.Population.Set.Table.PartitionKey, a.Population.Set.Table.SortKey} {
		if name != "" {
			key[name] = it[name]
		}
	}
	return key
}

func (a *application) keyAttributes(it change.Item) map[string]types.AttributeValue {
	return attributes.ItemToTable(a.keyOf(it))
}

// insist writes, again where a transaction of the engine was in the way.
func (a *application) insist(write func(context.Context) error) error {
	a.writes++
	var err error
	for range conflictMax {
		var conflict *types.TransactionConflictException
		var canceled *types.TransactionCanceledException
		err = write(a.t.Context())
		refused := errors.As(err, &canceled) && !slices.ContainsFunc(canceled.CancellationReasons, func(r types.CancellationReason) bool {
			code := aws.ToString(r.Code)
			return code != "None" && code != "TransactionConflict"
		})
		if !refused && !errors.As(err, &conflict) {
			break
		}
		time.Sleep(time.Duration(1+a.random.IntN(20)) * time.Millisecond)
	}
	if err != nil {
		return fmt.Errorf("the application's write %d: %w", a.writes, err)
	}
	return nil
}
