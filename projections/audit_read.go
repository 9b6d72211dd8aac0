package projections

import (
	"context"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/projections/internal/audit"
	"github.com/dynamill/dynamill/projections/internal/plan"
	"github.com/dynamill/dynamill/rules"
)

// auditAtOnce is how many suspects are read together.
const auditAtOnce = 50

// Read reads suspects anew, consistently, and judges each by what is there now.
// Entries are read before items and children before their parents, so that who
// is only being written at this moment is told by a change of State. Sums, and
// what displays them, are for ReadSums.
func (a *Audit) Read(ctx context.Context, suspects []drift.Suspect) ([]drift.Reading, error) {
	all := make([]drift.Reading, 0, len(suspects))
	for chunk := range slices.Chunk(suspects, auditAtOnce) {
		s := &auditRead{Audit: a, ctx: ctx, rows: map[stateKey]row{}, items: map[change.Key]change.Item{}}
		readings, err := s.read(chunk)
		if err != nil {
			return nil, err
		}
		all = append(all, readings...)
	}
	return all, nil
}

// auditRead is what was read for some suspects.
type auditRead struct {
	*Audit
	ctx   context.Context
	rows  map[stateKey]row
	items map[change.Key]change.Item
}

func (s *auditRead) fetchRows(keys []stateKey) error {
	if len(keys) == 0 || s.incarnation == "" { // of a table without a registry there is nothing to read
		return nil
	}
	found, err := s.readState(s.ctx, "reading the state of suspects", keys)
	for k, r := range found {
		s.rows[k] = r
	}
	return err
}

func (s *auditRead) fetchItems(keys []change.Key) error {
	keys = slices.DeleteFunc(keys, func(k change.Key) bool { return !s.canExist(k) })
	if len(keys) == 0 {
		return nil
	}
	found, err := s.readItems(s.ctx, "reading suspects", keys)
	for k, it := range found {
		s.items[k] = it
	}
	return err
}

func (s *auditRead) read(suspects []drift.Suspect) ([]drift.Reading, error) {
	var rows, more []stateKey
	var items, parents []change.Key
	for _, sus := range suspects {
		rows = append(rows, s.rowsOf(sus)...)
	}
	if err := s.fetchRows(rows); err != nil {
		return nil, err
	}
	for _, sus := range suspects {
		items = append(items, s.itemsOf(sus)...)
		if sus.Kind == drift.Claims || sus.Kind == drift.Locator {
			for _, member := range s.membersOf(sus) {
				more = append(more, entryKey(change.ParseKey(member)))
			}
		}
	}
	if err := s.fetchRows(more); err != nil {
		return nil, err
	}
	if err := s.fetchItems(items); err != nil {
		return nil, err
	}
	for _, sus := range suspects {
		if sus.Kind == drift.Copy {
			if parent, refers, _ := s.reference(sus); refers {
				parents = append(parents, parent)
			}
		}
	}
	if err := s.fetchItems(parents); err != nil {
		return nil, err
	}
	readings := make([]drift.Reading, len(suspects))
	for i, sus := range suspects {
		readings[i] = s.judge(sus)
	}
	return readings, s.excuse(readings)
}

// rowsOf are the rows to be read first.
func (s *auditRead) rowsOf(sus drift.Suspect) []stateKey {
	b := s.planner.ByID(sus.Rule)
	switch sus.Kind {
	case drift.Entry:
		return []stateKey{entryKey(sus.Item)}
	case drift.Claims:
		return []stateKey{claimsKey(b, sus.Item)}
	case drift.Locator:
		locator, _ := plan.LocatorIn(sus.Rule)
		return []stateKey{locatorKey(locator, sus.Group)}
	case drift.Reference:
		return []stateKey{referenceKey(b, change.ParseKey(sus.Group), sus.Item)}
	case drift.Mirror:
		var keys []stateKey
		for _, b := range s.mirrorRules(sus.Item) {
			if !b.Rule.Injective {
				keys = append(keys, claimsKey(b, sus.Item))
			}
		}
		return keys
	}
	return nil
}

// itemsOf are the items to be read after the rows.
func (s *auditRead) itemsOf(sus drift.Suspect) []change.Key {
	switch sus.Kind {
	case drift.Claims, drift.Locator:
		var keys []change.Key
		for _, member := range s.membersOf(sus) {
			keys = append(keys, change.ParseKey(member))
		}
		return keys
	case drift.Mirror:
		keys := []change.Key{sus.Item}
		for _, source := range s.sourcesOf(sus) {
			keys = append(keys, change.ParseKey(source))
		}
		return keys
	}
	return []change.Key{sus.Item}
}

