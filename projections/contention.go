package projections

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/projections/internal/audit"
	"github.com/dynamill/dynamill/projections/internal/plan"
	"github.com/dynamill/dynamill/projections/internal/state"
	"github.com/dynamill/dynamill/projections/internal/table"
)

// A target is contested while two or more items claim it: sources of one mirror item,
// or items with one unique value. A contested target has a row among the parked
// records, and its set (the claims, or the locator) has the attribute `listed`.
//
// Every change of a set is followed by a derivation or a roll-up, which reads the set
// anyway. That reader compares the number of claimants with `listed`. If they differ, it
// writes row and attribute in one transaction, on condition that the set did not change
// since it was read. While no rule of a locator is live, the worker reads it for this alone.
// If the set did change, the worker that changed it reads it again
// later. So an uncontested target costs nothing, and no late worker leaves a stale row
// (docs/adr/0017-contention-is-listed.md).

// contestedSet is the set of items that claim one target, as it was read.
type contestedSet struct {
	audit.ContestedTarget
	set       table.Key // of the claims or the locator
	claimants []string  // Key.String() of each, sorted: the first one wins
	changes   int64     // 0 if there is no row
	listed    bool      // the row of the target stands
}

// claimed returns the claims of a mirror item as a set.
func (cs claimSet) claimed(b *plan.Binding, target change.Key) contestedSet {
	return contestedSet{
		ContestedTarget: audit.ContestedTarget{ID: b.ID, Target: target}, set: state.ClaimsKey(b, target),
		claimants: cs.Sources, changes: cs.Changes, listed: cs.Listed,
	}
}

// settleContention lists a target that is contested, and takes a target that no longer
// is off the list. It logs a contested target at most once an hour.
func (e *Engine) settleContention(ctx context.Context, cs contestedSet) error {
	contested := len(cs.claimants) > 1
	if contested {
		e.logContention(ctx, cs)
	}
	if contested == cs.listed {
		return nil
	}
	items := []ddb.TransactWriteItem{e.listingWrite(cs, contested), e.listedWrite(cs, contested)}
	err := e.tables.Transact(ctx, "listing the claimants of "+cs.Text(), []string{cs.ID}, items)
	if contested && table.Refusal(err) != "" { // the set is full: its row has no room for one attribute more
		items[1] = e.unmovedSet(cs)
		err = e.tables.Transact(ctx, "listing the claimants of "+cs.Text(), []string{cs.ID}, items)
	}
	if canceled := new(ddb.TransactionCanceledException); errors.As(err, &canceled) && table.Refusal(err) == "" {
		return nil // the set changed since: the worker that changed it settles this
	}
	if err == nil && contested {
		e.host.Counters.Parked.Add(1)
	}
	return err
}

// listingWrite puts the row of a contested target, or deletes it.
func (e *Engine) listingWrite(cs contestedSet, contested bool) ddb.TransactWriteItem {
	if !contested {
		return e.tables.DeletePart(state.ParkedKey(cs.RowID()), "", table.NewExpression())
	}
	r := state.Parked{
		ID: cs.RowID(), Rule: cs.ID, Item: cs.Target, Value: cs.Value, Code: cs.Code(), At: e.host.Now(), Parking: state.NewID(),
		Reason: "several items claim it, and the one with the smallest key wins",
	}.Row()
	return e.tables.PutPart(r, "", table.NewExpression())
}

// listedWrite notes in a set that its target is listed, or that it is not, provided
// that the set did not change since it was read.
func (e *Engine) listedWrite(cs contestedSet, contested bool) ddb.TransactWriteItem {
	c := table.NewExpression()
	update := "REMOVE " + c.Name("listed")
	if contested {
		update = c.Format("SET %n = %v", "listed", &ddb.AttributeValueMemberBOOL{Value: true})
	}
	condition := state.SetIs(c, state.Set{Changes: cs.changes})
	return e.tables.UpdatePart(cs.set, update, condition, c)
}

// unmovedSet checks that a set did not change since it was read.
func (e *Engine) unmovedSet(cs contestedSet) ddb.TransactWriteItem {
	c := table.NewExpression()
	condition := state.SetIs(c, state.Set{Changes: cs.changes})
	return e.tables.CheckPart(cs.set, condition, c)
}

// settleLocator settles the contention of the locator by which an aggregate finds its target.
func (e *Engine) settleLocator(ctx context.Context, g plan.GroupRef, t total) error {
	return e.settleContention(ctx, contestedSet{
		ContestedTarget: audit.ContestedTarget{ID: plan.LocatorID(g.Locator), Value: g.Group}, set: state.LocatorKey(g.Locator, g.Group),
		claimants: t.locator.Sources, changes: t.locator.Changes, listed: t.locator.Listed,
	})
}

