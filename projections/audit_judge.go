package projections

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/projections/internal/audit"
	"github.com/dynamill/dynamill/projections/internal/kinds/copies"
	"github.com/dynamill/dynamill/projections/internal/kinds/mirrors"
	"github.com/dynamill/dynamill/projections/internal/plan"
	"github.com/dynamill/dynamill/projections/internal/state"
	"github.com/dynamill/dynamill/projections/internal/table"
)

func (s *auditRead) judge(sus drift.Suspect) drift.Reading {
	switch sus.Kind {
	case drift.Entry:
		return s.judgeEntry(sus)
	case drift.Claims, drift.Locator:
		return s.judgeSet(sus)
	case drift.Mirror:
		return s.judgeMirror(sus)
	case drift.Copy:
		return s.judgeCopy(sus)
	case drift.Reference:
		return s.judgeReference(sus)
	case drift.Position, drift.Task:
		return s.judgeTorn(sus)
	case drift.Leftover:
		item := s.items[sus.Item]
		return drift.Reading{
			Suspect: sus, State: change.Digest(itemValue(item)), Concerns: []string{drift.KeyToken(sus.Item)},
			Findings: s.auditor.CompareLeftover(cmp.Or(s.planner.ByID(sus.Rule), s.planner.Former(sus.Rule)), sus.Item, table.Image(item)),
			Fix:      drift.Fix{Keys: []change.Key{sus.Item}},
		}
	case drift.Parked:
		return s.judgeParked(sus)
	}
	return drift.Reading{Suspect: sus}
}

func (s *auditRead) judgeEntry(sus drift.Suspect) drift.Reading {
	r := s.rows[state.EntryKey(sus.Item)]
	img := table.Image(s.items[sus.Item])
	want, have := plan.Effects{}, plan.Effects{}
	for id, f := range s.planner.EffectsOf(sus.Item, img) {
		if s.auditor.Judges(id) {
			want[id] = f
		}
	}
	for id, v := range effectsOfRow(r) {
		if f, err := plan.ParseEffect(v); err == nil && s.auditor.Judges(id) {
			have[id] = f.Asked()
		}
	}
	reading := drift.Reading{
		Suspect: sus, State: change.Digest(rowValue(r), digestable(want)), Concerns: []string{drift.KeyToken(sus.Item)},
		Fix: drift.Fix{Keys: []change.Key{sus.Item}, Adjust: s.auditor.Adjustments(want, have)},
	}
	for _, c := range audit.CompareEffects(want, have) {
		reading.Findings = append(reading.Findings, drift.Finding{
			Rule: s.ruleName(c.ID), Kind: drift.Entry, What: c.What, Item: sus.Item, Expected: c.Want, Found: c.Have,
			WriteUnits: entryUnits(c.ID, s.planner),
		})
	}
	if entry := attributes.ItemFromTable(r); s.auditor.TornEntry(entry) {
		reading.Torn = true
		reading.Findings = append(reading.Findings, drift.Finding{
			Kind: drift.Entry, What: drift.Wrong, Item: sus.Item, Expected: "an entry that can be read",
			Found: audit.Text(change.Map(map[string]change.Value{"at": entry["at"], "effects": entry["effects"]})), WriteUnits: table.TransactionUnitsMin,
		})
	}
	return reading
}

// What State digests is what a judgement goes by and no more: a suspect is not
// to seem to move because another attribute of its item, or of its parent, does.

func digestable(effects plan.Effects) change.Value {
	all := map[string]change.Value{}
	for id, f := range effects {
		all[id] = change.String(f.String())
	}
	return change.Map(all)
}

// ruleValue is what an item holds under a rule.
func ruleValue(b *plan.Binding, item change.Item) change.Value {
	if item == nil {
		return change.Value{}
	}
	return change.List([]change.Value{change.String(plan.DigestOf(b, item)), item.Lookup(b.Stamp)})
}

func effectsOfRow(r table.Row) map[string]string {
	all := map[string]string{}
	for id, v := range attributes.FromTable(r["effects"]).Map() {
		all[id] = v.Text()
	}
	return all
}

func rowValue(r table.Row) change.Value { return itemValue(attributes.ItemFromTable(r)) }

func itemValue(it change.Item) change.Value {
	if it == nil {
		return change.Value{}
	}
	return change.Map(it)
}

