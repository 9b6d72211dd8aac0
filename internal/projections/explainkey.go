package projections

import (
	"context"
	"errors"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/explaining"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
)

// KeyExplanation says what both tables hold of one item.
type KeyExplanation struct {
	Key    string        `json:"key"`
	Exists bool          `json:"exists"`
	Entity string        `json:"entity,omitempty"` // "" if there is no item, or it is of none
	Made   bool          `json:"made"`             // the engine made the item
	Stamps []StampLine   `json:"stamps"`
	Rows   []RowLine     `json:"rows"`
	Lines  []ExplainLine `json:"rules"` // what an insertion of the item as it is would cause
}

// RowLine is one thing that a row of the state table says.
type RowLine = explaining.RowLine

// ErrKeyImpossible is returned for a key under which the table can hold no item.
var ErrKeyImpossible = errors.New("the table cannot hold an item under this key: a part of it is empty, too long or not UTF-8, " +
	"or is no number although the table's is one")

// ExplainKey reads what both tables hold of an item, without a scan, and writes nothing. The item and its rows are read one
// after another: what happens meanwhile may stand in the rows alone.
func (a *Audit) ExplainKey(ctx context.Context, key change.Key) (KeyExplanation, error) {
	key, ok := a.tables.NormalizeKey(key)
	if !ok {
		return KeyExplanation{}, ErrKeyImpossible
	}
	it, err := (&explaining.Explainer{Planner: a.planner, Reader: a.tables.Reader}).Read(ctx, key)
	if err != nil {
		return KeyExplanation{}, err
	}
	x := KeyExplanation{
		Key: key.String(), Exists: it.Image != nil, Made: plan.IsMade(key, it.Image), Stamps: it.Stamps, Rows: it.Rows, Lines: []ExplainLine{},
	}
	if x.Exists {
		asked := explain(a.planner.Set, change.Record{Key: key, New: it.Image}, false)
		x.Entity, x.Lines = asked.New, asked.Lines
	}
	return x, nil
}
