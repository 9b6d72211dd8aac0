package projections

import (
	"slices"
	"strings"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/rules"
)

// entry is a ledger entry: the engine's memory of one source item.
type entry struct {
	at        version  // last position applied
	rederived int64    // times the item was rederived at that position
	effects   effects  // in force
	due       []string // groups that lost a contribution which no image shows; see move.due
}

// move takes one source item's ledger entry from one set of effects to
// another. Taken from records, it expects what the old image says and reads
// nothing; when that fails the entry itself decides.
type move struct {
	key      change.Key
	first    int // index of the first record that asked for it; -1 when rederived
	position change.Position
	to       version
	old, new effects
	touched  []groupRef // to be rolled up

	exact     bool   // expect exactly this entry (nil: none) instead of the old image's effects
	entry     *entry // with exact
	rederived int64  // written as entry.rederived
	due       []groupRef

	restore map[string]change.Key // rule id: mirror target to write even if the effect stays
	alone   bool                  // shares no transaction, having failed in company
	spare   map[change.Key]bool   // mirror targets not to delete: they carry no stamp of ours
	seeding bool                  // rederived by seeding
	repark  bool                  // write parked records anew even if they stay
}

// touch notes an aggregate that an image of the item names.
func (mv *move) touch(g groupRef) {
	if !slices.Contains(mv.touched, g) {
		mv.touched = append(mv.touched, g)
	}
}

// expect makes the move start from the entry that was found instead of the old
// image. Groups of which no image will ever tell are marked due in the entry,
// for a crash before their roll-up must not forget them: those that lose what
// no image of the records shows, and, for an item that is rederived, all.
func (mv *move) expect(e *entry, bs *bindings) {
	mv.exact, mv.entry, mv.old, mv.due = true, e, effects{}, nil
	mark := func(g groupRef) {
		if !slices.Contains(mv.due, g) {
			mv.due = append(mv.due, g)
		}
	}
	if e != nil {
		mv.old = e.effects
		for _, text := range e.due {
			if g, ok := bs.parseDue(text); ok {
				mark(g)
			}
		}
	}
	if mv.first >= 0 {
		bs.groups(mv.old, func(g groupRef) {
			if !slices.Contains(mv.touched, g) {
				mark(g)
			}
		})
	} else if !mv.old.equal(mv.new) {
		seeded := func(g groupRef) { // what is seeded is shown when its rule goes live
			if !mv.seeding || g.b.rule.Kind == rules.Mirror || g.b.live.Load() {
				mark(g)
			}
		}
		bs.groups(mv.old, seeded)
		bs.groups(mv.new, seeded)
	}
}

// rollups are all aggregates to be rolled up after the move.
func (mv *move) rollups(add func(groupRef)) {
	for _, g := range mv.touched {
		add(g)
	}
	for _, g := range mv.due {
		add(g)
	}
}

func dueText(g groupRef) string { return g.b.id + " " + g.group }

func (bs *bindings) parseDue(text string) (groupRef, bool) {
	id, group, _ := strings.Cut(text, " ")
	b := bs.byID[id]
	return groupRef{b, group}, b != nil
}

// readEntry decodes a ledger entry; nil for an item that is not there.
func readEntry(item map[string]ddb.AttributeValue) (*entry, error) {
	if len(item) == 0 {
		return nil, nil
	}
	e := &entry{
		at:        version(textOf(item["at"])),
		rederived: numberOf(item["rederived"]),
		effects:   effects{},
		due:       textsOf(item["due"]),
	}
	if fs, ok := item["effects"].(*ddb.AttributeValueMemberM); ok {
		for id, v := range fs.Value {
			f, err := readEffect(textOf(v))
			if err != nil {
				return nil, err
			}
			e.effects[id] = f
		}
	}
	return e, nil
}

func (fs effects) attribute() ddb.AttributeValue {
	m := make(map[string]ddb.AttributeValue, len(fs))
	for id, f := range fs {
		m[id] = textValue(f.String())
	}
	return &ddb.AttributeValueMemberM{Value: m}
}

// entryWrite is the ledger half of the move's transaction: the entry, compared and swapped.
func (e *Engine) entryWrite(mv *move) ddb.TransactWriteItem {
	key := entryKey(mv.key)
	item := key.attributes()
	item["at"] = textValue(string(mv.to))
	item["effects"] = mv.new.attribute()
	if mv.rederived > 0 {
		item["rederived"] = numberValue(mv.rederived)
	}
	if len(mv.new) == 0 {
		item["ttl"] = numberValue(time.Now().Add(tombstoneTTL).Unix())
	}
	if len(mv.due) > 0 {
		due := make([]string, len(mv.due))
		for i, g := range mv.due {
			due[i] = dueText(g)
		}
		item["due"] = &ddb.AttributeValueMemberSS{Value: due}
	}
	put := &ddb.Put{
		TableName: &e.stateTable, Item: item,
		ReturnValuesOnConditionCheckFailure: ddb.ReturnValuesOnConditionCheckFailureAllOld,
	}
	switch c := newExpression(); {
	case mv.exact:
		put.ConditionExpression = ptr(c.entryIs(mv.entry))
		put.ExpressionAttributeNames, put.ExpressionAttributeValues = c.names, c.values
	default:
		condition := c.sprintf("%n = %v AND %n < %v AND attribute_not_exists(%n)",
			"effects", mv.old.attribute(), "at", textValue(string(mv.to)), "due")
		if len(mv.old) == 0 {
			condition = "attribute_not_exists(pk) OR (" + condition + ")"
		}
		put.ConditionExpression = &condition
		put.ExpressionAttributeNames, put.ExpressionAttributeValues = c.names, c.values
	}
	return ddb.TransactWriteItem{Put: put}
}

// entryIs is the condition that a ledger entry is exactly e.
func (c *expression) entryIs(e *entry) string {
	if e == nil {
		return "attribute_not_exists(pk)"
	}
	if e.rederived == 0 {
		return c.sprintf("%n = %v AND attribute_not_exists(%n)", "at", textValue(string(e.at)), "rederived")
	}
	return c.sprintf("%n = %v AND %n = %v", "at", textValue(string(e.at)), "rederived", numberValue(e.rederived))
}
