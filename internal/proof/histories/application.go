package histories

import (
	"cmp"
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
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/proof/population"
	"github.com/dynamill/dynamill/internal/sim/dynamosim"
)

// expiresAt is the table's TTL attribute. No rule knows of it.
const expiresAt = "expiresAt"

// What begins the names of stamps, and of all attributes that are the engine's own (docs/rules.md).
const (
	stampPrefix = "_dm_"
	engines     = "_dm"
)

// application is the one that writes base items, and now and then what is not its own.
type application struct {
	sim        *dynamosim.Sim
	table      string
	population *population.Population
	base       map[change.Key]change.Item // what it wrote last, by key
	expired    map[change.Key]bool        // items that rules make whose time to live has passed
	kept       []change.Item              // read, for being put back
	writes     int
}

func (a *application) put(it change.Item) error {
	a.writes++
	_, err := a.sim.PutItem(context.Background(), &dynamodb.PutItemInput{TableName: &a.table, Item: attributes.ItemToTable(it)})
	if err == nil {
		a.wrote(it, maps.Clone(it))
	}
	return butForRoom(err)
}

// wrote notes what the application has under a key from now on; nil if nothing.
func (a *application) wrote(it, base change.Item) {
	key := a.population.Key(it)
	delete(a.expired, key)
	if a.base[key] = base; base == nil {
		delete(a.base, key)
	}
}

// butForRoom lets an error pass that says that an item would become too large: it is as it was.
func butForRoom(err error) error {
	if refused := smithy.APIError(nil); errors.As(err, &refused) && strings.HasPrefix(refused.ErrorMessage(), "Item size") {
		return nil
	}
	return err
}

func (a *application) delete(it change.Item) error {
	a.writes++
	a.wrote(it, nil)
	_, err := a.sim.DeleteItem(context.Background(), &dynamodb.DeleteItemInput{TableName: &a.table,
		Key: attributes.ItemToTable(a.keyItem(it))})
	return err
}

func (a *application) keyItem(it change.Item) change.Item {
	keys := a.population.Set.Table
	key := change.Item{keys.PartitionKey: it[keys.PartitionKey]}
	if keys.SortKey != "" {
		key[keys.SortKey] = it[keys.SortKey]
	}
	return key
}

// set sets attributes with an UpdateItem; an absent value removes one. The item is made if it is not there.
func (a *application) set(it change.Item) error {
	a.writes++
	keys := a.population.Set.Table
	in := &dynamodb.UpdateItemInput{TableName: &a.table, Key: attributes.ItemToTable(a.keyItem(it)),
		ExpressionAttributeNames: map[string]string{}}
	base, err := a.baseOf(it)
	if err != nil {
		return err
	}
	var sets, removes []string
	for i, name := range slices.Sorted(maps.Keys(it)) {
		if name == keys.PartitionKey || name == keys.SortKey {
			continue
		}
		in.ExpressionAttributeNames[fmt.Sprintf("#n%d", i)] = name
		if it[name].Kind() == change.KindAbsent {
			removes = append(removes, fmt.Sprintf("#n%d", i))
			delete(base, name)
			continue
		}
		if in.ExpressionAttributeValues == nil {
			in.ExpressionAttributeValues = map[string]ddb.AttributeValue{}
		}
		sets = append(sets, fmt.Sprintf("#n%d = :v%d", i, i))
		in.ExpressionAttributeValues[fmt.Sprintf(":v%d", i)] = attributes.ToTable(it[name])
		base[name] = it[name]
	}
	if len(sets)+len(removes) == 0 {
		return nil
	}
	text := ""
	if len(sets) > 0 {
		text = "SET " + strings.Join(sets, ", ")
	}
	if len(removes) > 0 {
		text += " REMOVE " + strings.Join(removes, ", ")
	}
	in.UpdateExpression = &text
	if _, err = a.sim.UpdateItem(context.Background(), in); err == nil {
		a.wrote(it, base)
	}
	return butForRoom(err)
}

// baseOf is what the application takes for its own on an item that it is about
// to change: what it wrote there, or, on an item that rules made, all that is
// there. An application that takes a stamp or the mark off makes the item its own, too.
func (a *application) baseOf(it change.Item) (change.Item, error) {
	out, err := a.sim.GetItem(context.Background(), &dynamodb.GetItemInput{TableName: &a.table, Key: attributes.ItemToTable(a.keyItem(it)),
		ConsistentRead: aws.Bool(true)})
	if err != nil || len(out.Item) == 0 {
		return a.keyItem(it), err
	}
	base, ok := a.base[a.population.Key(it)]
	for name := range it {
		ok = ok && !strings.HasPrefix(name, engines)
	}
	if ok {
		return maps.Clone(base), nil
	}
	return attributes.ItemFromTable(out.Item), nil
}

func (a *application) transact(items []change.Item) error {
	in := &dynamodb.TransactWriteItemsInput{}
	seen := map[change.Key]bool{}
	for _, it := range items {
		key := a.population.Key(it)
		if seen[key] {
			continue
		}
		seen[key] = true
		a.writes++
		a.wrote(it, maps.Clone(it))
		in.TransactItems = append(in.TransactItems, ddb.TransactWriteItem{Put: &ddb.Put{TableName: &a.table, Item: attributes.ItemToTable(it)}})
	}
	_, err := a.sim.TransactWriteItems(context.Background(), in)
	return err
}