// mirrorRules are the rules that could have made an item with this key.
func (s *auditRead) mirrorRules(target change.Key) []*plan.Binding {
	var all []*plan.Binding
	for _, r := range s.planner.Set.Rules {
		if b := s.planner.Of(r); r.Kind == rules.Mirror && r.Target.HasKey(target) && s.auditor.Judges(b.ID) {
			all = append(all, b)
		}
	}
	return all
}

// sourcesOf are the items that may ask for a mirror item: those that the scan
// saw, those that claim it, and the one that its key names.
func (s *auditRead) sourcesOf(sus drift.Suspect) []string {
	sources := slices.Clone(sus.Members)
	for _, b := range s.mirrorRules(sus.Item) {
		if source, ok := b.Rule.SourceKey(sus.Item); ok {
			sources = append(sources, source.String())
		} else if !b.Rule.Injective {
			sources = append(sources, textsOf(s.rows[claimsKey(b, sus.Item)]["sources"])...)
		}
	}
	slices.Sort(sources)
	return slices.Compact(sources)
}

// membersOf are those that belong, or may belong, to a set.
func (s *auditRead) membersOf(sus drift.Suspect) []string {
	members := append(slices.Clone(sus.Members), s.setOf(sus)...)
	slices.Sort(members)
	return slices.Compact(members)
}

func (s *auditRead) setOf(sus drift.Suspect) []string {
	r := s.rows[s.rowsOf(sus)[0]]
	if sus.Kind == drift.Claims {
		return textsOf(r["sources"])
	}
	return textsOf(r["items"])
}

// reference is the parent that a child that was read refers to. readable is
// false where the child cannot name it, which is parked.
func (s *auditRead) reference(sus drift.Suspect) (parent change.Key, refers, readable bool) {
	m, ok := s.asChild(sus)
	if !ok {
		return change.Key{}, false, true
	}
	parent, refers, bad := plan.ReferenceIn(s.planner.ByID(sus.Rule).Rule, &m, s.items[sus.Item])
	return parent, refers && bad == nil, bad == nil
}

// asChild is the suspect as a child under its rule; false if it is none (any more).
func (s *auditRead) asChild(sus drift.Suspect) (rules.Match, bool) {
	child := s.items[sus.Item]
	if child == nil {
		return rules.Match{}, false
	}
	m, ok := s.planner.Set.Identify(sus.Item, child)
	return m, ok && m.Entity == s.planner.ByID(sus.Rule).Rule.Target
}

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
	case drift.Leftover:
		item := s.items[sus.Item]
		return drift.Reading{
			Suspect: sus, State: change.Digest(itemValue(item)), Concerns: []string{drift.KeyToken(sus.Item)},
			Findings: s.auditor.CompareLeftover(s.planner.Former(sus.Rule), sus.Item, image(item)), Fix: drift.Fix{Keys: []change.Key{sus.Item}},
		}
	}
	return drift.Reading{Suspect: sus}
}

func (s *auditRead) judgeEntry(sus drift.Suspect) drift.Reading {
	r := s.rows[entryKey(sus.Item)]
	img := image(s.items[sus.Item])
	want, have := plan.Effects{}, plan.Effects{}
	for id, f := range s.planner.EffectsOf(sus.Item, img) {
		if s.auditor.Judges(id) {
			want[id] = f
		}
	}
	unreadable := ""
	for id, v := range effectsOfRow(r) {
		if f, err := plan.ParseEffect(v); err != nil {
			unreadable = v
		} else if s.auditor.Judges(id) {
			have[id] = f
		}
	}
	reading := drift.Reading{
		Suspect: sus, State: change.Digest(rowValue(r), itemValue(s.items[sus.Item])), Concerns: []string{drift.KeyToken(sus.Item)},
		Fix: drift.Fix{Keys: []change.Key{sus.Item}, Adjust: s.auditor.Adjustments(want, have)},
	}
	for _, c := range audit.CompareEffects(want, have) {
		reading.Findings = append(reading.Findings, drift.Finding{
			Rule: s.ruleName(c.ID), Kind: drift.Entry, What: c.What, Item: sus.Item, Expected: c.Want, Found: c.Have,
			WriteUnits: entryUnits(c.ID, s.planner),
		})
	}
	if unreadable != "" {
		reading.Findings = append(reading.Findings, drift.Finding{Kind: drift.Entry, What: drift.Wrong, Item: sus.Item, Found: unreadable, WriteUnits: transactionUnitsMin})
	}
	return reading
}

