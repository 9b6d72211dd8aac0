package projections

import (
	"cmp"
	"context"
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/rules"
)

// total is an aggregate's accumulators added up.
type total struct {
	value      decimal.Decimal
	operations int64        // on the accumulators
	changes    int64        // of the locator
	targets    []change.Key // the one that displays it first, then those that lost the locator to it
	err        *rules.ItemError
}

// rollUp writes every due aggregate to its target, once. Rules that are still
// seeding show nothing (promise 10). Whether a rule is live is asked after the
// moves: a sum that changed before the rule went live is then seen by the
// seeding's own roll-up.
func (w *work) rollUp(pl *plan) {
	var due []groupRef
	var waiting []*rollup
	for g, ru := range pl.rollups.all() {
		if g.b.rule.Kind == rules.Mirror || g.b.live.Load() {
			due = append(due, g)
		} else {
			waiting = append(waiting, ru)
		}
	}
	slices.SortFunc(due, func(a, b groupRef) int {
		return cmp.Or(cmp.Compare(a.b.id, b.b.id), cmp.Compare(a.group, b.group))
	})
	totals, err := w.readTotals(w.ctx, due)
	if err != nil {
		for _, g := range due {
			w.failed(pl.rollups.of(g).first, err)
		}
		return
	}
	unsettled := map[*move]bool{}
	for _, ru := range waiting {
		for _, mv := range ru.marks {
			unsettled[mv] = true
		}
	}
	errs := every(w.ctx, len(due), func(ctx context.Context, i int) error {
		g := due[i]
		if g.b.rule.Kind == rules.Mirror {
			return w.deriveTarget(ctx, g.b, change.ParseKey(g.group))
		}
		return w.show(ctx, g, totals[g], pl.rollups.of(g))
	})
	for i, err := range errs {
		if err == nil {
			continue
		}
		ru := pl.rollups.of(due[i])
		w.failed(ru.first, err)
		for _, mv := range ru.marks {
			unsettled[mv] = true
		}
	}
	w.clearMarks(pl, unsettled)
}

// clearMarks clears the due marks of entries whose aggregates are all shown.
func (w *work) clearMarks(pl *plan, unsettled map[*move]bool) {
	seen := map[*move]bool{}
	for _, ru := range pl.rollups.all() {
		for _, mv := range ru.marks {
			if seen[mv] || unsettled[mv] {
				continue
			}
			seen[mv] = true
			w.failed(mv.first, w.clearDue(w.ctx, mv))
		}
	}
}

// readTotals reads the accumulators of aggregates and, where targets are known by a unique value alone, their locators.
func (e *Engine) readTotals(ctx context.Context, due []groupRef) (map[groupRef]total, error) {
	if len(due) == 0 {
		return nil, nil
	}
	var keys []stateKey
	for _, g := range due {
		for suffix := range g.b.suffixes {
			keys = append(keys, accumulatorKey(g, suffix))
		}
		if g.b.rule.ByUnique {
			keys = append(keys, locatorKey(g.b.rule.Target.Name, g.group))
		}
	}
	rows, err := e.readState(ctx, "reading accumulators", keys)
	if err != nil {
		return nil, err
	}
	totals := make(map[groupRef]total, len(due))
	for _, g := range due {
		totals[g] = addUp(g, rows)
	}
	return totals, nil
}

func addUp(g groupRef, rows map[stateKey]row) total {
	var t total
	for suffix := range g.b.suffixes {
		r, ok := rows[accumulatorKey(g, suffix)]
		if !ok {
			continue
		}
		t.operations += numberOf(r["operations"])
		v, err := decimal.Parse(textOf(r["value"]))
		if err == nil {
			t.value, err = t.value.Add(v)
		}
		if err != nil {
			t.err = overflow("the sum").parked
		}
	}
	if !g.b.rule.ByUnique {
		t.targets = []change.Key{change.ParseKey(g.group)}
		return t
	}
	locator := rows[locatorKey(g.b.rule.Target.Name, g.group)]
	t.changes = numberOf(locator["changes"])
	claimants := slices.Sorted(slices.Values(textsOf(locator["items"])))
	for _, text := range claimants {
		t.targets = append(t.targets, change.ParseKey(text))
	}
	return t
}

