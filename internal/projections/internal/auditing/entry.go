package auditing

import (
	"context"
	"maps"
	"strings"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/effects"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

func entryRows(_ *Evidence, sus drift.Suspect) []table.Key {
	return []table.Key{state.EntryKey(sus.Item)}
}

func judgeEntry(e *Evidence, sus drift.Suspect) drift.Reading {
	r := e.Rows[state.EntryKey(sus.Item)]
	want, have := effects.ByKey{}, effects.ByKey{}
	for k, f := range e.Asked(sus.Item) {
		if e.Judges(k.ID) {
			want[k] = f
		}
	}
	for k, v := range EffectsIn(r) {
		if f, err := e.ParseEffect(k, v); err == nil && e.Judges(k.ID) {
			have[k] = f.Wanted()
		}
	}
	reading := drift.ReadingOf(sus, change.Digest(RowValue(r), EffectsValue(want)))
	reading.Fix.Adjust = e.Adjustments(want, have)
	keys := maps.Clone(want)
	maps.Copy(keys, have)
	for _, k := range keys.Keys() {
		f := drift.Finding{
			Rule: e.NameOf(k.ID), Kind: drift.Entry, What: drift.Wrong, Item: sus.Item, Expected: want[k].String(), Found: have[k].String(),
			WriteUnits: e.entryUnits(k.ID),
		}
		if want[k].Member != nil || have[k].Member != nil {
			f.WriteUnits += table.TransactionUnitsMin // its row
		}
		switch {
		case f.Expected == f.Found:
			continue
		case f.Found == "":
			f.What = drift.Missing
		case f.Expected == "":
			f.What = drift.Surplus
		}
		reading.Findings = append(reading.Findings, f)
	}
	if entry := attributes.ItemFromTable(r); e.TornEntry(entry) {
		reading.Torn, reading.Fix.Way = true, drift.MendFirst
		reading.Findings = append(reading.Findings, drift.Finding{
			Kind: drift.Entry, What: drift.Wrong, Item: sus.Item, Expected: "an entry that can be read",
			Found:      audit.Text(change.Map(map[string]change.Value{"at": entry["a"], "effects": entry["e"]})),
			WriteUnits: table.TransactionUnitsMin,
		})
	}
	return reading
}

// entryUnits are about the write units that moving one effect takes: the entry's, and those of what it goes to.
func (e *Evidence) entryUnits(id string) float64 {
	if b := e.ByID(id); b != nil && b.Rule.MakesItems() {
		return table.TransactionUnitsMin // the mirror item itself is counted where it is missing
	}
	return 2 * table.TransactionUnitsMin
}

// entryParkings are where an effect that was found to differ is parked.
func entryParkings(e *Evidence, r *drift.Reading, f drift.Finding) (keys []table.Key) {
	if strings.HasPrefix(f.Expected, "!") {
		return nil // that it is parked is what is expected
	}
	for _, rule := range e.Set.Rules {
		if id := e.Of(rule).ID; rule.Name == f.Rule && (e.isRefused(id, f.Found) || !e.refusesAny(id, r.Suspect.Item)) {
			keys = append(keys, state.ParkedItemKey(id, r.Suspect.Item))
		}
	}
	if entity, ok := strings.CutPrefix(f.Rule, "unique "); ok {
		keys = append(keys, state.ParkedItemKey(effects.LocatorID(entity), r.Suspect.Item))
	}
	return keys
}

// isRefused reports whether an effect in a ledger entry is one that DynamoDB refused.
func (e *Evidence) isRefused(id, effect string) bool {
	code, parked := strings.CutPrefix(effect, "!")
	return parked && audit.ParkingStays(e.ByID(id), code)
}

// refusesAny reports whether an item's entry has an effect under a rule that DynamoDB refused: then that is what is parked. Else it may
// have refused to take an effect back, which the entry does not tell.
func (e *Evidence) refusesAny(id string, item change.Key) bool {
	for k, effect := range EffectsIn(e.Rows[state.EntryKey(item)]) {
		if k.ID == id && e.isRefused(id, effect) {
			return true
		}
	}
	return false
}

// mendEntry makes a ledger entry readable again: it takes out what cannot be
// read, if that is still so. What it lacks then, rederiving brings back.
func mendEntry(ctx context.Context, e *Evidence, r drift.Reading) (bool, error) {
	key := state.EntryKey(r.Suspect.Item)
	left := e.Readable(attributes.ItemFromTable(e.Rows[key]), time.Now().Add(state.TombstoneTTL))
	c := table.NewExpression()
	condition := table.Whole(c.SameAs(e.Rows[key], "a", "rederived", "e", "ttl"))
	var set, remove []string
	for _, name := range []string{"a", "rederived", "e", "ttl"} {
		if v, stays := left[name]; stays {
			set = append(set, c.Format("%n = %v", name, attributes.ToTable(v)))
		} else {
			remove = append(remove, name)
		}
	}
	update := "SET " + strings.Join(set, ", ") + " REMOVE " + c.List(remove)
	items := []ddb.TransactWriteItem{e.Tables.UpdatePart(key, update, condition, c)}
	return e.Transact(ctx, "mending the ledger entry of "+r.Suspect.Item.String(), "", items)
}

// CheckEntry checks that a ledger entry is as it was read.
func (e *Evidence) CheckEntry(item change.Key, ent *plan.Entry) ddb.TransactWriteItem {
	c := table.NewExpression()
	return e.Tables.CheckPart(state.EntryKey(item), state.EntryIs(c, ent), c)
}

// leftoverParkings are the keys under which the engine parks what a rule has left and it cannot take off.
func leftoverParkings(e *Evidence, r *drift.Reading, _ drift.Finding) []table.Key {
	if b := e.AnyByID(r.Suspect.Rule); b != nil {
		return []table.Key{state.ParkedKey(audit.ParkedTargetID(b, r.Suspect.Item))}
	}
	return nil
}

func judgeLeftover(e *Evidence, sus drift.Suspect) drift.Reading {
	item := e.Items[sus.Item]
	reading := drift.ReadingOf(sus, change.Digest(itemValue(item)))
	reading.Findings = e.CompareLeftover(e.AnyByID(sus.Rule), sus.Item, table.Image(item))
	return reading
}
