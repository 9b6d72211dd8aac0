package projections

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/rules"
)

// effect is what one item causes under one rule (or, for a locator, by being
// of its entity), as the ledger keeps it. Its text is all that is compared and
// all that is needed to undo it.
type effect struct {
	amount decimal.Decimal   // contribution
	group  string            // contribution
	mirror *rules.MirrorItem // mirror; nil in an effect read from the ledger
	target change.Key        // mirror
	digest string            // mirror: of the content
	value  string            // locator: the unique value
	parked *rules.ItemError  // the rule cannot read this item: no effect but to be parked
	kind   effectKind
}

type effectKind byte

const (
	contribution effectKind = '+'
	mirrored     effectKind = '='
	located      effectKind = '@'
	parked       effectKind = '!'
)

// String is the effect as the ledger entry holds it.
func (f effect) String() string {
	switch f.kind {
	case contribution:
		return "+" + f.amount.String() + " " + f.group
	case mirrored:
		return "=" + f.digest + " " + f.target.String()
	case located:
		return "@" + f.value
	case parked:
		return "!" + f.parked.Code
	}
	return "" // no effect
}

// readEffect reads what String wrote.
func readEffect(text string) (effect, error) {
	if text == "" {
		return effect{}, errors.New("empty effect in a ledger entry")
	}
	kind, rest := effectKind(text[0]), text[1:]
	head, tail, _ := strings.Cut(rest, " ")
	switch kind {
	case contribution:
		amount, err := decimal.Parse(head)
		return effect{kind: kind, amount: amount, group: tail}, err
	case mirrored:
		return effect{kind: kind, digest: head, target: change.ParseKey(tail)}, nil
	case located:
		return effect{kind: kind, value: rest}, nil
	case parked:
		return effect{kind: kind, parked: &rules.ItemError{Code: rest}}, nil
	}
	return effect{}, errors.New("unknown effect in a ledger entry: " + text)
}

// effects are those of one item, by rule id, or locatorPrefix and entity name.
type effects map[string]effect

const locatorPrefix = "@"

// ids are the rules and locators that have an effect, sorted.
func (fs effects) ids() []string {
	ids := make([]string, 0, len(fs))
	for id := range fs {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

func (fs effects) hasParked() bool {
	for _, f := range fs {
		if f.kind == parked {
			return true
		}
	}
	return false
}

func (fs effects) equal(gs effects) bool {
	return maps.EqualFunc(fs, gs, func(f, g effect) bool { return f.String() == g.String() })
}

// effectsOf works out what an image causes. A nil image causes nothing.
func (bs *bindings) effectsOf(key change.Key, img change.Image) effects {
	fs := effects{}
	if img == nil {
		return fs
	}
	m, ok := bs.set.Identify(key, img)
	if !ok {
		return fs
	}
	for _, r := range m.Entity.Sources {
		if f, ok := effectOf(r, &m, img); ok {
			fs[bs.byRule[r].id] = f
		}
	}
	if m.Entity.Located {
		if value, ok, err := m.Entity.UniqueValue(&m, img); err != nil {
			fs[locatorPrefix+m.Entity.Name] = effect{kind: parked, parked: itemError(err)}
		} else if ok {
			fs[locatorPrefix+m.Entity.Name] = effect{kind: located, value: value}
		}
	}
	return fs
}

func effectOf(r *rules.Rule, m *rules.Match, img change.Image) (effect, bool) {
	if r.Kind == rules.Mirror {
		item, ok, err := r.MirrorItem(m, img)
		if err != nil {
			return effect{kind: parked, parked: itemError(err)}, true
		}
		if !ok {
			return effect{}, false
		}
		return effect{kind: mirrored, mirror: &item, target: item.Key, digest: contentDigest(r, item)}, true
	}
	c, ok, err := r.Contribution(m, img)
	if err != nil {
		return effect{kind: parked, parked: itemError(err)}, true
	}
	return effect{kind: contribution, amount: c.Amount, group: c.Group}, ok && !c.Amount.IsZero()
}

// contentDigest is the digest of a mirror item as foreign sees it on the item.
func contentDigest(r *rules.Rule, item rules.MirrorItem) string {
	vs := make([]change.Value, len(r.Writes))
	for i, name := range r.Writes {
		vs[i] = item.Attributes[name]
	}
	return change.Digest(vs...)
}

// itemError narrows an error of package rules, which are all of this type.
func itemError(err error) *rules.ItemError {
	var e *rules.ItemError
	if errors.As(err, &e) {
		return e
	}
	return &rules.ItemError{Code: "item.unreadable", Reason: err.Error()}
}

// groupRef names what several sources make together: an aggregate of a count
// or sum rule by its group, or a mirror item with claims by its key. It is
// brought up to date after the moves that touch it.
type groupRef struct {
	b     *binding
	group string
}

// groups are the aggregates and mirror items with claims that effects touch. A
// locator touches every aggregate that finds its target through it.
func (bs *bindings) groups(fs effects, add func(groupRef)) {
	for _, id := range fs.ids() {
		switch f := fs[id]; f.kind {
		case contribution:
			if b := bs.byID[id]; b != nil {
				add(groupRef{b, f.group})
			}
		case mirrored:
			if b := bs.byID[id]; b != nil && !b.rule.Injective {
				add(groupRef{b, f.target.String()})
			}
		case located:
			entity := strings.TrimPrefix(id, locatorPrefix)
			for _, r := range bs.set.Rules {
				if r.ByUnique && r.Target.Name == entity {
					add(groupRef{bs.byRule[r], f.value})
				}
			}
		}
	}
}