// show writes an aggregate's value to its target, if that exists and shows nothing later.
func (e *Engine) show(ctx context.Context, g groupRef, t total, ru *rollup) error {
	for i, target := range t.targets {
		if t.err != nil {
			if err := e.park(ctx, g.b, target, change.Position{}, t.err); err != nil {
				return err
			}
			continue
		}
		if i > 0 {
			if err := e.hide(ctx, g, t, target); err != nil {
				return err
			}
			continue
		}
		if t.operations == 0 && !ru.present {
			continue // nothing was ever counted and nothing is shown
		}
		if allowed, err := e.mayHeal(ctx, g.b, target, ru.contested[target]); err != nil || !allowed {
			return err
		}
		if err := e.showOn(ctx, g, t, target); err != nil {
			return err
		}
	}
	return nil
}

func (e *Engine) showOn(ctx context.Context, g groupRef, t total, target change.Key) error {
	attribute, value := g.b.rule.Writes[0], change.Number(t.value.String())
	s := e.totalStamp(g, t, target, value)
	c := newExpression()
	set := c.sprintf("SET %n = %v, %n = %v", attribute, attributes.ToTable(value), g.b.stamp, textValue(s.String()))
	condition := e.stillEntity(c, g.b.rule.Target) + e.stillGroup(c, g) + " AND " + c.unstampedOr(g.b.stamp, s)
	ok, err := e.update(ctx, "rolling up "+g.b.rule.Name+" of "+target.String(), e.itemUpdate(target, set, condition, c))
	if err != nil && classify(err) == classPark {
		return e.park(ctx, g.b, target, change.Position{}, &rules.ItemError{Code: "write.rejected", Reason: err.Error()})
	}
	if ok {
		e.counters.Rollups.Add(1)
	}
	return err
}

// totalStamp is the stamp of a total on a target. What is summed and where it
// is shown only ever changes by counts that rise, so their sum is a version.
func (e *Engine) totalStamp(g groupRef, t total, target change.Key, value change.Value) stamp {
	return stamp{stampContext(e.incarnation, target, g.group), versionOf(e.epoch, t.operations+t.changes), change.Digest(value)}
}

// hide takes the attribute off an item that lost its unique value to another.
// The stamp stays: it keeps a sleeper from showing there what was true before.
func (e *Engine) hide(ctx context.Context, g groupRef, t total, target change.Key) error {
	s := e.totalStamp(g, t, target, change.Value{})
	c := newExpression()
	update := c.sprintf("SET %n = %v REMOVE %n", g.b.stamp, textValue(s.String()), g.b.rule.Writes[0])
	condition := e.stillEntity(c, g.b.rule.Target) + e.stillGroup(c, g) + " AND " + c.unstampedOr(g.b.stamp, s)
	_, err := e.update(ctx, "taking "+g.b.rule.Name+" off "+target.String(), e.itemUpdate(target, update, condition, c))
	return err
}

// stillGroup is the condition that an item known by a unique attribute still has that value, whatever its type.
func (e *Engine) stillGroup(c *expression, g groupRef) string {
	entity := g.b.rule.Target
	if !g.b.rule.ByUnique || entity.UniqueInKey() {
		return ""
	}
	condition := c.sprintf(" AND (%n = %v", entity.Unique, textValue(g.group))
	if n, err := decimal.Parse(g.group); err == nil {
		condition += c.sprintf(" OR %n = %v", entity.Unique, attributes.ToTable(change.Number(n.String())))
	}
	if g.group == "true" || g.group == "false" {
		condition += c.sprintf(" OR %n = %v", entity.Unique, attributes.ToTable(change.Bool(g.group == "true")))
	}
	return condition + ")"
}

// bare takes the attribute off items that have no unique value, and so display nothing.
func (w *work) bare(bares *asked[itemRule, bare]) {
	for id, ba := range bares.all() {
		c := newExpression()
		remove := "REMOVE " + c.name(id.b.rule.Writes[0]) + ", " + c.name(id.b.stamp)
		unique := id.b.rule.Target.Unique
		condition := w.stillEntity(c, id.b.rule.Target) + c.same(unique, ba.last.Lookup(unique))
		_, err := w.update(w.ctx, "taking "+id.b.rule.Name+" off "+id.key.String(), w.itemUpdate(id.key, remove, condition, c))
		w.failed(ba.first, err)
	}
}
