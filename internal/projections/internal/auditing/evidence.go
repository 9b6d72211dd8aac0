package auditing

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/effects"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// Evidence is what was read for some suspects.
type Evidence struct {
	*Table
	Sums
	Rows   map[table.Key]table.Row
	Items  map[change.Key]change.Item
	More   map[string]any      // what procedures have read beside, by drift.Suspect.ID
	looked map[change.Key]bool // items that were read, there or not
}

// NewEvidence is evidence before anything is read.
func (t *Table) NewEvidence() *Evidence {
	return &Evidence{Table: t, Rows: map[table.Key]table.Row{}, Items: map[change.Key]change.Item{}, More: map[string]any{},
		looked: map[change.Key]bool{}}
}

// Looked reports whether an item was read, be it there or not.
func (e *Evidence) Looked(item change.Key) bool { return e.looked[item] }

// rowStepsMax is how many steps a procedure reads rows in.
const rowStepsMax = 2

// readRows reads the rows of suspects.
func (e *Evidence) readRows(ctx context.Context, suspects []drift.Suspect) error {
	for step := range rowStepsMax {
		if err := e.fetchRows(ctx, keysOf(e, suspects, step, func(p *Procedure) []Keys[table.Key] { return p.Rows })); err != nil {
			return err
		}
	}
	return nil
}

func (e *Evidence) read(ctx context.Context, suspects []drift.Suspect) ([]drift.Reading, error) {
	if err := e.readRows(ctx, suspects); err != nil {
		return nil, err
	}
	for _, sus := range suspects {
		if more := e.procedure(sus).More; more != nil && e.Incarnation != "" {
			if err := more(ctx, e, sus); err != nil {
				return nil, err
			}
		}
	}
	for step := 0; ; step++ {
		items := keysOf(e, suspects, step, func(p *Procedure) []Keys[change.Key] {
			if len(p.Items) == 0 {
				return []Keys[change.Key]{OwnItem}
			}
			return p.Items
		})
		if len(items) == 0 && step > 0 { // a step without keys ends the reading
			break
		}
		if err := e.fetchItems(ctx, items); err != nil {
			return nil, err
		}
	}
	readings := make([]drift.Reading, len(suspects))
	for i, sus := range suspects {
		readings[i] = e.Judge(sus)
	}
	return readings, e.excuse(ctx, readings)
}

// OwnItem is the suspect's item.
func OwnItem(_ *Evidence, sus drift.Suspect) []change.Key { return []change.Key{sus.Item} }

// keysOf are the keys that one step of the suspects' procedures asks for.
func keysOf[K any](e *Evidence, suspects []drift.Suspect, step int, of func(*Procedure) []Keys[K]) (keys []K) {
	for _, sus := range suspects {
		if steps := of(e.procedure(sus)); step < len(steps) {
			keys = append(keys, steps[step](e, sus)...)
		}
	}
	return keys
}

func (e *Evidence) fetchRows(ctx context.Context, keys []table.Key) error {
	if e.Incarnation == "" { // of a table without a registry there is nothing to read
		return nil
	}
	found, err := e.Tables.ReadState(ctx, "reading the state of suspects", keys)
	maps.Copy(e.Rows, found)
	return err
}

func (e *Evidence) fetchItems(ctx context.Context, keys []change.Key) error {
	found, err := e.Tables.ReadItems(ctx, "reading suspects", keys)
	maps.Copy(e.Items, found)
	for _, key := range keys {
		e.looked[key] = true
	}
	return err
}

// Judge judges a suspect by what was read.
func (e *Evidence) Judge(sus drift.Suspect) drift.Reading {
	p := e.procedure(sus)
	if p.Judge == nil {
		return drift.Reading{Suspect: sus}
	}
	r := p.Judge(e, sus)
	r.Fix.Stage = p.Stage
	return r
}

// Asked are the effects that an item that was read asks for.
func (e *Evidence) Asked(item change.Key) effects.ByKey {
	return e.EffectsOf(item, table.Image(e.Items[item]))
}

