package workbench

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/internal/sim/dynamosim"
)

const handlerTableName = "demo-by-hand"

// handler counts as a team does that writes the code by hand: for each record it sends a bare ADD to the total of the
// record's item. It has a simulator of its own, so that its totals stand beside the engine's and cost the engine nothing.
type handler struct {
	set   *rules.Set
	rules []*rules.Rule // of the kind `count`, whose targets are found by their keys
	sim   *dynamosim.Sim
}

// Total is what the handler written by hand has counted for one attribute of one item.
type Total struct {
	Key       change.Key
	Attribute string
	Count     int
}

// CountByHand has a handler written by hand get all records that the engine gets, beside it. It keeps the totals of the
// rules with these names, which must be counts that find their target by its key.
// Without names there is no handler.
func (b *Bench) CountByHand(ctx context.Context, names []string) error {
	if len(names) == 0 {
		return nil
	}
	h := &handler{set: b.set, sim: dynamosim.New(dynamosim.Options{})}
	for _, name := range names {
		i := slices.IndexFunc(b.set.Rules, func(r *rules.Rule) bool { return r.Name == name })
		if i < 0 || !countsByKey(b.set.Rules[i]) {
			return fmt.Errorf("counting by hand: %s is not a count of whole items whose target is found by its key", name)
		}
		h.rules = append(h.rules, b.set.Rules[i])
	}
	_, err := h.sim.CreateTable(ctx, tableOf(b.set, handlerTableName))
	if err != nil {
		return fmt.Errorf("creating the table of the handler: %w", err)
	}
	b.byHand = h
	return nil
}

func countsByKey(rule *rules.Rule) bool {
	return rule.Kind.Word() == "count" && !rule.ByUnique && !rule.Each.Given()
}

// handle is the handler: it remembers no record, so a record that comes twice counts twice.
func (h *handler) handle(ctx context.Context, records []change.Record) error {
	for _, rec := range records {
		for _, rule := range h.rules {
			was, now := h.target(rule, rec.Key, rec.Old), h.target(rule, rec.Key, rec.New)
			if was == now {
				continue
			}
			if err := h.add(ctx, was, rule.Writes[0], -1); err != nil {
				return err
			}
			if err := h.add(ctx, now, rule.Writes[0], 1); err != nil {
				return err
			}
		}
	}
	return nil
}

// target is the key of the item on which an image of an item counts; the zero Key if it counts nowhere.
func (h *handler) target(rule *rules.Rule, key change.Key, img change.Image) change.Key {
	if img == nil {
		return change.Key{}
	}
	m, ok := h.set.Identify(key, img)
	if !ok || m.Entity != rule.Source {
		return change.Key{}
	}
	share, ok, err := rule.Form.(rules.Adder).Contribution(&m, img)
	if err != nil || !ok {
		return change.Key{}
	}
	return change.ParseKey(share.Group)
}

func (h *handler) add(ctx context.Context, key change.Key, attribute string, n int) error {
	if key == (change.Key{}) {
		return nil
	}
	item := change.Item{h.set.Table.PartitionKey: change.String(key.Partition)}
	if h.set.Table.SortKey != "" {
		item[h.set.Table.SortKey] = change.String(key.Sort)
	}
	_, err := h.sim.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: aws.String(handlerTableName), Key: attributes.ItemToTable(item),
		UpdateExpression:          aws.String("ADD #total :n"),
		ExpressionAttributeNames:  map[string]string{"#total": attribute},
		ExpressionAttributeValues: map[string]ddb.AttributeValue{":n": &ddb.AttributeValueMemberN{Value: strconv.Itoa(n)}},
	})
	if err != nil {
		return fmt.Errorf("counting by hand: %w", err)
	}
	return nil
}

// ByHand returns the totals of the handler written by hand, in the order of their keys; none without CountByHand.
func (b *Bench) ByHand(ctx context.Context) ([]Total, error) {
	if b.byHand == nil {
		return nil, nil
	}
	items, err := scan(ctx, b.byHand.sim, handlerTableName, b.set)
	if err != nil {
		return nil, err
	}
	var totals []Total
	for _, item := range items {
		for _, name := range b.byHand.attributes() {
			if count, err := strconv.Atoi(item[name].Text()); err == nil {
				totals = append(totals, Total{b.set.Table.KeyOf(item), name, count})
			}
		}
	}
	return totals, nil
}

// attributes are those that the handler adds to, sorted.
func (h *handler) attributes() (names []string) {
	for _, rule := range h.rules {
		names = append(names, rule.Writes[0])
	}
	slices.Sort(names)
	return slices.Compact(names)
}