// judgeSet compares a locator or the claims with what the items ask for. What
// to put there goes by the ledger, as the engine has it; the two differ where
// an entry is wrong, too.
func (s *auditRead) judgeSet(sus drift.Suspect) drift.Reading {
	found := s.setOf(sus)
	r := s.rows[s.rowsOf(sus)[0]]
	reading := drift.Reading{
		Suspect: sus, Concerns: []string{audit.LocatorToken(sus.Rule, sus.Group)},
		Fix: drift.Fix{Seen: table.TextOf(r["changes"])},
	}
	if sus.Kind == drift.Claims {
		reading.Concerns = []string{mirrors.Token(sus.Item), drift.KeyToken(sus.Item)}
		reading.Fix.Keys = []change.Key{sus.Item}
	}
	listing := attributes.ItemFromTable(s.rows[s.rowsOf(sus)[1]])
	states, claimants := []change.Value{rowValue(r), itemValue(listing)}, 0
	for _, member := range s.membersOf(sus) {
		key := change.ParseKey(member)
		ent := s.rows[state.EntryKey(key)]
		asked := s.planner.EffectsOf(key, table.Image(s.items[key]))[sus.Rule]
		states = append(states, change.String(effectsOfRow(ent)[sus.Rule]), change.String(asked.String()))
		reading.Concerns = append(reading.Concerns, drift.KeyToken(key))
		if f, err := plan.ParseEffect(effectsOfRow(ent)[sus.Rule]); err == nil && belongsTo(sus, f) {
			reading.Fix.Should = append(reading.Fix.Should, member)
		}
		belongs := belongsTo(sus, asked)
		if belongs {
			claimants++
		}
		if sus.Kind == drift.Locator {
			reading.Fix.Keys = append(reading.Fix.Keys, key)
		}
		if is := slices.Contains(found, member); is != belongs {
			reading.Findings = append(reading.Findings, s.setFinding(sus, member, belongs))
		}
	}
	reading.State = change.Digest(states...)
	reading.Findings = append(reading.Findings, audit.CompareListing(drift.Finding{Rule: s.ruleName(sus.Rule)}, contestedOf(sus), claimants, listing)...)
	if row := attributes.ItemFromTable(r); audit.TornSet(row) {
		reading.Torn = true
		reading.Findings = append(reading.Findings, drift.Finding{
			Rule: s.ruleName(sus.Rule), Kind: sus.Kind, What: drift.Wrong, Item: sus.Item, Group: sus.Group,
			Expected: "a count of changes", Found: audit.Text(row["changes"]), WriteUnits: table.WriteUnitsMin,
		})
	}
	return reading
}

// belongsTo reports whether an effect asks for being in a set.
func belongsTo(sus drift.Suspect, f plan.Effect) bool {
	return f.Kind == plan.Located && f.Value == sus.Group || f.Kind == plan.Mirrored && f.Target == sus.Item
}

func (s *auditRead) setFinding(sus drift.Suspect, member string, belongs bool) drift.Finding {
	f := drift.Finding{
		Rule: s.ruleName(sus.Rule), Kind: sus.Kind, What: drift.Surplus, Item: sus.Item, Group: sus.Group, Found: member, WriteUnits: table.WriteUnitsMin,
	}
	if sus.Kind == drift.Locator {
		f.Item = change.ParseKey(member)
	}
	if belongs {
		f.What, f.Expected, f.Found = drift.Missing, member, ""
	}
	return f
}

func (s *auditRead) judgeMirror(sus drift.Suspect) drift.Reading {
	target := s.items[sus.Item]
	reading := drift.Reading{
		Suspect: sus, Concerns: []string{drift.KeyToken(sus.Item), mirrors.Token(sus.Item)}, Fix: drift.Fix{Keys: []change.Key{sus.Item}},
	}
	var states []change.Value
	var sides []mirrors.Side
	sources := s.sourcesOf(sus)
	for _, r := range s.planner.Set.Rules {
		if r.MakesItems() && r.Target.HasKey(sus.Item) {
			states = append(states, ruleValue(s.planner.Of(r), target))
		}
	}
	for _, b := range s.mirrorRules(sus.Item) {
		side := mirrors.Side{Binding: b}
		for _, text := range sources { // in the order of their keys: the smallest wins
			source := change.ParseKey(text)
			f := s.planner.EffectsOf(source, table.Image(s.items[source]))[b.ID]
			if f.Kind == plan.Mirrored && f.Target == sus.Item {
				side.Asked, side.Expired = f.Content, s.expired(b, source, f)
				reading.Fix.Keys = append(reading.Fix.Keys, source) // its ledger entry may be behind
				break
			}
		}
		sides = append(sides, side)
	}
	for _, text := range sources {
		source := change.ParseKey(text)
		states = append(states, digestable(s.planner.EffectsOf(source, table.Image(s.items[source]))))
		reading.Concerns = append(reading.Concerns, drift.KeyToken(source))
	}
	reading.State = change.Digest(states...)
	reading.Findings = mirrors.Compare(s.auditor, sus.Item, target, sides)
	return reading
}

