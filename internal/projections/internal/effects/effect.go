// Package effects holds what an item can cause under rules and locators: effects, the keys under which an item has them, and the texts by
// which its ledger entry remembers them. It does no I/O, and imports stamp, rules, change and decimal. Package plan works out which
// effects an item has.
package effects

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/rules"
)

// Effect is what one item causes under one rule or locator. Its text is all that is compared and all that is needed to undo it.
type Effect struct {
	Kind         Kind
	Group        string           // what it is a part of: an aggregate, the items with a unique value, a target that sources ask for
	Amount       decimal.Decimal  // of a contribution
	Per          string           // the value under which a contribution counts, of a rule with `per`
	Member       *Member          // of a contribution to a group that shows some of its sources
	Parked       *rules.ItemError // the rule cannot read this item: no effect but to be parked
	FamilyEffect FamilyEffect     // of a family's own effect
}

// Member is what a contribution says of its source where a target shows some of the sources.
type Member struct {
	Order  string                  // where the source stands among the others; it sorts as the value does by which they are ordered
	Digest string                  // of what is shown of the source
	Shown  map[string]change.Value // that, by attribute; nil in a member that is read from the ledger
}

// MemberDigest digests what is shown of a member.
func MemberDigest(shown map[string]change.Value) string {
	return stamp.Digest([]change.Value{change.Map(shown)})
}

// memberMark begins the text of a contribution with a member: order, digest and group follow, with blanks between.
const memberMark = "<"

// parseMember reads the text of a contribution with a member.
func parseMember(text string) (Effect, error) {
	order, rest, _ := strings.Cut(strings.TrimPrefix(text, memberMark), " ")
	digest, group, ok := strings.Cut(rest, " ")
	if !ok || order == "" || digest == "" {
		return Effect{}, fmt.Errorf("the malformed member %q", text)
	}
	return Effect{Kind: Contribution, Group: group, Member: &Member{Order: order, Digest: digest}}, nil
}

// Kind is the form of an effect.
type Kind byte

// The forms of effects; 0 is none. The texts of all but a family's own begin with the form.
const (
	Contribution Kind = '+' // to an aggregate
	Located      Kind = '@' // found by a unique value
	Parked       Kind = '!' // not readable by the rule
	OfFamily     Kind = '=' // only the family of its rule reads it
)

// FamilyEffect is the part of an effect that only the family of its rule reads.
type FamilyEffect interface {
	// String is the effect as the ledger entry holds it. It begins with a mark: neither a blank nor a character of rule ids.
	String() string
	// Same reports whether another effect leaves nothing to write. One that was read from the ledger may tell less of itself.
	Same(FamilyEffect) bool
	// Wanted is the effect as an item asks for it, whatever became of it in force.
	Wanted() FamilyEffect
}

// unread is a FamilyEffect of a rule about which nothing but its name is known.
type unread string

func (u unread) String() string { return string(u) }

// Same implements FamilyEffect.
func (u unread) Same(other FamilyEffect) bool { return u.String() == other.String() }

// Wanted implements FamilyEffect.
func (u unread) Wanted() FamilyEffect { return u }

// perMark begins the text of a contribution that counts under a value. The value stands before a blank, the contribution behind it.
const perMark = ":"

var (
	escapePer   = strings.NewReplacer("%", "%25", " ", "%20")
	unescapePer = strings.NewReplacer("%25", "%", "%20", " ")
)

// parsePer reads the text of a contribution that counts under a value.
func parsePer(text string) (Effect, error) {
	value, contribution, _ := strings.Cut(strings.TrimPrefix(text, perMark), " ")
	f, err := Parse(contribution)
	if f.Per = unescapePer.Replace(value); err == nil && (f.Kind != Contribution || f.String() != text) {
		err = fmt.Errorf("the malformed effect %q", text)
	}
	return f, err
}

// contributesOne begins the text of a contribution of 1, such as that of each source of a count.
const contributesOne = "*"

// String is the effect as the ledger entry holds it.
func (f Effect) String() string {
	switch f.Kind {
	case Contribution:
		if f.Member != nil {
			return memberMark + f.Member.Order + " " + f.Member.Digest + " " + f.Group
		}
		if f.Per != "" {
			return perMark + escapePer.Replace(f.Per) + " " + Effect{Kind: f.Kind, Group: f.Group, Amount: f.Amount}.String()
		}
		if amount := f.Amount.String(); amount != "1" {
			return "+" + amount + " " + f.Group
		}
		return contributesOne + f.Group
	case Located:
		return "@" + f.Group
	case Parked:
		return "!" + f.Parked.Code
	case OfFamily:
		return f.FamilyEffect.String()
	}
	return "" // no effect
}

// Same reports whether another effect leaves nothing to write.
func (f Effect) Same(g Effect) bool {
	if f.Kind == OfFamily && g.Kind == OfFamily {
		return f.FamilyEffect.Same(g.FamilyEffect)
	}
	return f.String() == g.String()
}

// Wanted is the effect as an item asks for it, whatever became of it in force.
func (f Effect) Wanted() Effect {
	if f.Kind == OfFamily {
		f.FamilyEffect = f.FamilyEffect.Wanted()
	}
	return f
}

// Parse reads what String wrote, but for what only a family reads.
func Parse(text string) (Effect, error) {
	if text == "" {
		return Effect{}, errors.New("empty effect in a ledger entry")
	}
	kind, rest := Kind(text[0]), text[1:]
	switch {
	case text[:1] == perMark:
		return parsePer(text)
	case text[:1] == memberMark:
		return parseMember(text)
	case text[:1] == contributesOne:
		return Effect{Kind: Contribution, Amount: decimal.New(1), Group: rest}, nil
	case kind == Contribution:
		head, tail, _ := strings.Cut(rest, " ")
		amount, err := decimal.Parse(head)
		return Effect{Kind: kind, Amount: amount, Group: tail}, err
	case kind == Located:
		return Effect{Kind: kind, Group: rest}, nil
	case kind == Parked:
		return Effect{Kind: kind, Parked: &rules.ItemError{Code: rest}}, nil
	case rest != "":
		return Effect{Kind: OfFamily, FamilyEffect: unread(text)}, nil
	}
	return Effect{}, fmt.Errorf("the unknown effect %q", text)
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

// The codes under which the engine parks an item for other reasons than that a rule cannot read it.
const (
	CodeWriteRejected  = "write.rejected"  // DynamoDB refuses the write for good
	CodeHealContested  = "heal.contested"  // another program keeps overwriting what the rule writes
	CodeNumberOverflow = "number.overflow" // a sum fits into no DynamoDB number
)

// Overflow says that a contribution or a sum fits into no number.
func Overflow(what string) *rules.ItemError {
	return &rules.ItemError{Code: CodeNumberOverflow, Reason: what + " does not fit into a DynamoDB number (38 digits)"}
}
