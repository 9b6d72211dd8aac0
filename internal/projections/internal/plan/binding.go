package plan

import (
	"cmp"
	"slices"
	"sync/atomic"

	"github.com/dynamill/dynamill/internal/lanes"
	"github.com/dynamill/dynamill/internal/projections/internal/effects"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/rules"
)

// Binding is a rule as it stands in one table's registry.
type Binding struct {
	Rule     *rules.Rule
	ID       string      // the registry's name of the rule; stays when the rule is renamed
	Stamp    string      // the attribute that holds the rule's stamp on targets
	Locator  string      // count, sum that find their target by a unique value: what names its locators
	Epoch    int         // the rules epoch in which the rule was registered
	Suffixes int         // most write suffixes that the rule ever had: what a roll-up reads
	Live     atomic.Bool // seeded: aggregates may be shown (promise 10)

	// Of a hot rule: the newest generation of its rows, and the one that targets display; 0: none.
	Generation, Counted atomic.Int64
	Incarnation         string                              // of the state table that holds these rows: their keys name it
	Located             atomic.Bool                         // the locators of its targets are made, if it needs any
	Stream              string                              // the newest one's: its ARN; "" if it had not begun when the rule was bound
	CountExtents        atomic.Pointer[[]lanes.CountExtent] // how far the counts of the newest generation have read

	Family Family // of the rule's kind

	Former  bool        // not in force any more: changed, or removed from the file
	Retired atomic.Bool // former rule whose replacements are all shown: what it wrote is taken back
	Cleaned atomic.Bool // retired rule whose writes a whole pass took back: only a stalled worker can have written since
}

// CountExtentsOf are the CountExtents.
func (b *Binding) CountExtentsOf() []lanes.CountExtent {
	if extents := b.CountExtents.Load(); extents != nil {
		return *extents
	}
	return nil
}

// Claimed reports whether several sources may ask for one item that the rule makes: its claims are kept.
func (b *Binding) Claimed() bool {
	return b.Rule.MakesItems() && !b.Rule.Derives() && !b.Rule.Injective
}

// Grouped reports whether several sources make one thing together under the rule: a sum, an item that several may ask for, or what the
// children of a parent get that is known by a unique value.
func (b *Binding) Grouped() bool {
	return b.Rule.Displays() || b.Claimed() || b.Rule.HasParent() && b.Rule.ByUnique
}

// Bindings are the rules of a set, bound.
type Bindings struct {
	Set      *rules.Set
	byRule   map[*rules.Rule]*Binding
	byID     map[string]*Binding
	InForce  []*Binding        // in the file's order
	locators map[string]string // by entity: what names its locators
	formers  []*Binding
}

// Of is the binding of a rule of the set.
func (bs *Bindings) Of(r *rules.Rule) *Binding { return bs.byRule[r] }

// ByID is the binding under an id of the registry; nil if no rule in force has it.
func (bs *Bindings) ByID(id string) *Binding { return bs.byID[id] }

// AnyByID is the binding of a rule, in force or not; nil if there is none of this id.
func (bs *Bindings) AnyByID(id string) *Binding { return cmp.Or(bs.ByID(id), bs.Former(id)) }

// NameOf is the name of a rule, in force or not, by its id, or of a locator; the id itself if no rule has it.
func (bs *Bindings) NameOf(id string) string {
	if b := bs.AnyByID(id); b != nil {
		return b.Rule.Name
	}
	if locator, ok := effects.LocatorIn(id); ok {
		return "unique " + locator
	}
	return id
}

// Former is the binding of a rule that is not in force any more; nil if there is none of this id.
func (bs *Bindings) Former(id string) *Binding {
	for _, b := range bs.formers {
		if b.ID == id {
			return b
		}
	}
	return nil
}

// Formers are all rules that are not in force any more.
func (bs *Bindings) Formers() []*Binding { return bs.formers }

// AddFormer adds rules that are not in force any more.
func (bs *Bindings) AddFormer(formers ...*Binding) { bs.formers = append(bs.formers, formers...) }

// NewFormer binds a rule that is not in force any more.
func NewFormer(r *rules.Rule, id string) *Binding {
	return &Binding{Rule: r, ID: id, Stamp: stamp.Prefix + id, Family: familyOf(r), Former: true}
}

// familyOf is the family of a rule's kind; nil if nothing but the rule's name is known.
func familyOf(r *rules.Rule) Family {
	family, _ := r.Kind.(Family)
	return family
}

// LocatorOf is what names the locators of an entity.
func (bs *Bindings) LocatorOf(e *rules.Entity) string { return cmp.Or(bs.locators[e.Name], e.Name) }

// Locate sets another name for an entity's locators: those of former rules are not maintained, and never used again.
func (bs *Bindings) Locate(e *rules.Entity, locator string) {
	bs.locators[e.Name] = locator
	for _, b := range bs.byID {
		if b.Rule.ByUnique && b.Rule.Pointed() == e {
			b.Locator = locator
		}
	}
}

// Locates reports whether rules in force find items by the locators of this name.
func (bs *Bindings) Locates(locator string) bool {
	return slices.ContainsFunc(bs.Set.Entities, func(e *rules.Entity) bool { return e.Located && bs.LocatorOf(e) == locator })
}

// RetiredID reports whether a rule's or a locator's id is of a retired one. An unknown id may be of newer rules.
func (bs *Bindings) RetiredID(id string) bool {
	if locator, ok := effects.LocatorIn(id); ok {
		return bs.RetiredLocator(locator)
	}
	b := bs.Former(id)
	return b != nil && b.Retired.Load()
}

// RetiredLocator reports whether only retired rules found items by a locator.
func (bs *Bindings) RetiredLocator(locator string) bool {
	retired := false
	for _, b := range bs.Formers() {
		if b.Locator == locator {
			retired = true
			if !b.Retired.Load() {
				return false
			}
		}
	}
	return retired && !bs.Locates(locator)
}

// Bind binds the rules of a set, whose kinds are each of a Family, to the ids that the registry knows them by.
func Bind(set *rules.Set, ids map[*rules.Rule]string) *Bindings {
	bs := &Bindings{Set: set, byRule: map[*rules.Rule]*Binding{}, byID: map[string]*Binding{}, locators: map[string]string{}}
	for _, r := range set.Rules {
		b := &Binding{Rule: r, ID: ids[r], Stamp: stamp.Prefix + ids[r], Suffixes: r.Suffixes(), Family: familyOf(r)}
		if r.ByUnique {
			b.Locator = r.Pointed().Name
		}
		bs.byRule[r], bs.byID[b.ID] = b, b
		bs.InForce = append(bs.InForce, b)
	}
	return bs
}
