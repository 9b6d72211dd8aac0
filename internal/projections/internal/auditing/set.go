package auditing

import (
	"context"
	"slices"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/effects"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// A set is a locator, or the claims of a mirror item: rows of one form.
var sets = &Procedure{
	Rows: Rows{setRows, memberRows}, Items: Items{memberItems}, Judge: judgeSet, Parkings: setParkings,
	Mend: mendSet, Stage: drift.StageSets,
}

// targetOf is the target of a suspect set.
func targetOf(sus drift.Suspect) audit.ContestedTarget {
	return audit.ContestedTarget{ID: sus.Rule, Target: sus.Item, Value: sus.Group}
}

func setKey(sus drift.Suspect) table.Key { return state.SetKey(targetOf(sus)) }

// listingKey is where a contested target is listed.
func listingKey(sus drift.Suspect) table.Key { return state.ParkedKey(targetOf(sus).RowID()) }

func setRows(_ *Evidence, sus drift.Suspect) []table.Key {
	return []table.Key{setKey(sus), listingKey(sus)}
}

// setAttribute holds the members of a set.
func setAttribute(sus drift.Suspect) string {
	if sus.Kind == drift.Claims {
		return "sources"
	}
	return "items"
}

// membersIn are those that the row of a set names.
func (e *Evidence) membersIn(sus drift.Suspect) []string {
	r := e.Rows[setKey(sus)]
	if audit.TornSet(attributes.ItemFromTable(r)) {
		return nil
	}
	return table.TextsOf(r[setAttribute(sus)])
}

// membersOf are those that belong, or may belong, to a set.
func (e *Evidence) membersOf(sus drift.Suspect) []string {
	members := append(slices.Clone(sus.Members), e.membersIn(sus)...)
	slices.Sort(members)
	return slices.Compact(members)
}

func memberItems(e *Evidence, sus drift.Suspect) (keys []change.Key) {
	for _, member := range e.membersOf(sus) {
		keys = append(keys, change.ParseKey(member))
	}
	return keys
}

func memberRows(e *Evidence, sus drift.Suspect) (keys []table.Key) {
	for _, item := range memberItems(e, sus) {
		keys = append(keys, state.EntryKey(item))
	}
	return keys
}

// judgeSet compares a locator or the claims with what the items ask for. What
// to put there goes by the ledger, as the engine has it; the two differ where
// an entry is wrong, too.
func judgeSet(e *Evidence, sus drift.Suspect) drift.Reading {
	found, r := e.membersIn(sus), e.Rows[setKey(sus)]
	reading := drift.Reading{
		Suspect: sus, Concerns: []string{audit.LocatorToken(sus.Rule, sus.Group)},
		Fix: drift.Fix{Way: drift.MendFirst},
	}
	if sus.Kind == drift.Claims {
		reading.Concerns = []string{audit.MadeToken(sus.Item), drift.KeyToken(sus.Item)}
		reading.Fix.Keys = []change.Key{sus.Item}
	}
	listing := attributes.ItemFromTable(e.Rows[listingKey(sus)])
	states, claimants := []change.Value{RowValue(r), itemValue(listing)}, 0
	for _, member := range e.membersOf(sus) {
		key := change.ParseKey(member)
		k, wanted := e.Asked(key).In(sus.Rule, groupOf(sus))
		held := e.heldIn(sus, key)
		states = append(states, change.String(held.String()), change.String(wanted.String()))
		reading.Concerns = append(reading.Concerns, drift.KeyToken(key))
		if held.Kind != 0 {
			reading.Fix.Should = append(reading.Fix.Should, member)
		}
		belongs := wanted.Kind != 0
		if belongs && !e.isRefused(sus.Rule, EffectsIn(e.Rows[state.EntryKey(key)])[k]) {
			claimants++
		}
		if sus.Kind == drift.Locator {
			reading.Fix.Keys = append(reading.Fix.Keys, key)
		}
		if is := slices.Contains(found, member); is != belongs {
			reading.Findings = append(reading.Findings, e.setFinding(sus, member, belongs))
		}
	}
	reading.State = change.Digest(states...)
	reading.Findings = append(reading.Findings, audit.CompareListing(drift.Finding{Rule: e.NameOf(sus.Rule)}, targetOf(sus), claimants,
		listing)...)
	if row := attributes.ItemFromTable(r); audit.TornSet(row) {
		reading.Torn = true
		f := e.Finding(sus, drift.Wrong)
		f.Expected, f.Found = "a count of changes", audit.Text(row["changes"])
		reading.Findings = append(reading.Findings, f)
	}
	return reading
}

// groupOf is the group of the effects that ask for being in a set.
func groupOf(sus drift.Suspect) string {
	if sus.Kind == drift.Claims {
		return sus.Item.String()
	}
	return sus.Group
}

// heldIn is the effect in force by which an item is in a set; of no kind if it has none.
func (e *Evidence) heldIn(sus drift.Suspect, item change.Key) effects.Effect {
	held := effects.ByKey{}
	for k, text := range EffectsIn(e.Rows[state.EntryKey(item)]) {
		if f, err := e.ParseEffect(k, text); err == nil && f.Kind != effects.Contribution {
			held[k] = f
		}
	}
	_, f := held.In(sus.Rule, groupOf(sus))
	return f
}

func (e *Evidence) setFinding(sus drift.Suspect, member string, belongs bool) drift.Finding {
	f := e.Finding(sus, drift.Surplus)
	f.Found = member
	if sus.Kind == drift.Locator {
		f.Item = change.ParseKey(member)
	}
	if belongs {
		f.What, f.Expected, f.Found = drift.Missing, member, ""
	}
	return f
}

// setParkings are where a member that was found to differ is parked.
func setParkings(_ *Evidence, r *drift.Reading, f drift.Finding) []table.Key {
	if f.Kind == drift.Parked {
		return nil // the row of a contested target
	}
	return []table.Key{state.ParkedItemKey(r.Suspect.Rule, change.ParseKey(f.Expected+f.Found))}
}

// setChecksMax is how many members' entries a mending transaction checks: one
// action is the set itself, another the row of a contested target. Of more members
// the entries are only read.
const setChecksMax = plan.TransactActionsMax - 2

// mendSet puts in a locator, or in the claims of a mirror item, those whose
// ledger entries say that they belong there, provided that neither has changed
// since it was read. It takes the target off the list of contested ones: rederiving
// what goes by the set lists it anew if it is contested.
func mendSet(ctx context.Context, e *Evidence, r drift.Reading) (bool, error) {
	key := setKey(r.Suspect)
	ahead, err := e.setShownAhead(ctx, r)
	if err != nil {
		return false, err
	}
	c := table.NewExpression()
	condition, changes := table.Whole(c.SameAs(e.Rows[key], "changes")), state.CountOf(e.Rows[key]["changes"])
	update := c.Format("SET %n = %v", "changes", table.Number(max(changes+1, ahead)))
	if len(r.Fix.Should) > 0 {
		update += c.Format(", %n = %v REMOVE %n", setAttribute(r.Suspect), &ddb.AttributeValueMemberSS{Value: r.Fix.Should}, "listed")
	} else {
		update += " REMOVE " + c.List([]string{setAttribute(r.Suspect), "listed"})
	}
	items := []ddb.TransactWriteItem{e.Tables.UpdatePart(key, update, condition, c),
		e.Tables.DeletePart(listingKey(r.Suspect), "", table.NewExpression())}
	members := memberItems(e, r.Suspect)
	for _, member := range members[:min(setChecksMax, len(members))] {
		ent, err := state.ReadEntry(e.Planner, e.Rows[state.EntryKey(member)])
		if err != nil {
			return false, err
		}
		items = append(items, e.CheckEntry(member, ent))
	}
	return e.Transact(ctx, "mending "+key.Partition, r.Suspect.Rule, items)
}

// setShownAhead is a count of changes with which no stamp is as high as what is shown by it next.
func (t *Table) setShownAhead(ctx context.Context, r drift.Reading) (int64, error) {
	items, err := t.Tables.ReadItems(ctx, "reading what goes by a set", r.Fix.Keys)
	if err != nil {
		return 0, err
	}
	highest := int64(0)
	note := func(b *plan.Binding, key change.Key, within string) {
		if shown := t.CountShown(b, key, within, items[key]); shown <= audit.RaisedMax {
			highest = max(highest, shown)
		}
	}
	if r.Suspect.Kind == drift.Claims {
		note(t.ByID(r.Suspect.Rule), r.Suspect.Item, "")
		return highest + 1, nil
	}
	locator, _ := effects.LocatorIn(r.Suspect.Rule)
	for _, rule := range t.Set.Rules {
		if !rule.ByUnique || !rule.Displays() || t.Of(rule).Locator != locator {
			continue
		}
		for key := range items { // the operations come on top of it
			note(t.Of(rule), key, r.Suspect.Group)
		}
	}
	return highest + 1, nil
}
