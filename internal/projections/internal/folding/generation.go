package folding

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/lanes"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/registry"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/internal/tablescan"
	"github.com/dynamill/dynamill/internal/tally"
)

// Generation is one generation of a rule, as a count of it reads and writes it.
type Generation struct {
	*Folding
	Binding *plan.Binding
	Number  int64
	Show    func(ctx context.Context, groups []plan.GroupRef) error // displays groups on their targets
	Compare func(ctx context.Context, g plan.GroupRef) ([]lanes.WrongDisplay, error)
	TakeOff func(ctx context.Context, b *plan.Binding, stamped []lanes.WrongDisplay) error // takes stamps off that are still as they were read
	// Rederive brings what is derived of items up to date.
	Rederive func(ctx context.Context, keys []change.Key) error
	Shown    func(b *plan.Binding, img change.Image) string // what an item shows of a group
	// OperationsShown is how many operations are in the stamp on an item.
	OperationsShown func(p *plan.Planner, g plan.GroupRef, key change.Key, img change.Image) int64
	Wanted          func(b *plan.Binding, a tally.Amount) string // what it should show of an amount
	Now             func() time.Time
}

// Rule is the rule's name.
func (g *Generation) Rule() string { return g.Binding.Rule.Name }

// ref is a group of the rule.
func (g *Generation) ref(group string) plan.GroupRef {
	return plan.GroupRef{Binding: g.Binding, Group: group}
}

// Begun reports whether a count has looked at every shard of the generation.
func (g *Generation) Begun(ctx context.Context) (bool, error) {
	item, err := g.Registry.ReadRule(ctx, g.Binding)
	switch {
	case err != nil:
		return false, err
	case int64(item.Generation) != g.Number:
		return false, registry.ErrEpochMoved
	}
	return int64(item.Begun) >= g.Number, nil
}

// MarkBegun notes that a count has looked at every shard of a stream: see registry.Registry.Begin.
func (g *Generation) MarkBegun(ctx context.Context, streamARN string) error {
	return g.Registry.Begin(ctx, g.Binding, g.Number, streamARN)
}

