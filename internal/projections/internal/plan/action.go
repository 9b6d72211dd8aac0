package plan

import (
	"cmp"
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/projections/internal/effects"
)

// TransactActionsMax is the most actions of one transaction (DynamoDB API, TransactWriteItems).
const TransactActionsMax = 100

// TransactBytesMax is the most bytes that one transaction is to carry. It leaves room below 4 MB, which the items that a transaction
// writes or checks may have together (DynamoDB API, TransactWriteItems).
const TransactBytesMax = 3 << 20

// Sum is the difference that moves make to one aggregate.
type Sum struct {
	Group   GroupRef
	Delta   decimal.Decimal // 0 of a rule with `per`
	Members int64           // effects that contribute now, less those that do not any more
	Parts   []SumPart       // of a rule with `per`
	Key     effects.Key     // the effect that makes it, or the first one

	SeveralEffects bool // two or more effects make it
}

// SumPart is the difference to what counts under one value.
type SumPart struct {
	Per     string
	Delta   decimal.Decimal
	Members int64
}

// SumPartsMax is the most values of one aggregate that a transaction changes: DynamoDB bounds an expression to 4 KB
// (developer guide, "Expressions" under "Constraints"), and each value takes up to 22 bytes of it.
const SumPartsMax = 100

// SumOf is the difference that a contribution under a key makes to its aggregate.
func SumOf(b *Binding, k effects.Key, f effects.Effect, delta decimal.Decimal, members int64) Sum {
	s := Sum{Group: GroupRef{b, f.Group}, Delta: delta, Members: members, Key: k}
	if f.Per != "" {
		s.Delta, s.Parts = decimal.Decimal{}, []SumPart{{f.Per, delta, members}}
	}
	return s
}

// Add is the difference with another one to the same aggregate; false if no number, or no transaction, holds both.
func (s Sum) Add(other Sum) (Sum, bool) {
	delta, err := s.Delta.Add(other.Delta)
	s.SeveralEffects = s.SeveralEffects || other.SeveralEffects || s.Key != other.Key
	s.Delta, s.Members, s.Parts = delta, s.Members+other.Members, slices.Clone(s.Parts)
	for _, p := range other.Parts {
		i := slices.IndexFunc(s.Parts, func(of SumPart) bool { return of.Per == p.Per })
		if i < 0 {
			s.Parts = append(s.Parts, p)
			continue
		}
		sum, overflow := s.Parts[i].Delta.Add(p.Delta)
		s.Parts[i].Delta, s.Parts[i].Members = sum, s.Parts[i].Members+p.Members
		err = cmp.Or(err, overflow)
	}
	return s, err == nil && len(s.Parts) <= SumPartsMax
}

// ActionKind is what an action does.
type ActionKind uint8

// The kinds of actions. A family has actions of its own.
const (
	FamilyAction  ActionKind = iota + 1 // of a family's own
	AddLocator                          // has the item found by a unique value
	RemoveLocator                       // has it found by that value no more
	Park                                // sets the (item, rule) aside
	Unpark                              // clears what was set aside
)

// Action is one write of a move's transaction that no other move may share.
type Action struct {
	Kind   ActionKind
	Item   string         // what it writes; unique within a transaction
	Key    effects.Key    // the effect that asks for it
	Target change.Key     // the item that is written or parked
	Effect effects.Effect // asked for, or for a locator taken back
	Again  bool           // of Park: it is parked already
	Bytes  int            // about what it carries

	*Binding        // the rule, of a family's action
	FamilyData any  // what the family makes of it
	Reads      bool // the family reads before it knows its writes, at most FamilyWritesMax
	Looks      bool // it depends on what stands at the target: the move sees that if it is not as expected
	Writes     bool // it changes the target
}

// FamilyWritesMax is the most writes of an action before which a family reads.
const FamilyWritesMax = 3

// ParkAction sets an item aside under the rule or locator of a key.
func ParkAction(k effects.Key, item change.Key, f effects.Effect) Action {
	return Action{Kind: Park, Item: parkedItem(k, item), Key: k, Target: item, Effect: f}
}

// UnparkAction clears what is set aside of an item.
func UnparkAction(k effects.Key, item change.Key) Action {
	return Action{Kind: Unpark, Item: parkedItem(k, item), Key: k, Target: item}
}

func parkedItem(k effects.Key, item change.Key) string { return "parked/" + k.ID + "/" + item.String() }
