package projections

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/rules"
)

// fillsAtOnce is how many children are filled with the same two reads.
const fillsAtOnce = 50

// fill brings children to what their parents say: reference first, then the
// parent's position and the child's stamp, then the parent, then the write.
func (w *work) fill(children *asked[itemRule, fill]) {
	for chunk := range slices.Chunk(children.keys, fillsAtOnce) {
		w.onChildren(chunk, children, w.refer)
		var open []itemRule
		for _, id := range chunk {
			if f := children.of(id); f.refers && f.bad == nil {
				open = append(open, id)
			}
		}
		if err := w.fillChunk(w.ctx, open, children); err != nil {
			w.failed(children.of(chunk[0]).first, err)
			continue
		}
		w.onChildren(chunk, children, w.afterFill)
	}
}

// onChildren takes one step with several children at once.
func (w *work) onChildren(ids []itemRule, children *asked[itemRule, fill], step func(context.Context, itemRule, *fill) error) {
	errs := every(w.ctx, len(ids), func(ctx context.Context, i int) error {
		return step(ctx, ids[i], children.of(ids[i]))
	})
	for i, err := range errs {
		w.failed(children.of(ids[i]).first, err)
	}
}

// refer puts the child's reference, or parks a child whose parent cannot be named.
func (e *Engine) refer(ctx context.Context, id itemRule, f *fill) error {
	if f.bad != nil {
		f.refers = false
		return e.parkChild(ctx, id, f)
	}
	if f.wasBad {
		if err := e.unpark(ctx, parkedID(id.b.id, id.key), ""); err != nil {
			return err
		}
	}
	if !f.refers || id.b.rule.Collection {
		return nil
	}
	at := textValue(string(versionAt(e.epoch, f.position)))
	key := referenceKey(id.b, f.parent, id.key)
	c := newExpression()
	set := c.sprintf("SET %n = %v", "at", at)
	if key.sort != id.key.String() {
		set += c.sprintf(", %n = %v", "child", textValue(id.key.String()))
	}
	condition := c.sprintf("attribute_not_exists(%n) OR %n < %v", "at", "at", at)
	_, err := e.update(ctx, "putting a reference to "+f.parent.String(), e.stateUpdate(key, set, condition, c))
	return err
}

// parkChild parks a child that cannot name its parent, and then makes sure
// that it still cannot: who sleeps in between must not leave behind what a good
// record has cleared.
func (e *Engine) parkChild(ctx context.Context, id itemRule, f *fill) error {
	if err := e.park(ctx, id.b, id.key, f.position, f.bad); err != nil {
		return err
	}
	items, err := e.readItems(ctx, "reading child "+id.key.String(), []change.Key{id.key})
	if err != nil {
		return err
	}
	child := image(items[id.key])
	if child != nil {
		if m, ok := e.set.Identify(id.key, child); ok && m.Entity == id.b.rule.Target {
			if _, _, bad := referenceIn(id.b.rule, &m, child); bad != nil {
				return nil
			}
		}
	}
	return e.unpark(ctx, parkedID(id.b.id, id.key), "")
}

// afterFill drops the references to parents that the child referred to before,
// and takes off copies that have no parent any more.
func (e *Engine) afterFill(ctx context.Context, id itemRule, f *fill) error {
	if !f.refers && !f.gone && f.bad == nil {
		if err := e.strip(ctx, id); err != nil {
			return err
		}
	}
	if id.b.rule.Collection {
		return nil
	}
	for _, parent := range f.former {
		if f.refers && parent == f.parent {
			continue
		}
		c := newExpression()
		condition := c.sprintf("%n < %v", "at", textValue(string(versionAt(e.epoch, f.position))))
		if err := e.deleteState(ctx, "dropping a reference to "+parent.String(), referenceKey(id.b, parent, id.key), condition, c); err != nil {
			return err
		}
	}
	return nil
}

// fillChunk reads positions and children, then parents, then writes.
func (w *work) fillChunk(ctx context.Context, open []itemRule, children *asked[itemRule, fill]) error {
	for try := 0; len(open) > 0; try++ {
		if try == movesTriesMax {
			return fmt.Errorf("filling children: %w", errTooContended)
		}
		if try > 2 {
			pause(ctx, try)
		}
		var positions []stateKey
		var keys, parents []change.Key
		for _, id := range open {
			positions = append(positions, parentKey(id.b, children.of(id).parent))
			keys = append(keys, id.key)
			parents = append(parents, children.of(id).parent)
		}
		found, err := w.read(ctx, "reading children and their parents' positions",
			wanted{w.stateTable, stateKeys(positions)}, wanted{w.table, w.itemKeys(keys)})
		if err != nil {
			return err
		}
		at, items := byStateKey(found[w.stateTable]), w.byItemKey(found[w.table])
		sources, err := w.readItems(ctx, "reading parents", parents)
		if err != nil {
			return err
		}
		again := make([]bool, len(open))
		errs := every(ctx, len(open), func(ctx context.Context, i int) (err error) {
			id, f := open[i], children.of(open[i])
			v := version(textOf(at[parentKey(id.b, f.parent)]["at"]))
			again[i], err = w.fillChild(ctx, id, f, items[id.key], image(w.parentItem(id.b, f.parent, sources)), v)
			return err
		})
		var rest []itemRule
		for i, id := range open {
			w.failed(children.of(id).first, errs[i])
			if again[i] {
				rest = append(rest, id)
			}
		}
		open = rest
	}
	return nil
}

