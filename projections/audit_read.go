package projections

import (
	"context"
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/projections/internal/audit"
	"github.com/dynamill/dynamill/projections/internal/kinds/mirrors"
	"github.com/dynamill/dynamill/projections/internal/plan"
	"github.com/dynamill/dynamill/rules"
)

// auditAtOnce is how many suspects are read together.
const auditAtOnce = 50

// Read reads suspects anew, consistently, and judges each by what is there now.
// Entries are read before items and children before their parents, so that an item
// that is being written at this moment is told by a change of State. Sums, and
// what displays them, are for ReadSums.
func (a *Audit) Read(ctx context.Context, suspects []drift.Suspect) ([]drift.Reading, error) {
	return readChunks(ctx, suspects, func(ctx context.Context, chunk []drift.Suspect) ([]drift.Reading, error) {
		return a.newRead().read(ctx, chunk)
	})
}

// readChunks reads suspects a chunk at a time, several chunks at once.
func readChunks(ctx context.Context, suspects []drift.Suspect, read func(context.Context, []drift.Suspect) ([]drift.Reading, error)) ([]drift.Reading, error) {
	chunks := slices.Collect(slices.Chunk(suspects, auditAtOnce))
	readings := make([][]drift.Reading, len(chunks))
	err := each(ctx, len(chunks), func(ctx context.Context, i int) (err error) {
		readings[i], err = read(ctx, chunks[i])
		return err
	})
	return slices.Concat(readings...), err
}

func (a *Audit) newRead() *auditRead {
	return &auditRead{Audit: a, rows: map[stateKey]row{}, items: map[change.Key]change.Item{}}
}

// auditRead is what was read for some suspects.
type auditRead struct {
	*Audit
	rows  map[stateKey]row
	items map[change.Key]change.Item
}

func (s *auditRead) fetchRows(ctx context.Context, keys []stateKey) error {
	if len(keys) == 0 || s.incarnation == "" { // of a table without a registry there is nothing to read
		return nil
	}
	found, err := s.readState(ctx, "reading the state of suspects", keys)
	for k, r := range found {
		s.rows[k] = r
	}
	return err
}

func (s *auditRead) fetchItems(ctx context.Context, keys []change.Key) error {
	keys = slices.DeleteFunc(keys, func(k change.Key) bool { return !s.canExist(k) })
	if len(keys) == 0 {
		return nil
	}
	found, err := s.readItems(ctx, "reading suspects", keys)
	for k, it := range found {
		s.items[k] = it
	}
	return err
}

func (s *auditRead) read(ctx context.Context, suspects []drift.Suspect) ([]drift.Reading, error) {
	var rows, more []stateKey
	var items, parents []change.Key
	for _, sus := range suspects {
		rows = append(rows, s.rowsOf(sus)...)
	}
	if err := s.fetchRows(ctx, rows); err != nil {
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
	if err := s.fetchRows(ctx, more); err != nil {
		return nil, err
	}
	if err := s.fetchItems(ctx, items); err != nil {
		return nil, err
	}
	for _, sus := range suspects {
		if sus.Kind == drift.Copy {
			if parent, refers, _ := s.reference(sus); refers {
				parents = append(parents, parent)
			}
		}
	}
	if err := s.fetchItems(ctx, parents); err != nil {
		return nil, err
	}
	readings := make([]drift.Reading, len(suspects))
	for i, sus := range suspects {
		readings[i] = s.judge(sus)
	}
	return readings, s.excuse(ctx, readings)
}

// rowsOf are the rows to be read first.
func (s *auditRead) rowsOf(sus drift.Suspect) []stateKey {
	b := s.planner.ByID(sus.Rule)
	switch sus.Kind {
	case drift.Entry:
		return []stateKey{entryKey(sus.Item)}
	case drift.Claims:
		return []stateKey{claimsKey(b, sus.Item), parkedKey(contestedOf(sus).RowID())}
	case drift.Locator:
		locator, _ := plan.LocatorIn(sus.Rule)
		return []stateKey{locatorKey(locator, sus.Group), parkedKey(contestedOf(sus).RowID())}
	case drift.Position:
		return []stateKey{parentKey(b, sus.Item)}
	case drift.Task:
		return []stateKey{{tasksPartition, sus.Group}}
	case drift.Parked:
		keys := []stateKey{parkedKey(parkedID(sus.Rule, sus.Item)), entryKey(sus.Item)}
		if b != nil && mirrors.Is(b.Rule) {
			keys = append(keys, s.claimsOf(sus.Item)...)
		}
		return keys
	case drift.Reference:
		return []stateKey{referenceKey(b, change.ParseKey(sus.Group), sus.Item)}
	case drift.Mirror:
		return s.claimsOf(sus.Item)
	}
	return nil
}

// contestedOf is the target of a suspect set.
func contestedOf(sus drift.Suspect) audit.ContestedTarget {
	return audit.ContestedTarget{ID: sus.Rule, Target: sus.Item, Value: sus.Group}
}

// claimsOf are the rows that name the sources of an item at a mirror's key, or what is in force of its one source.
func (s *auditRead) claimsOf(target change.Key) (keys []stateKey) {
	for _, b := range s.mirrorRules(target) {
		if source, ok := b.Rule.SourceKey(target); ok {
			keys = append(keys, entryKey(source))
		} else if !b.Rule.Injective {
			keys = append(keys, claimsKey(b, target))
		}
	}
	return keys
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
	case drift.Mirror, drift.Parked:
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
		if b := s.planner.Of(r); mirrors.Is(r) && r.Target.HasKey(target) && s.auditor.Judges(b.ID) {
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
	if audit.TornSet(attributes.ItemFromTable(r)) {
		return nil
	}
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