// items are all items of a table, in the order of their keys.
func items(sim *dynamosim.Sim, table string) ([]change.Item, error) {
	in := &dynamodb.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true)}
	var all []change.Item
	for {
		out, err := sim.Scan(context.Background(), in)
		if err != nil {
			return nil, err
		}
		for _, it := range out.Items {
			all = append(all, attributes.ItemFromTable(it))
		}
		if in.ExclusiveStartKey = out.LastEvaluatedKey; len(in.ExclusiveStartKey) == 0 {
			break
		}
	}
	return all, nil
}

// present are the application's items as they are now, sorted by key.
func (a *application) present() ([]change.Item, error) {
	all, err := items(a.sim, a.table)
	slices.SortFunc(all, func(x, y change.Item) int {
		return cmp.Compare(a.population.Key(x).String(), a.population.Key(y).String())
	})
	return all, err
}

// do does what a step says the application does.
func (a *application) do(s Step) error {
	switch s.Kind {
	case Put:
		return a.put(s.Items[0])
	case Update:
		return a.set(s.Items[0])
	case Transact:
		return a.transact(s.Items)
	case PutBack:
		if len(a.kept) == 0 {
			return nil
		}
		it := maps.Clone(a.kept[s.Pick%uint64(len(a.kept))])
		if len(s.Items) > 0 {
			maps.Copy(it, s.Items[0])
		}
		return a.put(it)
	}
	present, err := a.present()
	if err != nil || len(present) == 0 {
		return err
	}
	r := rand.New(rand.NewPCG(s.Pick, 1))
	it := present[r.IntN(len(present))]
	if len(s.Items) > 0 {
		i := slices.IndexFunc(present, func(x change.Item) bool { return a.population.Key(x) == a.population.Key(s.Items[0]) })
		if i < 0 {
			return nil
		}
		it = present[i]
	}
	switch s.Kind {
	case Vary:
		return a.put(a.population.Vary(r, it))
	case Delete:
		return a.delete(it)
	case Remember:
		a.kept = append(a.kept, it)
	case Clone:
		return a.clone(it, present[r.IntN(len(present))])
	case Vandalize:
		return a.vandalize(r, it)
	case Expire:
		return a.expire(it)
	}
	return nil
}

// clone puts an item under the key of another, with all it carries.
func (a *application) clone(it, other change.Item) error {
	clone := maps.Clone(it)
	maps.Copy(clone, a.keyItem(other))
	return a.put(clone)
}

// expire lets an item's time to live pass.
func (a *application) expire(it change.Item) error {
	past := maps.Clone(a.keyItem(it))
	past[expiresAt] = change.Number(fmt.Sprint(time.Now().Add(-time.Hour).Unix()))
	if err := a.set(past); err != nil {
		return err
	}
	a.sim.ExpireItems()
	present, err := a.present()
	if err != nil || slices.ContainsFunc(present, func(x change.Item) bool { return a.population.Key(x) == a.population.Key(it) }) {
		return err // it had no room for the time
	}
	a.wrote(it, nil)
	if a.population.Makes(it) {
		a.expired[a.population.Key(it)] = true
	}
	return nil
}

// vandalize overwrites or removes what the engine derived on an item, its stamp perhaps, or deletes the item.
func (a *application) vandalize(r *rand.Rand, it change.Item) error {
	if r.IntN(5) == 0 {
		return a.delete(it)
	}
	names := a.derived(it)
	if len(names) == 0 {
		return nil
	}
	wrong := a.keyItem(it)
	name := names[r.IntN(len(names))]
	wrong[name] = change.Value{}
	if r.IntN(2) == 0 && !strings.HasPrefix(name, engines) {
		wrong[name] = change.Number(fmt.Sprint(70 + r.IntN(9)))
	}
	return a.set(wrong)
}

// derived are the attributes that the engine keeps on an item, stamps and mark included.
func (a *application) derived(it change.Item) []string {
	var names []string
	for name := range it {
		if strings.HasPrefix(name, engines) {
			names = append(names, name)
		}
	}
	if m, ok := a.population.Set.Identify(a.population.Key(it), it); ok {
		for _, rule := range a.population.Set.Rules {
			if rule.Target == m.Entity {
				names = append(names, rule.Writes...)
			}
		}
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return it[name].Kind() == change.KindAbsent })
}

// toldMax is how many bytes of a value are told.
const toldMax = 100

// told writes an item in one line.
func told(it change.Item) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(it)) {
		v := it[name]
		text := v.Text()
		if len(text) > toldMax {
			text = fmt.Sprintf("%s…(%d bytes)", strings.ToValidUTF8(text[:toldMax/2], "?"), len(text))
		}
		switch v.Kind() {
		case change.KindMap, change.KindList, change.KindNull:
			text = fmt.Sprint(v)
		case change.KindNumber:
			text = "#" + text
		}
		words = append(words, name+"="+text)
	}
	return "{" + strings.Join(words, ", ") + "}"
}
