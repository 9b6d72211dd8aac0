package children

import (
	"context"

	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// raiseParent raises the position up to which the rule has seen the parent. It reports false if it is higher already.
func (w Run) raiseParent(ctx context.Context, id plan.ItemRule, v stamp.Version) (bool, error) {
	c := table.NewExpression()
	set := c.Format("SET %n = %v REMOVE %n", "a", table.Text(string(v)), "ttl")
	condition := state.SeenBefore(c, id.Binding, "<=", v)
	key := state.ParentKey(id.Binding, id.Key)
	return w.Tables.UpdateState(ctx, id.ID, "raising the position of parent "+id.Key.String(), key, set, condition, c)
}

// retireParent lets the position of a deleted parent without children expire.
func (w Run) retireParent(ctx context.Context, id plan.ItemRule, v stamp.Version) error {
	c := table.NewExpression()
	set := c.Format("SET %n = %v", "ttl", table.Number(w.Now().Add(state.TombstoneTTL).Unix()))
	attribute, value := "a", table.Text(string(v))
	if id.Rule.ByUnique {
		attribute, value = "changes", table.Number(v.Count())
	}
	condition := c.Format("%n = %v", attribute, value)
	key := state.ParentKey(id.Binding, id.Key)
	_, err := w.Tables.UpdateState(ctx, id.ID, "retiring the position of parent "+id.Key.String(), key, set, condition, c)
	return err
}

// parentAt is the position up to which the rule has seen the parent; "" for none.
func (w Run) parentAt(ctx context.Context, id plan.ItemRule) (stamp.Version, error) {
	key := state.ParentKey(id.Binding, id.Key)
	rows, err := w.Tables.ReadState(ctx, "reading the position of parent "+id.Key.String(), []table.Key{key})
	return state.ParentAt(id.Binding, rows[key]), err
}