// expired reports whether the state table notes that DynamoDB's time to live deleted
// the mirror item for which a source asks.
func (s *auditRead) expired(b *plan.Binding, source change.Key, f plan.Effect) bool {
	if b.Claimed() {
		return table.TextOf(s.rows[state.ClaimsKey(b, f.Target)]["expired"]) == f.Digest
	}
	f.Expired = true
	return effectsOfRow(s.rows[state.EntryKey(source)])[b.ID] == f.String()
}

func (s *auditRead) judgeCopy(sus drift.Suspect) drift.Reading {
	b := s.planner.ByID(sus.Rule)
	child := s.items[sus.Item]
	reading := drift.Reading{Suspect: sus, Concerns: []string{drift.KeyToken(sus.Item)}, Fix: drift.Fix{Keys: []change.Key{sus.Item}}}
	parentKey, refers, readable := s.reference(sus)
	want := make([]change.Value, len(b.Rule.Attributes))
	if refers {
		parent := copies.ParentIn(s.planner, b, parentKey, s.items)
		want = copies.Of(b.Rule).Given(table.Image(parent))
		reading.Concerns = append(reading.Concerns, drift.KeyToken(parentKey))
		reading.Suspect.Group = parentKey.String()
	}
	_, isChild := s.asChild(sus)
	refersTo := change.String(fmt.Sprint(isChild, readable, refers, parentKey))
	reading.State = change.Digest(append([]change.Value{ruleValue(b, child), refersTo}, want...)...)
	if isChild && readable {
		reading.Findings = copies.Compare(b, sus.Item, child, want)
	}
	return reading
}

func (s *auditRead) judgeReference(sus drift.Suspect) drift.Reading {
	b := s.planner.ByID(sus.Rule)
	parent := change.ParseKey(sus.Group)
	r := s.rows[state.ReferenceKey(b, parent, sus.Item)]
	found, refers, readable := s.reference(sus)
	reading := drift.Reading{
		Suspect: sus, State: change.Digest(rowValue(r), change.String(fmt.Sprint(found, refers, readable))),
		Concerns: []string{drift.KeyToken(sus.Item), drift.KeyToken(parent)}, Fix: drift.Fix{Keys: []change.Key{sus.Item}, Seen: table.TextOf(r["at"])},
	}
	wanted := refers && found == parent
	f := drift.Finding{Rule: b.Rule.Name, Kind: drift.Reference, Item: sus.Item, Group: sus.Group, WriteUnits: table.WriteUnitsMin}
	switch {
	case wanted && len(r) == 0:
		f.What, f.Expected = drift.Missing, "refers to "+sus.Group
		reading.Findings = []drift.Finding{f}
	case !wanted && len(r) > 0 && readable:
		f.What, f.Found = drift.Orphaned, "refers to "+sus.Group
		reading.Findings = []drift.Finding{f}
	}
	return reading
}

// judgeTorn looks at a parent's position, or at a task, with which the engine may not be able to work.
func (s *auditRead) judgeTorn(sus drift.Suspect) drift.Reading {
	r := attributes.ItemFromTable(s.rows[s.rowsOf(sus)[0]])
	reading := drift.Reading{
		Suspect: sus, State: change.Digest(itemValue(r)), Concerns: []string{drift.KeyToken(sus.Item)}, Fix: drift.Fix{Keys: []change.Key{sus.Item}},
	}
	f := drift.Finding{Rule: s.ruleName(sus.Rule), Kind: sus.Kind, What: drift.Wrong, Item: sus.Item, Found: audit.Text(r["at"]), WriteUnits: table.WriteUnitsMin}
	if sus.Kind == drift.Position {
		reading.Torn, f.Expected = audit.TornPosition(r), "a position"
	} else if r != nil {
		reading.Torn, f.Expected, f.Found = audit.TornTask(s.planner, r), "a task that can be worked off", audit.Text(change.Map(r))
	}
	if reading.Torn {
		reading.Findings = []drift.Finding{f}
	}
	return reading
}
