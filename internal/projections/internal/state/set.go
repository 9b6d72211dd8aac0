package state

import (
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/effects"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// Set are the items that claim one target: the claims of a mirror item, or a locator.
type Set struct {
	Sources []string // Key.String() of each, sorted
	Changes int64    // raised with every change; 0 if there is no item
	Expired string   // of claims: digest of the content that DynamoDB's time to live deleted
	Listed  bool     // the target is listed as contested
}

// Winner is the source that comes first; "" if there is none.
func (cs Set) Winner() string {
	if len(cs.Sources) == 0 {
		return ""
	}
	return cs.Sources[0]
}

// With is the set after a source claims the target, or drops its claim.
func (cs Set) With(source string, claim bool) Set {
	sources := slices.DeleteFunc(slices.Clone(cs.Sources), func(s string) bool { return s == source })
	if claim {
		sources = append(sources, source)
		slices.Sort(sources)
	}
	return Set{Sources: sources, Changes: cs.Changes + 1}
}

// SetIs is the condition that a set is as it was read.
func SetIs(c *table.Expression, found Set) string {
	if found.Changes == 0 {
		return c.Format("attribute_not_exists(%n)", "changes")
	}
	return c.Format("%n = %v", "changes", table.Number(found.Changes))
}

// SetKey is the row that holds the claimants of a contested target.
func SetKey(t audit.ContestedTarget) table.Key {
	if locator, ok := effects.LocatorIn(t.ID); ok {
		return LocatorKey(locator, t.Value)
	}
	return claimsKeyOf(t.ID, t.Target)
}

// ReadSet reads the claims of a mirror item, or a locator.
func ReadSet(r table.Row, locator bool) Set {
	attribute := "sources"
	if locator {
		attribute = "items"
	}
	return Set{
		Sources: slices.Sorted(slices.Values(table.TextsOf(r[attribute]))), Changes: CountOf(r["changes"]), Expired: table.TextOf(r["expired"]),
		Listed: attributes.FromTable(r["listed"]).Bool(),
	}
}

// ClaimsRows begins the partition keys of claims.
const ClaimsRows = "claims"

// ClaimsKey is the key of the claims of a mirror item.
func ClaimsKey(b *plan.Binding, target change.Key) table.Key { return claimsKeyOf(b.ID, target) }

func claimsKeyOf(ruleID string, target change.Key) table.Key {
	return table.NewKey(ClaimsRows+"/"+ruleID+"/"+target.String(), "claims")
}

// LocatorKey is the key of the items that have one unique value.
func LocatorKey(locator, value string) table.Key {
	return table.NewKey("locator/"+locator+"/"+escape(value), "locator")
}