// OpenShards makes the rows of shards that are missing, one after the other: a parent comes before its children. It returns all of them.
func (g *Generation) OpenShards(ctx context.Context, starts []lanes.Start) ([]lanes.Shard, error) {
	var all []lanes.Shard
	for _, start := range starts {
		s, err := g.Lane(ctx, g.Binding, g.Number, start)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// Shards returns the rows of the generation's shards, by their ids. A shard that is among them inherits its lane from one that is, too:
// its parent's row was there before its own. A query may pass the parent's place before the row is there, and then find the child's, so
// the rows are read until two looks find the same ones.
func (g *Generation) Shards(ctx context.Context) (map[string]lanes.Shard, error) {
	var before map[string]lanes.Shard
	for {
		now, err := g.look(ctx)
		if err != nil || before != nil && maps.Equal(now, before) {
			return now, err
		}
		before = now
	}
}

func (g *Generation) look(ctx context.Context) (map[string]lanes.Shard, error) {
	all := map[string]lanes.Shard{}
	err := g.Tables.EachRow(ctx, "reading the lanes of "+g.Rule(), state.LanesOf(g.Binding, g.Number), func(r table.Row) {
		if s, ok := state.ReadLane(r); ok {
			all[s.Shard] = s
		}
	})
	return all, err
}

// Amounts are what an item adds, by group; nothing if it is none of the rule's sources. The error says why the rule cannot read it.
func (g *Generation) Amounts(key change.Key, img change.Image) (map[string]tally.Amount, error) {
	if img == nil {
		return nil, nil
	}
	m, ok := g.Planner.Set.Identify(key, img)
	if !ok || m.Entity != g.Binding.Rule.Source {
		return nil, nil
	}
	return g.Binding.Rule.Form.(rules.Folder).Amounts(&m, img)
}

// Park sets items aside that the rule cannot read, if it still cannot.
func (g *Generation) Park(ctx context.Context, keys []change.Key) error { return g.Rederive(ctx, keys) }

// TargetOf is the group that an item displays, what it shows, and how many operations its stamp counts; no group if it displays none.
func (g *Generation) TargetOf(key change.Key, img change.Image) (group, shown string, operations int64) {
	m, ok := g.Planner.Set.Identify(key, img)
	if !ok || m.Entity != g.Binding.Rule.Target {
		return "", "", 0
	}
	group, ok, err := g.Binding.Rule.GroupOf(&m, img)
	if err != nil || !ok {
		return "", "", 0
	}
	return group, g.Shown(g.Binding, img), g.OperationsShown(g.Planner, g.ref(group), key, img)
}

// TakeOffStamps takes stamps off targets on which no worker can write because of them.
func (g *Generation) TakeOffStamps(ctx context.Context, stamped []lanes.WrongDisplay) error {
	return g.TakeOff(ctx, g.Binding, stamped)
}

// DisplayOf is what a target shows of an amount.
func (g *Generation) DisplayOf(a tally.Amount) string { return g.Wanted(g.Binding, a) }

// WrongDisplays returns the targets that show something else than the group's rows hold.
func (g *Generation) WrongDisplays(ctx context.Context, group string) ([]lanes.WrongDisplay, error) {
	return g.Compare(ctx, g.ref(group))
}

// countExtentShardsMax is how many shards one row of a count extent names: about 100 bytes each, of 400 KB (DynamoDB developer guide,
// "Service quotas").
const countExtentShardsMax = 1000

// countExtentKept is how long a count extent is of use: the stream keeps records for 24 hours.
const countExtentKept = 48 * time.Hour

// CountExtents are how far earlier counts have read.
func (g *Generation) CountExtents(context.Context) ([]lanes.CountExtent, error) {
	return g.Binding.CountExtentsOf(), nil
}

// NoteCount keeps how far a count has read, and has every worker learn it with its next batch. Extents of records that the stream has
// dropped go.
func (g *Generation) NoteCount(ctx context.Context, m lanes.CountExtent) error {
	var old []table.Key
	rows := state.CountExtentsOf(g.Binding, g.Number)
	err := g.Tables.EachRow(ctx, "reading how far counts of "+g.Rule()+" have read", rows, func(r table.Row) {
		extents := map[string]*lanes.CountExtent{}
		state.ReadCountExtent(extents, r)
		for _, m := range extents {
			if m.Until.Before(g.Now().Add(-countExtentKept)) {
				old = append(old, table.KeyOf(r))
			}
		}
	})
	if err != nil {
		return err
	}
	for _, key := range old {
		if err := g.Tables.DeleteState(ctx, g.Binding.ID, "deleting an old count extent", key, "", table.NewExpression()); err != nil {
			return err
		}
	}
	part := 0
	for some := range slices.Chunk(slices.Sorted(maps.Keys(m.Read)), countExtentShardsMax) {
		row := state.CountExtentPart(g.Binding, g.Number, m, part, some)
		if _, err := g.Tables.PutState(ctx, g.Binding.ID, "noting how far a count has read", row, "", table.NewExpression()); err != nil {
			return err
		}
		part++
	}
	return g.Registry.Announce(ctx)
}

// Recount begins a new generation, and logs the reason. It always returns an error, which ends the count.
func (g *Generation) Recount(ctx context.Context, reason string) error {
	g.Tables.Logger.WarnContext(ctx, "recounting a rule", "rule", g.Rule(), "reason", reason)
	return g.Registry.Recount(ctx, []*plan.Binding{g.Binding})
}

// Group reads a group: the row of what it began with is read before the others.
func (g *Generation) Group(ctx context.Context, group string) (lanes.Group, error) {
	found := lanes.Group{HighWater: map[string]string{}}
	var amounts []tally.Amount
	torn := false
	rows := state.FoldedOf(g.ref(group), g.Number) // in the order of the sort keys: the base is first
	err := g.Tables.EachRow(ctx, "reading the rows of "+group, rows, func(r table.Row) {
		row := state.ReadFolded(r)
		if row.IsBase() {
			found.Base = row.Amount.Operations
		} else {
			found.HighWater[row.Lane] = row.HighWater
		}
		amounts = append(amounts, row.Amount)
		torn = torn || row.Torn
	})
	found.Total = tally.Sum(amounts...)
	found.Total.Overflow = found.Total.Overflow || torn
	return found, err
}

// Groups calls f with each group that has a row.
func (g *Generation) Groups(ctx context.Context, f func(group string) error) error {
	last := ""
	return g.scan(ctx, func(id string, r table.Row) error {
		word, _, _ := cutWord(r)
		group := state.FoldedGroup(r)
		if id != g.Binding.ID || word != state.FoldedRows || g.numberIn(r) != g.Number || group == "" || group == last {
			return nil
		}
		last = group
		return f(group)
	})
}

// Mend adds a difference to what a group began with, if its row has as many operations as were read; false if it has not. If DynamoDB
// refuses the sum, the row is noted as torn.
func (g *Generation) Mend(ctx context.Context, group string, difference tally.Amount, operations int64) (bool, error) {
	ref := g.ref(group)
	for _, refused := range []bool{difference.Overflow, true} {
		c := table.NewExpression()
		update := state.MendBase(c, ref, difference, refused)
		condition := c.Format("attribute_not_exists(%n)", "ops")
		if operations > 0 {
			condition = c.Format("%n = %v", "ops", table.Number(operations))
		}
		done, err := g.Tables.UpdateState(ctx, g.Binding.ID, "mending "+group, state.BaseKey(ref, g.Number), update, condition, c)
		if table.Refusal(err) == "" {
			return done, err
		}
	}
	return false, nil
}

// RollUp shows groups on their targets.
func (g *Generation) RollUp(ctx context.Context, groups []string) error {
	refs := make([]plan.GroupRef, len(groups))
	for i, group := range groups {
		refs[i] = g.ref(group)
	}
	return g.Show(ctx, refs)
}

// DropOlder deletes the rows of generations before some others.
func (f *Folding) DropOlder(ctx context.Context, newer []*Generation) error {
	return f.scan(ctx, func(id string, r table.Row) error {
		for _, g := range newer {
			if n := g.numberIn(r); g.Binding.ID != id || n == 0 || n >= g.Number {
				continue
			}
			return f.Tables.DeleteState(ctx, id, "deleting a former generation", table.KeyOf(r), "", table.NewExpression())
		}
		return nil
	})
}

// scanPageMax is how many rows one page of a scan has at most.
const scanPageMax = 1000

// cutWord returns the word with which a row's partition key begins and the id of its rule; false if it is no row of a generation.
func cutWord(r table.Row) (word, id string, folded bool) {
	fields := strings.SplitN(table.TextOf(r[table.PK]), "/", 3)
	if len(fields) < 3 {
		return "", "", false
	}
	return fields[0], fields[1], slices.Contains([]string{state.FoldedRows, state.LaneRows, state.CountExtentRows}, fields[0])
}

// numberIn is the generation that a row is of; 0 for one of a former state table.
func (g *Generation) numberIn(r table.Row) int64 {
	return state.GenerationIn(table.TextOf(r[table.PK]), g.Binding.Incarnation)
}

// scan calls each with every row of a generation, and the id of its rule.
func (f *Folding) scan(ctx context.Context, each func(id string, r table.Row) error) error {
	scanned := &tablescan.Table{Client: f.Tables.Client, TableName: f.Tables.StateTable, Segments: 1,
		Attributes: []string{table.PK, table.SK, "group"}}
	var last map[string]ddb.AttributeValue
	for {
		page, err := table.Attempt(ctx, f.Tables.Reader, "scanning the state table", func() (tablescan.Page, error) {
			return scanned.Read(ctx, 0, last, scanPageMax)
		})
		if err != nil {
			return err
		}
		for _, r := range page.Items {
			if _, id, folded := cutWord(r); folded {
				if err := each(id, r); err != nil {
					return err
				}
			}
		}
		if last = page.Next; last == nil {
			return nil
		}
	}
}