func effectsOfRow(r row) map[string]string {
	all := map[string]string{}
	for id, v := range attributes.FromTable(r["effects"]).Map() {
		all[id] = v.Text()
	}
	return all
}

func rowValue(r row) change.Value { return itemValue(attributes.ItemFromTable(r)) }

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
		Fix: drift.Fix{Seen: textOf(r["changes"])},
	}
	if sus.Kind == drift.Claims {
		reading.Concerns = []string{audit.MirrorToken(sus.Item), drift.KeyToken(sus.Item)}
		reading.Fix.Keys = []change.Key{sus.Item}
	}
	states := []change.Value{rowValue(r)}
	for _, member := range s.membersOf(sus) {
		key := change.ParseKey(member)
		ent := s.rows[entryKey(key)]
		states = append(states, rowValue(ent), itemValue(s.items[key]))
		reading.Concerns = append(reading.Concerns, drift.KeyToken(key))
		if f, err := plan.ParseEffect(effectsOfRow(ent)[sus.Rule]); err == nil && belongsTo(sus, f) {
			reading.Fix.Should = append(reading.Fix.Should, member)
		}
		belongs := belongsTo(sus, s.planner.EffectsOf(key, image(s.items[key]))[sus.Rule])
		if sus.Kind == drift.Locator {
			reading.Fix.Keys = append(reading.Fix.Keys, key)
		}
		if is := slices.Contains(found, member); is != belongs {
			reading.Findings = append(reading.Findings, s.setFinding(sus, member, belongs))
		}
	}
	reading.State = change.Digest(states...)
	return reading
}

// belongsTo reports whether an effect asks for being in a set.
func belongsTo(sus drift.Suspect, f plan.Effect) bool {
	return f.Kind == plan.Located && f.Value == sus.Group || f.Kind == plan.Mirrored && f.Target == sus.Item
}

func (s *auditRead) setFinding(sus drift.Suspect, member string, belongs bool) drift.Finding {
	f := drift.Finding{
		Rule: s.ruleName(sus.Rule), Kind: sus.Kind, What: drift.Surplus, Item: sus.Item, Group: sus.Group, Found: member, WriteUnits: writeUnitsMin,
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
		Suspect: sus, Concerns: []string{drift.KeyToken(sus.Item), audit.MirrorToken(sus.Item)}, Fix: drift.Fix{Keys: []change.Key{sus.Item}},
	}
	states := []change.Value{itemValue(target)}
	var mirrors []audit.MirrorSide
	sources := s.sourcesOf(sus)
	for _, b := range s.mirrorRules(sus.Item) {
		side := audit.MirrorSide{Binding: b}
		for _, text := range sources { // in the order of their keys: the smallest wins
			source := change.ParseKey(text)
			f := s.planner.EffectsOf(source, image(s.items[source]))[b.ID]
			if f.Kind == plan.Mirrored && f.Target == sus.Item {
				side.Asked = f.Mirror
				reading.Fix.Keys = append(reading.Fix.Keys, source) // its ledger entry may be behind
				break
			}
		}
		mirrors = append(mirrors, side)
	}
	for _, text := range sources {
		source := change.ParseKey(text)
		states = append(states, itemValue(s.items[source]))
		reading.Concerns = append(reading.Concerns, drift.KeyToken(source))
	}
	reading.State = change.Digest(states...)
	reading.Findings = s.auditor.CompareMirror(sus.Item, target, mirrors)
	return reading
}

func (s *auditRead) judgeCopy(sus drift.Suspect) drift.Reading {
	b := s.planner.ByID(sus.Rule)
	child := s.items[sus.Item]
	reading := drift.Reading{Suspect: sus, Concerns: []string{drift.KeyToken(sus.Item)}, Fix: drift.Fix{Keys: []change.Key{sus.Item}}}
	parentKey, refers, readable := s.reference(sus)
	states := []change.Value{itemValue(child)}
	want := make([]change.Value, len(b.Rule.Copies))
	if refers {
		parent := s.parentItem(b, parentKey, s.items)
		states = append(states, itemValue(parent))
		want = b.Rule.Copied(image(parent))
		reading.Concerns = append(reading.Concerns, drift.KeyToken(parentKey))
		reading.Suspect.Group = parentKey.String()
	}
	reading.State = change.Digest(states...)
	if _, ok := s.asChild(sus); ok && readable {
		reading.Findings = audit.CompareCopies(b, sus.Item, child, want)
	}
	return reading
}