// Finding is one about a suspect as a whole, which one small write mends.
func (e *Evidence) Finding(sus drift.Suspect, what drift.What) drift.Finding {
	return drift.Finding{
		Rule: e.NameOf(sus.Rule), Kind: sus.Kind, What: what, Item: sus.Item, Group: sus.Group, WriteUnits: table.WriteUnitsMin,
	}
}

// What State digests is what a judgement goes by and no more: a suspect is not
// to seem to move because another attribute of its item, or of its parent, does.

// EffectsValue is what effects are, for a State.
func EffectsValue(asked effects.ByKey) change.Value {
	all := map[string]change.Value{}
	for k, f := range asked {
		all[k.String()] = change.String(f.String())
	}
	return change.Map(all)
}

// RuleValue is what an item holds under a rule, for a State.
func RuleValue(b *plan.Binding, item change.Item) change.Value {
	if item == nil {
		return change.Value{}
	}
	return change.List(append(plan.ValuesOf(b.Rule, item), item.Lookup(b.Stamp)))
}

// RowValue is what a row holds, for a State.
func RowValue(r table.Row) change.Value { return itemValue(attributes.ItemFromTable(r)) }

func itemValue(it change.Item) change.Value {
	if it == nil {
		return change.Value{}
	}
	return change.Map(it)
}

// EffectsIn are the texts of the effects that a ledger entry has in force.
func EffectsIn(entry table.Row) map[effects.Key]string {
	texts, _ := effects.ReadTexts(attributes.ItemFromTable(entry)) // what cannot be read is torn, which the judge of entries finds
	return texts
}

// excuse notes what is not to be judged now: what is parked, and children that
// an unfinished fan-out of their parent has still to come to.
func (e *Evidence) excuse(ctx context.Context, readings []drift.Reading) error {
	var keys []table.Key
	wrong := false
	for i := range readings {
		r := &readings[i]
		for _, f := range r.Findings {
			keys = append(keys, e.Parkings(r, f)...)
		}
		if len(r.Findings) > 0 {
			wrong, keys = true, append(keys, e.tasksOf(r)...)
		}
	}
	if !wrong {
		return nil
	}
	if err := errors.Join(e.fetchRows(ctx, keys), e.checkEpoch(ctx)); err != nil {
		return err
	}
	for i := range readings {
		r := &readings[i]
		if len(r.Findings) == 0 || r.Torn { // what is parked is so because of the torn row
			continue
		}
		left := slices.DeleteFunc(slices.Clone(r.Findings), func(f drift.Finding) bool {
			return slices.ContainsFunc(e.Parkings(r, f), func(k table.Key) bool {
				p, ok := audit.ReadParked(attributes.ItemFromTable(e.Rows[k]))
				return ok && e.ParkingStays(p)
			})
		})
		if len(left) == 0 {
			r.Waiting, r.Final = "parked", true
			continue
		}
		if r.Excused = len(left) < len(r.Findings); r.Excused { // what is parked under one rule excuses nothing under another
			r.Findings = left
			r.Fix.Adjust = slices.DeleteFunc(slices.Clone(r.Fix.Adjust), func(a drift.Amount) bool {
				return !slices.ContainsFunc(left, func(f drift.Finding) bool { return f.Rule == e.NameOf(a.Rule) })
			})
		}
		if slices.ContainsFunc(e.tasksOf(r), func(k table.Key) bool {
			return len(e.Rows[k]) > 0 && !audit.TornTask(e.Planner, attributes.ItemFromTable(e.Rows[k]))
		}) {
			r.Waiting = "a fan-out of its parent is not finished"
		}
	}
	return nil
}

// Parkings are where what would excuse a finding is parked.
func (e *Evidence) Parkings(r *drift.Reading, f drift.Finding) []table.Key {
	if parkings := e.procedure(r.Suspect).Parkings; parkings != nil {
		return parkings(e, r, f)
	}
	return []table.Key{parkedKey(r.Suspect)}
}

// tasksOf are where unfinished work that has still to come to an item is kept.
func (e *Evidence) tasksOf(r *drift.Reading) []table.Key {
	if tasks := e.procedure(r.Suspect).Tasks; tasks != nil {
		return tasks(e, r)
	}
	return nil
}
