package preview

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/projections"
	"github.com/dynamill/dynamill/rules"
)

const (
	stillSeeded    = "is still being seeded: `dynamill run`, or `dynamill replay`, goes on with it"
	StillRetiring  = "was changed or removed before, and what it wrote is still being taken back: `dynamill replay`, or `dynamill run`, goes on with it"
	fileNotKept    = "what it was cannot be told: it was registered by an earlier version, which kept no rule files; start `dynamill run` once with the file that is in force"
	howManyUnknown = "; how many, only reading them tells"
)

// planDetails says what comes of a rule's change.
func planDetails(r projections.RuleChange, set *rules.Set) []string {
	switch r.What {
	case projections.RuleAdded:
		return adds(r.Rule)
	case projections.RuleChanged:
		if r.Former == nil {
			return []string{fileNotKept}
		}
		return append(moves(r.Former, r.Rule, set), adds(r.Rule)...)
	case projections.RuleRemoved:
		if r.Former == nil {
			return []string{fileNotKept}
		}
		return moves(r.Former, nil, set)
	case projections.RuleRetiring:
		return []string{StillRetiring}
	case projections.RuleRenamed:
		return []string{"means what it meant: nothing moves"}
	case projections.RuleSpread:
		return []string{fmt.Sprintf("write_shards: %d instead of %d: nothing moves", r.Rule.WriteShards, r.Shards)}
	}
	if !r.Live {
		return []string{stillSeeded}
	}
	return nil
}

// adds says what replaying a rule writes.
func adds(r *rules.Rule) []string {
	written := strings.Join(r.Writes, ", ")
	switch r.Kind {
	case rules.Copy:
		return []string{fmt.Sprintf("needs replay: writes %s on every %s, as it comes by", written, r.Target.Name)}
	case rules.Mirror:
		return []string{fmt.Sprintf("needs replay: writes %s items for %s, as they come by", r.Target.Name, r.Source.Name)}
	case rules.Count, rules.Sum:
		return []string{fmt.Sprintf("needs replay: reads every %s, then shows %s on every %s; what stands there is shown until then", r.Source.Name, written, r.Target.Name)}
	}
	return nil
}

// moves says what is taken back of a rule that means something else now, or is gone (next is nil).
func moves(former, next *rules.Rule, set *rules.Set) []string {
	if former.Kind == rules.Mirror {
		if next != nil && next.Kind == rules.Mirror && SameItems(former.Target, next.Target) {
			lines := []string{fmt.Sprintf("rewrites the %s items in place, and deletes those that it does not ask for any more, with all that is on them%s", former.Target.Name, howManyUnknown)}
			if gone := unclaimed(former, set); len(gone) > 0 {
				lines = append(lines, fmt.Sprintf("takes %s off them", strings.Join(gone, ", ")))
			}
			return lines
		}
		return []string{fmt.Sprintf("deletes the %s items that the former rule made, with all that is on them%s", former.Target.Name, howManyUnknown)}
	}
	var lines []string
	gone := unclaimed(former, set)
	if len(gone) > 0 {
		lines = append(lines, fmt.Sprintf("takes %s off every %s that still has it from the former rule%s", strings.Join(gone, ", "), former.Target.Name, howManyUnknown))
	}
	kept := slices.DeleteFunc(slices.Clone(former.Writes), func(name string) bool { return slices.Contains(gone, name) })
	if len(kept) > 0 {
		lines = append(lines, fmt.Sprintf("overwrites %s on every %s", strings.Join(kept, ", "), former.Target.Name))
	}
	return lines
}

// SameItems reports whether two entities are the same items of the table.
func SameItems(a, b *rules.Entity) bool { return a.KeyText() == b.KeyText() }

// sameMatch reports whether two entities are told from others by the same values.
func sameMatch(a, b *rules.Entity) bool {
	return slices.EqualFunc(a.Equals, b.Equals, func(x, y rules.Equals) bool { return x.Attribute == y.Attribute && x.Value.Equal(y.Value) })
}

// unclaimed are the attributes that a former rule wrote and that no rule writes on the same items now.
func unclaimed(former *rules.Rule, set *rules.Set) []string {
	return slices.DeleteFunc(slices.Clone(former.Writes), func(name string) bool {
		return slices.ContainsFunc(set.Rules, func(r *rules.Rule) bool {
			return SameItems(r.Target, former.Target) && sameMatch(r.Target, former.Target) && slices.Contains(r.Writes, name)
		})
	})
}