// settleLocators settles the contention of locators whose rules are not live, so that no
// roll-up reads them. It returns the errors of those that failed.
func (e *Engine) settleLocators(ctx context.Context, groups []plan.GroupRef) map[plan.GroupRef]error {
	failed := map[plan.GroupRef]error{}
	keys := make([]table.Key, len(groups))
	for i, g := range groups {
		keys[i] = state.LocatorKey(g.Locator, g.Group)
	}
	rows, err := e.tables.ReadState(ctx, "reading locators", keys)
	first := firstOfLocators(groups)
	for i, g := range groups {
		if err == nil && first[i] {
			if err := e.settleLocator(ctx, g, total{locator: state.ReadSet(rows[keys[i]], true)}); err != nil {
				failed[g] = err
			}
		} else if err != nil {
			failed[g] = err
		}
	}
	return failed
}

// firstOfLocators tells, of aggregates that find their targets by locators, which is the
// first of each locator. Only that one settles the locator's contention.
func firstOfLocators(groups []plan.GroupRef) []bool {
	seen := map[table.Key]bool{}
	first := make([]bool, len(groups))
	for i, g := range groups {
		if g.Rule.ByUnique {
			key := state.LocatorKey(g.Locator, g.Group)
			first[i], seen[key] = !seen[key], true
		}
	}
	return first
}

// claimantSetsMax is how many sets of claimants are read at once: one may have 400 KB.
const claimantSetsMax = 100

// readClaimants reads the items that claim the contested targets among parked records.
func (rd *ruleReader) readClaimants(ctx context.Context, page []Parked) error {
	for part := range slices.Chunk(page, claimantSetsMax) {
		if err := rd.readClaimantsOf(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

func (rd *ruleReader) readClaimantsOf(ctx context.Context, page []Parked) error {
	var keys []table.Key
	for i := range page {
		if t := page[i].contested; t != nil {
			keys = append(keys, state.SetKey(*t))
		}
	}
	rows, err := rd.reader.ReadState(ctx, "reading the claimants of contested targets", keys)
	if err != nil {
		return err
	}
	for i := range page {
		t := page[i].contested
		if t == nil {
			continue
		}
		set := state.ReadSet(rows[state.SetKey(*t)], t.Value != "")
		for _, text := range set.Sources {
			page[i].Claimants = append(page[i].Claimants, change.ParseKey(text))
		}
		if t.Value != "" && len(page[i].Claimants) > 0 {
			page[i].Key = page[i].Claimants[0] // to rederive it settles the contention
		}
		page[i].Reason = contentionReason(*t, set.Sources)
	}
	return nil
}

// relist deletes the row of a listed target if the target is no longer contested.
func (e *Engine) relist(ctx context.Context, t audit.ContestedTarget) error {
	key := state.SetKey(t)
	rows, err := e.tables.ReadState(ctx, "reading the claimants of "+t.Text(), []table.Key{key})
	if err != nil || audit.TornSet(attributes.ItemFromTable(rows[key])) {
		return err
	}
	found := state.ReadSet(rows[key], t.Value != "")
	if len(found.Sources) > 1 {
		return nil
	}
	cs := contestedSet{ContestedTarget: t, set: key, claimants: found.Sources, changes: found.Changes, listed: true}
	if rows[key] == nil {
		return e.unpark(ctx, t.RowID(), "")
	}
	return e.settleContention(ctx, cs)
}

// claimantsShown is how many claimants a line names.
const claimantsShown = 3

// claimantsText names a few claimants, and says how many more there are.
func claimantsText(claimants []string) string {
	text := strings.Join(claimants[:min(len(claimants), claimantsShown)], ", ")
	if more := len(claimants) - claimantsShown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// contentionReason says which items claim a target, which of them wins, and what to do.
func contentionReason(t audit.ContestedTarget, claimants []string) string {
	if len(claimants) < 2 {
		return "fewer than two items claim this any more: the row goes away with the next change, or by a retry"
	}
	what := "ask for this mirror item"
	if t.Value != "" {
		what = fmt.Sprintf("have the unique value %q", t.Value)
	}
	return fmt.Sprintf("%d items %s: %s. %s wins, because its key is the smallest: %s",
		len(claimants), what, claimantsText(claimants), claimants[0], contentionRemedy(t))
}

func contentionRemedy(t audit.ContestedTarget) string {
	if t.Value != "" {
		return "give each of the others a value of its own, or delete them"
	}
	return "delete the others, or change them so that each asks for a mirror item of its own"
}