func (s *auditRead) judgeReference(sus drift.Suspect) drift.Reading {
	b := s.planner.ByID(sus.Rule)
	parent := change.ParseKey(sus.Group)
	r := s.rows[referenceKey(b, parent, sus.Item)]
	reading := drift.Reading{
		Suspect: sus, State: change.Digest(rowValue(r), itemValue(s.items[sus.Item])),
		Concerns: []string{drift.KeyToken(sus.Item), drift.KeyToken(parent)}, Fix: drift.Fix{Keys: []change.Key{sus.Item}, Seen: textOf(r["at"])},
	}
	found, refers, readable := s.reference(sus)
	wanted := refers && found == parent
	f := drift.Finding{Rule: b.Rule.Name, Kind: drift.Reference, Item: sus.Item, Group: sus.Group, WriteUnits: writeUnitsMin}
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

// excuse notes what is not to be judged now: what is parked, and children that
// an unfinished fan-out of their parent has still to come to.
func (s *auditRead) excuse(readings []drift.Reading) error {
	var keys []stateKey
	for i := range readings {
		if len(readings[i].Findings) > 0 {
			keys = append(append(keys, s.parkings(&readings[i])...), s.tasksOf(&readings[i])...)
		}
	}
	if err := s.fetchRows(keys); err != nil {
		return err
	}
	for i := range readings {
		r := &readings[i]
		if len(r.Findings) == 0 {
			continue
		}
		if slices.ContainsFunc(s.parkings(r), func(k stateKey) bool { return s.refused(r.Suspect.Kind, s.rows[k]) }) {
			r.Waiting, r.Final = "parked", true
		} else if slices.ContainsFunc(s.tasksOf(r), func(k stateKey) bool { return len(s.rows[k]) > 0 }) {
			r.Waiting = "a fan-out of its parent is not finished"
		}
	}
	return nil
}

// refused reports whether what is parked here explains that something derived
// is not as it should be. A source that a rule cannot read is an effect like
// any other, and judged.
func (s *auditRead) refused(kind drift.Kind, parked row) bool {
	switch textOf(parked["code"]) {
	case "":
		return false
	case "write.rejected", "heal.contested", "number.overflow":
		return true
	}
	return kind == drift.Copy || kind == drift.Reference
}

// parkings are where what would excuse a reading is parked.
func (s *auditRead) parkings(r *drift.Reading) []stateKey {
	sus := r.Suspect
	switch sus.Kind {
	case drift.Entry:
		var keys []stateKey
		for _, f := range r.Findings {
			if strings.HasPrefix(f.Expected, "!") {
				continue // that it is parked is what is expected
			}
			for _, rule := range s.planner.Set.Rules {
				if rule.Name == f.Rule {
					keys = append(keys, parkedKey(parkedID(s.planner.Of(rule).ID, sus.Item)))
				}
			}
			if entity, ok := strings.CutPrefix(f.Rule, "unique "); ok {
				keys = append(keys, parkedKey(parkedID(plan.LocatorID(entity), sus.Item)))
			}
		}
		return keys
	case drift.Claims, drift.Locator:
		var keys []stateKey
		for _, f := range r.Findings {
			keys = append(keys, parkedKey(parkedID(sus.Rule, change.ParseKey(f.Expected+f.Found))))
		}
		return keys
	case drift.Mirror:
		var keys []stateKey
		for _, b := range s.mirrorRules(sus.Item) {
			keys = append(keys, parkedKey(parkedID(b.ID, sus.Item)))
			for _, source := range s.sourcesOf(sus) {
				keys = append(keys, parkedKey(parkedID(b.ID, change.ParseKey(source))))
			}
		}
		return keys
	}
	return []stateKey{parkedKey(parkedID(sus.Rule, sus.Item))}
}

// tasksOf are where unfinished work on a child's parent is kept.
func (s *auditRead) tasksOf(r *drift.Reading) []stateKey {
	if r.Suspect.Kind != drift.Copy && r.Suspect.Kind != drift.Reference {
		return nil
	}
	id := plan.ItemRule{Binding: s.planner.ByID(r.Suspect.Rule), Key: change.ParseKey(r.Suspect.Group)}
	return []stateKey{taskKey(task{id: id}), taskKey(task{id: id, refill: true})}
}
