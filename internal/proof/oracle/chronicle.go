package oracle

import (
	"fmt"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/rules"
)

// Chronicle follows what becomes of parents whose children rules delete. No table tells alone what must be gone: that depends on what
// happened (promise 11). No child outlives its parent's deletion, and no child of a living parent is deleted.
//
// A parent is deleted when its item is removed, by an application, a time to live or a rule. An item that takes another unique value, or
// becomes one of another entity, was not deleted: what its children become is open then.
type Chronicle struct {
	rules []chronicled
	pasts map[string]*past // by rule and parent
}

// chronicled is a rule that deletes, with what reads its keys.
type chronicled struct {
	*rules.Rule
	joiner
	text string // tells it from rules of other sets
}

// past is what is known of one parent under one rule.
type past struct {
	deleted  bool                // at least once
	last     bool                // its last record, of all that concern it, is that of its deletion
	streamed bool                // a stream tells of this deletion
	holders  map[change.Key]bool // items that ever were this parent
}

// NewChronicle is the chronicle of a table in which nothing has happened. Its rules are those of sets that are ever in force. keys are
// the types of the table's keys; absent for no sort key.
func NewChronicle(keys [2]change.Kind, sets ...*rules.Set) *Chronicle {
	c := &Chronicle{pasts: map[string]*past{}}
	for _, set := range sets {
		j := (&table{set: set, keys: keys}).joiner()
		for _, r := range set.Rules {
			if r.Deletes() {
				c.rules = append(c.rules, chronicled{r, j, r.Fingerprint})
			}
		}
	}
	return c
}

// Empty reports whether no rule deletes anything.
func (c *Chronicle) Empty() bool { return len(c.rules) == 0 }

// parent is the parent, as text, that an item is for its children.
func (r chronicled) parent(key change.Key, item change.Item) (string, bool) {
	if item == nil {
		return "", false
	}
	entity, values := r.identify(key, item)
	if entity != r.Source {
		return "", false
	}
	if !r.ByUnique {
		return key.String(), true
	}
	a := r.unique(entity, r.value(entity, values, item, entity.Unique))
	return a.text, a.given && a.bad == ""
}

// refersTo is the parent, as text, to which an item refers as a child.
func (r chronicled) refersTo(key change.Key, item change.Item) (string, bool) {
	entity, values := r.identify(key, item)
	if entity != r.Target {
		return "", false
	}
	a := r.refers(r.Rule, r.Source, r.Target, values, item)
	return a.text, a.given && a.bad == ""
}

func (c *Chronicle) past(r chronicled, parent string) *past {
	id := r.text + "\x00" + parent
	if c.pasts[id] == nil {
		c.pasts[id] = &past{holders: map[change.Key]bool{}}
	}
	return c.pasts[id]
}

// Changed notes a change of an item. Nil is for one that is not there.
func (c *Chronicle) Changed(key change.Key, before, after change.Item, streamed bool) {
	for _, r := range c.rules {
		was, wasParent := r.parent(key, before)
		is, isParent := r.parent(key, after)
		if wasParent && (!isParent || was != is) {
			p := c.past(r, was)
			p.last, p.streamed = after == nil, streamed
			p.deleted = p.deleted || after == nil
		}
		if isParent {
			p := c.past(r, is)
			p.last, p.holders[key] = false, true
		}
	}
}

// living is an item that is the parent of this name; false if there is none.
func (r chronicled) living(parent string, items map[change.Key]change.Item) (change.Key, bool) {
	for _, key := range sortedKeys(items) {
		if name, ok := r.parent(key, items[key]); ok && name == parent {
			return key, true
		}
	}
	return change.Key{}, false
}

// MayDelete says why a worker must not have deleted an item that it did not make; "" if it may. items are what is in the table then. Of a
// parent that is known by a unique value, known reports whether the state table knew by then that an item has it. marked reports whether
// the state table held a mark of the parent's deletion then. A worker removes the mark once it sees that the parent was made again.
func (c *Chronicle) MayDelete(key change.Key, item change.Item, items map[change.Key]change.Item,
	known func(r *rules.Rule, value string, holder change.Key) bool, marked func(r *rules.Rule, parent string) bool) string {
	why := "no rule asks for it"
	for _, r := range c.rules {
		parent, ok := r.refersTo(key, item)
		if !ok {
			continue
		}
		holder, lives := r.living(parent, items)
		switch {
		case lives && (!r.ByUnique || known(r.Rule, parent, holder)):
			why = fmt.Sprintf("its parent %s lives as %s", parent, holder)
		case !c.past(r, parent).deleted:
			why = fmt.Sprintf("its parent %s was never deleted", parent)
		case !marked(r.Rule, parent):
			why = fmt.Sprintf("the deletion of its parent %s is not marked, or not any more", parent)
		default:
			return ""
		}
	}
	return why
}

// Outliving are the children of a table that must be gone: those whose parents' deletion is the last that a stream tells of them. sure
// reports whether a rule was in force all the time.
func (c *Chronicle) Outliving(items map[change.Key]change.Item, sure func(*rules.Rule) bool) []Difference {
	var found []Difference
	for _, r := range c.rules {
		if !sure(r.Rule) {
			continue
		}
		for _, key := range sortedKeys(items) {
			parent, ok := r.refersTo(key, items[key])
			if !ok {
				continue
			}
			p := c.past(r, parent)
			_, lives := r.living(parent, items)
			if p.last && p.streamed && !lives && parent != key.String() && (!r.ByUnique || len(p.holders) == 1) {
				found = append(found, Difference{Rule: r.Name, Key: key, Got: change.Map(items[key])})
			}
		}
	}
	return found
}
