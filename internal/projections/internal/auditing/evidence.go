package auditing

import (
	"context"
	"maps"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// Evidence is what was read for some suspects.
type Evidence struct {
	*Table
	Sums
	Rows  map[table.Key]table.Row
	Items map[change.Key]change.Item
}

// NewEvidence is evidence before anything is read.
func (t *Table) NewEvidence() *Evidence {
	return &Evidence{Table: t, Rows: map[table.Key]table.Row{}, Items: map[change.Key]change.Item{}}
}

// stepsMax is how many steps a procedure reads rows in, or items.
const stepsMax = 2

// readRows reads the rows of suspects.
func (e *Evidence) readRows(ctx context.Context, suspects []drift.Suspect) error {
	for step := range stepsMax {
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
	for step := range stepsMax {
		items := keysOf(e, suspects, step, func(p *Procedure) []Keys[change.Key] {
			if len(p.Items) == 0 {
				return []Keys[change.Key]{OwnItem}
			}
			return p.Items
		})
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
func (e *Evidence) Asked(item change.Key) plan.Effects {
	return e.EffectsOf(item, table.Image(e.Items[item]))
}

// Finding is one about a suspect as a whole, which one small write mends.
func (e *Evidence) Finding(sus drift.Suspect, what drift.What) drift.Finding {
	return drift.Finding{
		Rule: e.NameOf(sus.Rule), Kind: sus.Kind, What: what, Item: sus.Item, Group: sus.Group, WriteUnits: table.WriteUnitsMin,
	}
}
