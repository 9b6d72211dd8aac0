package copies

import (
	"context"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// Rows implements host.Keeper.
func (kind) Rows() []string { return []string{state.ReferenceRows, state.ParentRows} }

// Swept implements host.Sweeper.
func (kind) Swept() string { return state.ReferenceRows }

// Sweep implements host.Sweeper: it prunes references whose child is gone or refers elsewhere.
func (kind) Sweep(ctx context.Context, h *host.Host, rows []table.Row) error {
	children := make([]change.Key, len(rows))
	for i, r := range rows {
		children[i] = state.ReferenceChild(r)
	}
	items, err := h.Tables.ReadItems(ctx, "reading the children of references", children)
	if err != nil {
		return err
	}
	return h.Tables.Each(ctx, len(rows), func(ctx context.Context, i int) error {
		_, rest, _ := strings.Cut(table.TextOf(rows[i][table.PK]), "/")
		id, _, _ := strings.Cut(rest, "/")
		b, child := h.Planner.ByID(id), children[i]
		l := linkOf(h.Planner, b, child, table.Image(items[child]))
		if l.refers && state.ReferenceKey(b, l.parent, child) == table.KeyOf(rows[i]) {
			return nil
		}
		return pruneReference(ctx, h.Tables, id, rows[i])
	})
}
