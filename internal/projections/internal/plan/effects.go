package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/rules"
)

// Effect is what one item causes under one rule (or, for a locator, by being
// of its entity), as the ledger keeps it. Its text is all that is compared and
// all that is needed to undo it.
type Effect struct {
	Amount  decimal.Decimal         // contribution
	Group   string                  // contribution
	Content map[string]change.Value // mirror: its attributes; nil in an effect read from the ledger
	Target  change.Key              // mirror
	Digest  string                  // mirror: of the content
	Value   string                  // locator: the unique value
	Parked  *rules.ItemError        // the rule cannot read this item: no effect but to be parked
	Kind    EffectKind

	// Expired says of a mirror that DynamoDB's time to live deleted the item: it stays
	// away until its source asks for other content, or another program writes there.
	Expired bool
}

// EffectKind is the kind of an effect, and the first character of its text.
type EffectKind byte

// The kinds of effects; 0 is none.
const (
	Contribution EffectKind = '+' // to an aggregate
	Mirrored     EffectKind = '=' // a mirror item
	Located      EffectKind = '@' // found by a unique value
	Parked       EffectKind = '!' // not readable by the rule
)

// String is the effect as the ledger entry holds it.
func (f Effect) String() string {
	switch f.Kind {
	case Contribution:
		return "+" + f.Amount.String() + " " + f.Group
	case Mirrored:
		mark := "="
		if f.Expired {
			mark = expiredMark
		}
		return mark + f.Digest + " " + f.Target.String()
	case Located:
		return "@" + f.Value
	case Parked:
		return "!" + f.Parked.Code
	}
	return "" // no effect
}

// expiredMark begins the text of a mirror whose item expired.
const expiredMark = "~"

// Asked is the effect as the item asks for it, whether or not the mirror item expired.
func (f Effect) Asked() Effect {
	f.Expired = false
	return f
}

// sameMirror reports whether two effects ask for the same mirror item.
func (f Effect) sameMirror(g Effect) bool {
	return f.Kind == Mirrored && g.Kind == Mirrored && f.Digest == g.Digest && f.Target == g.Target
}

// ParseEffect reads what String wrote.
func ParseEffect(text string) (Effect, error) {
	if text == "" {
		return Effect{}, errors.New("empty effect in a ledger entry")
	}
	rest, expired := strings.CutPrefix(text, expiredMark)
	if expired {
		rest = string(Mirrored) + rest
	} else {
		rest = text
	}
	kind, rest := EffectKind(rest[0]), rest[1:]
	head, tail, _ := strings.Cut(rest, " ")
	switch kind {
	case Contribution:
		amount, err := decimal.Parse(head)
		return Effect{Kind: kind, Amount: amount, Group: tail}, err
	case Mirrored:
		return Effect{Kind: kind, Digest: head, Target: change.ParseKey(tail), Expired: expired}, nil
	case Located:
		return Effect{Kind: kind, Value: rest}, nil
	case Parked:
		return Effect{Kind: kind, Parked: &rules.ItemError{Code: rest}}, nil
	}
	return Effect{}, fmt.Errorf("the unknown effect %q", text)
}

// Effects are those of one item, by rule id, or locatorPrefix and locator.
type Effects map[string]Effect

const locatorPrefix = "@"

// LocatorIn is the locator (by default its entity's name) that an id names, if it names one.
func LocatorIn(id string) (string, bool) { return strings.CutPrefix(id, locatorPrefix) }

// IDs are the rules and locators that have an effect, sorted.
func (fs Effects) IDs() []string {
	ids := make([]string, 0, len(fs))
	for id := range fs {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// HasParked reports whether a rule cannot read the item.
func (fs Effects) HasParked() bool {
	for _, f := range fs {
		if f.Kind == Parked {
			return true
		}
	}
	return false
}

func (fs Effects) equal(gs Effects) bool {
	return maps.EqualFunc(fs, gs, func(f, g Effect) bool { return f.String() == g.String() })
}

// without are the effects that the others do not have in the same way.
func (fs Effects) without(gs Effects) Effects {
	left := Effects{}
	for id, f := range fs {
		if f.String() != gs[id].String() {
			left[id] = f
		}
	}
	return left
}

// effectsOf works out what an image causes. A nil image causes nothing.
func (bs *Bindings) effectsOf(key change.Key, img change.Image) Effects {
	fs := Effects{}
	if img == nil {
		return fs
	}
	m, ok := bs.Set.Identify(key, img)
	if !ok {
		return fs
	}
	for _, r := range m.Entity.Sources {
		b := bs.Of(r)
		if f, ok := b.Family.Effect(b, &m, img); ok {
			fs[b.ID] = f
		}
	}
	if m.Entity.Located {
		if value, ok, err := m.Entity.UniqueValue(&m, img); err != nil {
			fs[locatorPrefix+bs.LocatorOf(m.Entity)] = ParkedBy(err)
		} else if ok {
			fs[locatorPrefix+bs.LocatorOf(m.Entity)] = Effect{Kind: Located, Value: value}
		}
	}
	return fs
}

// ParkedBy is the effect of an item that a rule cannot read.
func ParkedBy(err error) Effect { return Effect{Kind: Parked, Parked: AsItemError(err)} }

// AsItemError narrows an error of package rules, which are all of this type.
func AsItemError(err error) *rules.ItemError {
	var e *rules.ItemError
	if errors.As(err, &e) {
		return e
	}
	return &rules.ItemError{Code: "item.unreadable", Reason: err.Error()}
}

// GroupRef names what several sources make together: an aggregate of a count
// or sum rule by its group, or a mirror item with claims by its key. It is
// brought up to date after the moves that touch it.
type GroupRef struct {
	*Binding
	Group string
}

// groups are the aggregates and mirror items with claims that effects touch. A
// locator touches every aggregate that finds its target through it.
func (bs *Bindings) groups(fs Effects, add func(GroupRef)) {
	for _, id := range fs.IDs() {
		switch f := fs[id]; f.Kind {
		case Contribution:
			if b := bs.ByID(id); b != nil {
				add(GroupRef{b, f.Group})
			}
		case Mirrored:
			if b := bs.ByID(id); b != nil && b.Claimed() {
				add(GroupRef{b, f.Target.String()})
			}
		case Located:
			locator, _ := LocatorIn(id)
			for _, r := range bs.Set.Rules {
				if b := bs.Of(r); r.ByUnique && b.Locator == locator {
					add(GroupRef{b, f.Value})
				}
			}
		}
	}
}
