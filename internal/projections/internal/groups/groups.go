// Package groups is what the kinds of rules share whose rules show on a target what several sources make together: a group. Its
// accumulators count the sources and the operations on it; the target's attributes are its display. The package adds the accumulators up,
// writes displays under their stamps, makes and deletes derived items, and finds displays that another program wrote. What a
// display shows is for the Form of the rule to say. It knows no kind. It keeps promises 1 to 4, 8 and 10 for displays.
package groups

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/internal/tally"
)

// Form is the Form of a rule that shows on a target what the target's group adds up to.
type Form interface {
	rules.Form
	// Values are what a target shows of a total: one for each attribute that the rule writes, absent for nothing.
	Values(t Total) []change.Value
}

// Reader is a Form whose targets show more than the accumulators tell.
type Reader interface {
	// Read reads the rest into the total of a group, after its accumulators: the total's operations are then no later than what is shown. A
	// rule without accumulators has all of its groups read, any other one those in which something was counted.
	Read(ctx context.Context, rd *table.Reader, g plan.GroupRef, t *Total) error
}

// read reads what a target shows beside the accumulators, if it shows anything.
func (r run) read(ctx context.Context, g plan.GroupRef, t *Total) error {
	reader, ok := g.Rule.Form.(Reader)
	if !ok || t.Operations == 0 && g.Suffixes > 0 {
		return nil
	}
	return reader.Read(ctx, r.Tables.Reader, g, t)
}

// Tidier is a Form whose rows and parked records of a group need more than a display.
type Tidier interface {
	// Tidy removes what the rows of a group hold in vain. It reports whether it has changed rows.
	Tidy(ctx context.Context, h *host.Host, g plan.GroupRef, t Total) (bool, error)
	// List brings the parked record of a group in line with its rows as they were read.
	List(ctx context.Context, h *host.Host, g plan.GroupRef, t Total) error
	// IsCrowded reports whether a group is among the parked records, by what it adds up to.
	IsCrowded(a tally.Amount) bool
}

// FormOf is the Form of a rule of groups; nil of any other rule.
func FormOf(r *rules.Rule) Form {
	f, _ := r.Form.(Form)
	return f
}

// Family is what the families of kinds that show groups have in common. It holds no state.
type Family struct{}

var _ plan.Family = Family{}

// showsGroups tells the kinds whose groups this package shows.
func (Family) showsGroups() {}

// ShowsGroups reports whether a kind is of a family that this package shows groups for. Groups of all of them are best shown together: an
// item that displays several is written once.
func ShowsGroups(kind any) bool {
	_, ok := kind.(interface{ showsGroups() })
	return ok
}

// Rows implements host.Keeper.
func (Family) Rows() []string { return []string{state.AccumulatorRows} }

// Tell implements plan.Family: an image says nothing more than its effects.
func (Family) Tell(*plan.Late, *plan.Binding, *rules.Match, change.Image) {}

// showsNothing reports whether a target shows nothing of a group in which nothing was ever counted.
func showsNothing(r *rules.Rule) bool {
	return IsNothing(FormOf(r).Values(Total{}))
}

// IsNothing reports whether all values are absent.
func IsNothing(values []change.Value) bool {
	return !slices.ContainsFunc(values, func(v change.Value) bool { return v.Kind() != change.KindAbsent })
}

// nothing are the values of a target that shows none of a rule's attributes.
func nothing(r *rules.Rule) []change.Value { return make([]change.Value, len(r.Writes)) }

// displays reports whether an item holds anything where a rule shows its group.
func displays(b *plan.Binding, img change.Image) bool { return !IsNothing(plan.ValuesOf(b.Rule, img)) }

// contextOf is the context of a rule's stamp on an item that displays a group.
func contextOf(b *plan.Binding, incarnation string, key change.Key, group string) string {
	return stamp.Context(incarnation, key, Scope(b, group))
}

// Scope is the part of a stamp's context that names the group. Of a rule that makes items it names none: the item's key says it.
func Scope(b *plan.Binding, group string) string {
	if b.Rule.Derives() {
		return ""
	}
	return group
}

// IsWhole reports whether an item is one that rules made, and of the entity.
func IsWhole(entity *rules.Entity, key change.Key, img change.Image) bool {
	return plan.IsMade(key, img) && entity.Is(img)
}

// Needs are what a rule of groups calls on the user's table beside what all rules call.
func Needs(r *rules.Rule) []rules.Need {
	if !r.Derives() {
		return nil
	}
	return []rules.Need{
		{Action: "dynamodb:PutItem", Why: "PutItem makes derived items."},
		{Action: "dynamodb:DeleteItem", Why: "DeleteItem takes derived items away to which nothing contributes."},
	}
}

// ItemCost says to people what an item costs that a rule makes with others: one transaction writes it, and checks all of its rows.
func ItemCost(r *rules.Rule) string {
	rows := 0
	for _, maker := range r.Target.Makers {
		rows += maker.Suffixes()
	}
	return fmt.Sprintf(", %d WU per %s that comes or goes", 2+2*rows, r.Target.Name)
}

// Replays says to people what a replay does for a rule of groups.
func Replays(r *rules.Rule) string {
	shown := strings.Join(r.Writes, ", ")
	if r.Derives() {
		return fmt.Sprintf("reads every %s, then makes %s items that show %s, and deletes every other item that stands at such a key",
			r.Source.Name, r.Target.Name, shown)
	}
	return fmt.Sprintf("reads every %s, then shows %s on every %s; the present values stay until then",
		r.Source.Name, shown, r.Target.Name)
}
