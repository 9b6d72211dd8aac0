package lambdatest

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
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/rules"
)

const conflictsMax = 50 // with the engine's transactions, for one write

// application is the only one that writes base items. It also does what it should
// not: it puts items back as they were a while ago, stamps and derived
// attributes included, and spoils what rules wrote.
type application struct {
	*world
	random *rand.Rand
	base   map[change.Key]change.Item // what it wrote last
	seen   []change.Item              // the table as it was a while ago
	writes int
}

// burst looks at the table and writes a few times.
func (a *application) burst(n int) error {
	now, err := a.scan(a.table)
	if err != nil {
		return err
	}
	for range n {
		if err := a.write(now); err != nil {
			return fmt.Errorf("the application's write %d: %w", a.writes, err)
		}
	}
	if a.random.IntN(3) == 0 || a.seen == nil {
		a.seen = now
	}
	return nil
}

func (a *application) write(now []change.Item) error {
	if len(now) == 0 {
		return a.put(a.Item(a.random))
	}
	it := now[a.random.IntN(len(now))]
	switch n := a.random.IntN(100); {
	case n < 35:
		return a.put(a.Item(a.random))
	case n < 55: // a rename, a move to another parent
		return a.put(a.Vary(a.random, it))
	case n < 70:
		return a.remove(it)
	case n < 78:
		return a.put(a.Item(a.random), a.Item(a.random), a.Item(a.random))
	case n < 88 && len(a.seen) > 0:
		return a.put(a.seen[a.random.IntN(len(a.seen))])
	}
	return a.spoil(it)
}

// put puts whole items, several in one transaction.
func (a *application) put(items ...change.Item) error {
	byKey := map[change.Key]types.TransactWriteItem{}
	for _, it := range items {
		a.base[a.Key(it)] = it
		byKey[a.Key(it)] = types.TransactWriteItem{Put: &types.Put{TableName: &a.table, Item: attributes.ItemToTable(it)}}
	}
	return a.insist(func(ctx context.Context) error {
		_, err := a.client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: slices.Collect(maps.Values(byKey))})
		return err
	})
}

func (a *application) remove(it change.Item) error {
	delete(a.base, a.Key(it))
	return a.insist(func(ctx context.Context) error {
		_, err := a.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: &a.table, Key: a.keyOf(it)})
		return err
	})
}

// spoil overwrites or removes something that rules wrote on the item, if it is
// still there and has any.
func (a *application) spoil(it change.Item) error {
	m, known := a.Set.Identify(a.Key(it), it)
	var made []string
	for name := range it {
		derived := known && slices.ContainsFunc(slices.Concat(m.Entity.Displays, m.Entity.Children, m.Entity.Makers),
			func(r *rules.Rule) bool { return slices.Contains(r.Writes, name) })
		if derived || strings.HasPrefix(name, projections.StampPrefix) {
			made = append(made, name)
		}
	}
	if len(made) == 0 {
		return a.remove(it)
	}
	slices.Sort(made)
	name := made[a.random.IntN(len(made))]
	in := &dynamodb.UpdateItemInput{
		TableName: &a.table, Key: a.keyOf(it), ReturnValues: types.ReturnValueAllNew,
		UpdateExpression: aws.String("REMOVE #n"), ConditionExpression: aws.String("attribute_exists(#k)"),
		ExpressionAttributeNames: map[string]string{"#n": name, "#k": a.Set.Table.PartitionKey},
	}
	if !strings.HasPrefix(name, projections.StampPrefix) && a.random.IntN(2) == 0 {
		in.UpdateExpression = aws.String("SET #n = :wrong")
		in.ExpressionAttributeValues = map[string]types.AttributeValue{":wrong": &types.AttributeValueMemberN{Value: "77"}}
	}
	return a.insist(func(ctx context.Context) error {
		out, err := a.client.UpdateItem(ctx, in)
		var gone *types.ConditionalCheckFailedException
		if errors.As(err, &gone) {
			return nil
		}
		if err == nil {
			a.learn(a.Key(it), attributes.ItemFromTable(out.Attributes), name)
		}
		return err
	})
}

// learn takes over what spoil did to an item. What rules make comes and goes by
// itself: there, all that is on the item becomes the application's.
func (a *application) learn(key change.Key, now change.Item, name string) {
	made := slices.ContainsFunc(a.Set.Entities, func(e *rules.Entity) bool { return len(e.Makers) > 0 && e.HasKey(key) })
	base, ours := a.base[key]
	if made || !ours {
		a.base[key] = now
		return
	}
	base = maps.Clone(base)
	if value, there := now[name]; there {
		base[name] = value
	} else {
		delete(base, name)
	}
	a.base[key] = base
}

func (a *application) keyOf(it change.Item) map[string]types.AttributeValue {
	key := change.Item{a.Set.Table.PartitionKey: it[a.Set.Table.PartitionKey]}
	if name := a.Set.Table.SortKey; name != "" {
		key[name] = it[name]
	}
	return attributes.ItemToTable(key)
}

// insist writes, again where a transaction of the engine was in the way.
func (a *application) insist(write func(context.Context) error) error {
	a.writes++
	var err error
	for range conflictsMax {
		if err = write(a.ctx); !conflicts(err) {
			return err
		}
		time.Sleep(time.Duration(1+a.random.IntN(20)) * time.Millisecond)
	}
	return err
}

func conflicts(err error) bool {
	var conflict *types.TransactionConflictException
	var canceled *types.TransactionCanceledException
	return errors.As(err, &conflict) || errors.As(err, &canceled) && !slices.ContainsFunc(canceled.CancellationReasons,
		func(r types.CancellationReason) bool {
			code := aws.ToString(r.Code)
			return code != "None" && code != "TransactionConflict"
		})
}