// parentItem is the parent, provided that the item under its key is of the parent's entity.
func (e *Engine) parentItem(b *binding, key change.Key, items map[change.Key]change.Item) change.Item {
	it, ok := items[key]
	if !ok {
		return nil
	}
	m, ok := e.set.Identify(key, it)
	if !ok || m.Entity != b.rule.Source {
		return nil
	}
	return it
}

// fillChild writes a parent, as it was read, on one child. It reports true if the child moved meanwhile.
func (w *work) fillChild(ctx context.Context, id itemRule, f *fill, child change.Item, parent change.Image, at version) (bool, error) {
	if child == nil {
		return false, nil
	}
	if m, ok := w.set.Identify(id.key, child); !ok || m.Entity != id.b.rule.Target {
		return false, nil
	} else if ref, ok, err := id.b.rule.ParentKey(&m, child); err != nil || !ok || ref != f.parent {
		return false, nil // a later record of the child says so
	}
	if allowed, err := w.mayHeal(ctx, id.b, id.key, f.contested); err != nil || !allowed {
		return false, err
	}
	f.contested = false
	if at == "" {
		at = versionAt(w.epoch, change.Position{})
	}
	pw := parentWrite{b: id.b, parent: f.parent, version: at.underEpoch(w.epoch), values: id.b.rule.Copied(parent)}
	context := stampContext(w.incarnation, id.key, f.parent.String())
	if s, ok := readStamp(child.Lookup(id.b.stamp), context); ok {
		pw.version = max(pw.version, s.version)
	}
	written, err := w.writeCopies(ctx, pw, id.key, child)
	return !written && err == nil, err
}

// writeChild writes a parent's state on a child that was read, trying again
// with the child as it is as often as it moves. It reports whether the child refers to the parent.
func (e *Engine) writeChild(ctx context.Context, pw parentWrite, key change.Key, child change.Image) (bool, error) {
	for try := range movesTriesMax {
		if child == nil {
			return false, nil
		}
		m, ok := e.set.Identify(key, child)
		if !ok || m.Entity != pw.b.rule.Target {
			return false, nil
		}
		if ref, ok, err := pw.b.rule.ParentKey(&m, child); err != nil || !ok || ref != pw.parent {
			return false, nil
		}
		context := stampContext(e.incarnation, key, pw.parent.String())
		if s, ok := readStamp(child.Lookup(pw.b.stamp), context); ok && s.version > pw.version {
			return true, nil // a later state of the parent is there already
		}
		written, err := e.writeCopies(ctx, pw, key, child)
		if err != nil || written {
			return true, err
		}
		if try > 2 {
			pause(ctx, try)
		}
		items, err := e.readItems(ctx, "reading child "+key.String(), []change.Key{key})
		if err != nil {
			return true, err
		}
		child = image(items[key])
	}
	return true, fmt.Errorf("copying to %s: %w", key, errTooContended)
}

// writeCopies writes copies and stamp, unless the child holds both already. It
// reports false if the child moved since it was read.
func (e *Engine) writeCopies(ctx context.Context, pw parentWrite, key change.Key, child change.Image) (bool, error) {
	s := stamp{stampContext(e.incarnation, key, pw.parent.String()), pw.version, change.Digest(pw.values...)}
	if child.Lookup(pw.b.stamp).Equal(change.String(s.String())) && digestOf(pw.b, child) == s.digest {
		return true, nil
	}
	ok, err := e.update(ctx, "copying to "+key.String(), e.copyUpdate(pw, key, child, s))
	if err != nil && classify(err) == classPark {
		return true, e.park(ctx, pw.b, key, change.Position{}, &rules.ItemError{Code: "write.rejected", Reason: "DynamoDB refuses the write: " + err.Error()})
	}
	if ok {
		e.counters.Copies.Add(1)
	}
	return ok, err
}

// strip takes copies and stamp off a child that refers to no parent, if that is still so.
func (e *Engine) strip(ctx context.Context, id itemRule) error {
	for try := range movesTriesMax {
		if try > 2 {
			pause(ctx, try)
		}
		items, err := e.readItems(ctx, "reading child "+id.key.String(), []change.Key{id.key})
		child := items[id.key]
		if err != nil || child == nil {
			return err
		}
		m, ok := e.set.Identify(id.key, child)
		if !ok || m.Entity != id.b.rule.Target {
			return nil
		}
		if _, refers, err := id.b.rule.ParentKey(&m, child); refers || err != nil {
			return nil
		}
		names := slices.DeleteFunc(append(slices.Clone(id.b.rule.Writes), id.b.stamp), func(name string) bool {
			return child.Lookup(name).Kind() == change.KindAbsent
		})
		if len(names) == 0 {
			return nil
		}
		c := newExpression()
		for i, name := range names {
			names[i] = c.name(name)
		}
		update := "REMOVE " + strings.Join(names, ", ")
		ok, err = e.update(ctx, "taking copies off "+id.key.String(), e.itemUpdate(id.key, update, e.unmoved(c, id.b, child), c))
		if err != nil || ok {
			return err
		}
	}
	return fmt.Errorf("taking copies off %s: %w", id.key, errTooContended)
}
