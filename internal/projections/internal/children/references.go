package children

import (
	"context"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// PruneAll deletes rows that dangle among those by which children are found, if they are references.
func (w Run) PruneAll(ctx context.Context, b *plan.Binding, rows []Row) error {
	if b.Rule.Collection {
		return nil
	}
	return w.Tables.Each(ctx, len(rows), func(ctx context.Context, i int) error {
		_, err := PruneReference(ctx, w.Tables, b.ID, rows[i])
		return err
	})
}

// PruneReference deletes a reference whose child is gone or refers elsewhere. It reports false if the reference was put again.
func PruneReference(ctx context.Context, tables *table.Tables, rule string, reference table.Row) (bool, error) {
	c := table.NewExpression()
	condition := table.Whole(c.SameAs(reference, "a"))
	return tables.DeleteStateIf(ctx, rule, "pruning a reference", table.KeyOf(reference), condition, c)
}

// Rows implements host.Keeper.
func (Following[K]) Rows() []string { return []string{state.ReferenceRows, state.ParentRows} }

// Swept implements host.Sweeper.
func (Following[K]) Swept() string { return state.ReferenceRows }

// Sweep implements host.Sweeper: it prunes references whose child is gone or refers elsewhere.
func (Following[K]) Sweep(ctx context.Context, h *host.Host, rows []table.Row) error {
	var kind K
	var own []table.Row
	var children []change.Key
	for _, r := range rows {
		if isOf(h.Planner.ByID(ruleOf(r)), kind) {
			own, children = append(own, r), append(children, state.ReferenceChild(r))
		}
	}
	items, err := h.Tables.ReadItems(ctx, "reading the children of references", children)
	if err != nil {
		return err
	}
	return h.Tables.Each(ctx, len(own), func(ctx context.Context, i int) error {
		b, child := h.Planner.ByID(ruleOf(own[i])), children[i]
		l := LinkOf(h.Planner, b, child, table.Image(items[child]))
		if l.Refers && state.ReferenceKey(b, l.Parent, child) == table.KeyOf(own[i]) {
			return nil
		}
		_, err := PruneReference(ctx, h.Tables, b.ID, own[i])
		return err
	})
}

// ruleOf is the id of the rule that has put a reference.
func ruleOf(reference table.Row) string {
	_, rest, _ := strings.Cut(table.TextOf(reference[table.PK]), "/")
	id, _, _ := strings.Cut(rest, "/")
	return id
}
