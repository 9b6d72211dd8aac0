package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/rules"
)

// Effect is what one item causes under one rule or locator. Its text is all that is compared and all that is needed to undo it.
type Effect struct {
	Kind         EffectKind
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

// EffectKind is the form of an effect.
type EffectKind byte

// The forms of effects; 0 is none. The texts of all but a family's own begin with the form.
const (
	Contribution EffectKind = '+' // to an aggregate
	Located      EffectKind = '@' // found by a unique value
	Parked       EffectKind = '!' // not readable by the rule
	OfFamily     EffectKind = '=' // only the family of its rule reads it
)

// FamilyEffect is the part of an effect that only the family of its rule reads.
type FamilyEffect interface {
	// String is the effect as the ledger entry holds it. It begins with a mark: neither a blank nor a character of rule ids.
	String() string
	// Same reports whether another effect leaves nothing to write. One that was read from the ledger may tell less of itself.
	Same(FamilyEffect) bool
	// Wanted is the effect as an item asks for it, whatever became of it in force.
	Wanted() FamilyEffect
	// Adapt is the effect as a move that asks for it under k brings it into force, by all that the move knows.
	Adapt(mv *Move, k EffectKey) FamilyEffect
}

// unread is a FamilyEffect of a rule about which nothing but its name is known.
type unread string

func (u unread) String() string { return string(u) }

// Same implements FamilyEffect.
func (u unread) Same(other FamilyEffect) bool { return u.String() == other.String() }

// Wanted implements FamilyEffect.
func (u unread) Wanted() FamilyEffect { return u }

// Adapt implements FamilyEffect.
func (u unread) Adapt(*Move, EffectKey) FamilyEffect { return u }

// perMark begins the text of a contribution that counts under a value. The value stands before a blank, the contribution behind it.
const perMark = ":"

var (
	escapePer   = strings.NewReplacer("%", "%25", " ", "%20")
	unescapePer = strings.NewReplacer("%25", "%", "%20", " ")
)

// parsePer reads the text of a contribution that counts under a value.
func parsePer(text string) (Effect, error) {
	value, contribution, _ := strings.Cut(strings.TrimPrefix(text, perMark), " ")
	f, err := ParseEffect(contribution)
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

// same reports whether another effect leaves nothing to write.
func (f Effect) same(g Effect) bool {
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

// ParseEffect reads what String wrote, but for what only a family reads.
func ParseEffect(text string) (Effect, error) {
	if text == "" {
		return Effect{}, errors.New("empty effect in a ledger entry")
	}
	kind, rest := EffectKind(text[0]), text[1:]
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

// ParseEffect reads what String wrote of an effect under a key.
func (bs *Bindings) ParseEffect(k EffectKey, text string) (Effect, error) {
	f, err := ParseEffect(text)
	if b := bs.AnyByID(k.ID); b != nil && f.Kind == OfFamily {
		if owner, ok := b.Family.(Owner); ok {
			return owner.ReadEffect(text)
		}
	}
	return f, err
}

// EffectKey says under which rule or locator an item has an effect, and what for, if it can have several there.
type EffectKey struct{ ID, For string }

// String is the key in words. No id holds a blank.
func (k EffectKey) String() string {
	if k.For == "" {
		return k.ID
	}
	return k.ID + " " + k.For
}

// purposeBytesMax is how long a text may be that stands in an effect key as it is. So an entry with many effects stays small.
const purposeBytesMax = 64

// purposeDigestMark begins a purpose that stands for a longer text.
const purposeDigestMark = "~"

// Purpose is what an effect is for, of a text that tells it from the others under its rule: this text, or the digest of a long one.
func Purpose(text string) string {
	if len(text) <= purposeBytesMax && !strings.HasPrefix(text, purposeDigestMark) {
		return text
	}
	digest := sha256.Sum256([]byte(text))
	return purposeDigestMark + base64.RawURLEncoding.EncodeToString(digest[:16])
}

func (k EffectKey) compare(l EffectKey) int {
	return cmp.Or(cmp.Compare(k.ID, l.ID), cmp.Compare(k.For, l.For))
}

// Effects are those of one item.
type Effects map[EffectKey]Effect

const locatorPrefix = "@"

// LocatorID is the id under which effects hold a locator.
func LocatorID(locator string) string { return locatorPrefix + locator }

// LocatorIn is the locator (by default its entity's name) that an id names, if it names one.
func LocatorIn(id string) (string, bool) { return strings.CutPrefix(id, locatorPrefix) }

// Keys are those under which there is an effect, sorted.
func (fs Effects) Keys() []EffectKey { return slices.SortedFunc(maps.Keys(fs), EffectKey.compare) }

// In is the effect under an id that makes the item a part of a group; of no kind if there is none.
func (fs Effects) In(id, group string) (EffectKey, Effect) {
	for _, k := range fs.Keys() {
		if k.ID == id && fs[k].Group == group && fs[k].Kind != Parked {
			return k, fs[k]
		}
	}
	return EffectKey{ID: id}, Effect{}
}

// ParkedUnder is why the item is parked under an id, by the first effect that says so; of no kind if none does.
func (fs Effects) ParkedUnder(id string) (first Effect) {
	what := ""
	for k, f := range fs {
		if k.ID == id && f.Kind == Parked && (first.Kind == 0 || k.For < what) {
			first, what = f, k.For
		}
	}
	return first
}

func (fs Effects) equal(gs Effects) bool { return maps.EqualFunc(fs, gs, Effect.same) }

// without are the effects that the others do not have in the same way.
func (fs Effects) without(gs Effects) Effects {
	left := Effects{}
	for k, f := range fs {
		if !f.same(gs[k]) {
			left[k] = f
		}
	}
	return left
}

// withoutElements are the effects, but for those of elements that the others have in the same way: if one element of many
// comes or goes, what hangs on the others is not rolled up.
func (fs Effects) withoutElements(gs Effects) Effects {
	left := maps.Clone(fs)
	maps.DeleteFunc(left, func(k EffectKey, f Effect) bool { return k.For != "" && f.same(gs[k]) })
	return left
}

// textsUnder are what the effects under an id are parts of, with their values of `per` and amounts, or with their members.
func (fs Effects) textsUnder(id string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for k, f := range fs {
			text := f.Group + f.Per + f.Amount.String()
			if f.Member != nil {
				text = f.String()
			}
			if k.ID == id && !yield(text) {
				return
			}
		}
	}
}

// MatchOf says which entity an image is of: none if it is nil, or matches none.
func (bs *Bindings) MatchOf(key change.Key, img change.Image) (m rules.Match) {
	if img != nil {
		m, _ = bs.Set.Identify(key, img)
	}
	return m
}

// EffectsOf works out what an image causes. A nil image causes nothing.
func (bs *Bindings) EffectsOf(key change.Key, img change.Image) Effects {
	fs, m := Effects{}, bs.MatchOf(key, img)
	if m.Entity == nil {
		return fs
	}
	id := ""
	tell := func(what string, f Effect) { fs[EffectKey{id, Purpose(what)}] = f }
	for _, r := range m.Entity.Sources {
		b := bs.Of(r)
		id = b.ID
		err := b.Family.(Feeder).Effects(b, &m, img, tell)
		if err == nil && r.Each.Given() {
			err = r.CheckElements(fs.textsUnder(id))
		}
		if err != nil {
			maps.DeleteFunc(fs, func(k EffectKey, _ Effect) bool { return k.ID == id })
			tell("", ParkedBy(err))
		}
	}
	if m.Entity.Located {
		locator := EffectKey{ID: LocatorID(bs.LocatorOf(m.Entity))}
		if value, ok, err := m.Entity.UniqueValue(&m, img); err != nil {
			fs[locator] = ParkedBy(err)
		} else if ok {
			fs[locator] = Effect{Kind: Located, Group: value}
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

// The codes under which the engine parks an item for other reasons than that a rule cannot read it.
const (
	CodeWriteRejected  = "write.rejected"  // DynamoDB refuses the write for good
	CodeHealContested  = "heal.contested"  // another program keeps overwriting what the rule writes
	CodeNumberOverflow = "number.overflow" // a sum fits into no DynamoDB number
)

// Overflow is the effect of a contribution that fits into no number.
func Overflow(what string) Effect {
	return Effect{Kind: Parked, Parked: &rules.ItemError{
		Code: CodeNumberOverflow, Reason: what + " does not fit into a DynamoDB number (38 digits)"}}
}

// GroupRef names what several sources make together: an aggregate by its group, a claimed item by its key, or the children of a parent by
// its unique value. It is brought up to date after the moves that touch it.
type GroupRef struct {
	*Binding
	Group string
}

// String is the group as a due mark names it.
func (g GroupRef) String() string { return g.ID + " " + g.Group }

// groups are the aggregates and claimed items that effects touch. A locator touches all that find their target through it.
func (bs *Bindings) groups(fs Effects, add func(GroupRef)) {
	for _, k := range fs.Keys() {
		f := fs[k]
		if b := bs.ByID(k.ID); b != nil && (f.Kind == Contribution || f.Kind == OfFamily && b.Claimed()) {
			add(GroupRef{b, f.Group})
		}
		if locator, _ := LocatorIn(k.ID); f.Kind == Located {
			for _, b := range bs.InForce {
				if b.Rule.ByUnique && b.Locator == locator {
					add(GroupRef{b, f.Group})
				}
			}
		}
	}
}
