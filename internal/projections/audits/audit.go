// Package audits compares what is derived with what the items ask for, and explains what one record or one item means to a rule file.
// It reads only; a caller may let it mend what it found.
package audits

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/auditing"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/registry"
	"github.com/dynamill/dynamill/internal/projections/internal/seeding"
	"github.com/dynamill/dynamill/internal/projections/internal/sightings"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/internal/tally"
	"github.com/dynamill/dynamill/projections"
)

// Config says what an Audit judges.
type Config struct {
	Client     table.Client
	Table      string
	StateTable string // default: Table and "-dynamill"
	Rules      *rules.Set
	Names      []string // of the rules to judge; none: all

	// Ahead judges the rules as if they were in force. Without it a rule that the registry does not know is a *projections.SetupError.
	Ahead bool
}

// Audit compares what is derived with what the items ask for. It reads only, but for Mend. It is safe for concurrent use.
type Audit struct {
	planner *plan.Planner
	tables  *table.Tables
	audited *auditing.Table
	waiting []string // rules that are not live: their aggregates are not judged
	seen    seenItems
}

// Open reads the registry, and creates and registers nothing.
func Open(ctx context.Context, cfg Config) (*Audit, error) {
	ts := table.New(cfg.Client, cfg.Table, cfg.StateTable)
	a := &Audit{planner: &plan.Planner{CanExist: ts.CanExist}, tables: ts}
	tableID, err := registry.Describe(ctx, a.tables, cfg.Rules)
	if err != nil {
		return nil, err
	}
	known, err := a.readRegistry(ctx, tableID, cfg.Ahead)
	if err == nil {
		err = a.bind(ctx, cfg, known)
	}
	if err != nil {
		return nil, err
	}
	shown, err := a.awaitShow(ctx, cfg.Ahead)
	if err != nil {
		return nil, err
	}
	for _, name := range cfg.Names {
		if !slices.ContainsFunc(cfg.Rules.Rules, func(r *rules.Rule) bool { return r.Name == name }) {
			return nil, fmt.Errorf("there is no rule %q in the rule file", name)
		}
	}
	all := len(cfg.Names) == 0
	a.audited = &auditing.Table{Tables: ts, Auditor: audit.New(a.planner, audit.Scope{
		Rules: func(b *plan.Binding) bool { return (all || slices.Contains(cfg.Names, b.Rule.Name)) && b.Live.Load() },
		Shown: shown, Formers: all,
	})}
	return a, nil
}

// awaitShow adds to waiting the live rules that a show pass has not shown yet. It returns whether everything of a rule is shown.
func (a *Audit) awaitShow(ctx context.Context, ahead bool) (func(*plan.Binding) bool, error) {
	if ahead || a.planner.Incarnation == "" {
		return func(*plan.Binding) bool { return true }, nil
	}
	cursor, err := seeding.ReadCursor(ctx, a.tables.Reader, a.planner)
	if err != nil {
		return nil, err
	}
	showing := func(b *plan.Binding) bool {
		return b.Rule.Displays() && b.Live.Load() && cursor.Phase == state.PhaseShow && cursor.IsFor(b.Rule)
	}
	for _, r := range a.planner.Set.Rules {
		if showing(a.planner.Of(r)) {
			a.waiting = append(a.waiting, r.Name)
		}
	}
	return func(b *plan.Binding) bool { return !showing(b) }, nil
}

// readRegistry reads the registry; of a table that has none it knows nothing, where that is allowed.
func (a *Audit) readRegistry(ctx context.Context, tableID string, ahead bool) (map[string]state.Rule, error) {
	_, err := a.tables.StateTableActive(ctx)
	missing := errors.As(err, new(*ddb.ResourceNotFoundException))
	switch {
	case missing && ahead:
		return nil, nil
	case missing:
		return nil, registry.Unregistered(a.tables.StateTable, err)
	case err != nil:
		return nil, fmt.Errorf("state table %s: %w", a.tables.StateTable, err)
	}
	own, known, err := registry.Read(ctx, a.tables.Reader)
	switch {
	case err != nil:
		return nil, err
	case own == nil && ahead:
		return nil, nil
	case own == nil:
		return nil, registry.Unregistered(a.tables.StateTable, nil)
	}
	a.planner.Incarnation, a.planner.Epoch = own.Incarnation, own.Epoch
	return known, registry.CheckOwner(a.tables, own, tableID)
}

// bind binds the rules to what the registry knows of them. Rules that are not in force yet it binds as they will be.
func (a *Audit) bind(ctx context.Context, cfg Config, known map[string]state.Rule) error {
	m := registry.Match(cfg.Rules, known)
	if !cfg.Ahead && len(m.Retire) > 0 {
		return m.Refusal(a.tables.StateTable)
	}
	if !cfg.Ahead && len(m.New) > 0 {
		return registry.NotInForce(a.tables.Table, "rule "+m.New[0].Name+" is")
	}
	formers, err := m.ReadFormers(ctx, a.tables.Reader)
	if err != nil {
		return err
	}
	taken := map[string]bool{}
	for id := range known {
		taken[id] = true
	}
	for _, r := range m.New {
		m.IDs[r] = registry.FreeID(r.Name, taken)
	}
	a.planner.Bindings = plan.Bind(cfg.Rules, m.IDs)
	a.planner.AddFormer(formers...)
	for _, b := range formers {
		b.Retired.Store(cfg.Ahead || b.Cleaned.Load()) // what is being taken back is not judged
		if !b.Retired.Load() {
			a.waiting = append(a.waiting, b.Rule.Name)
		}
	}
	for _, r := range cfg.Rules.Rules {
		b := a.planner.Of(r)
		item, registered := known[b.ID]
		b.Live.Store(cfg.Ahead || item.State == state.Live)
		if !registered {
			continue
		}
		registry.BindRule(a.planner, b, item)
		if !b.Live.Load() {
			a.waiting = append(a.waiting, r.Name)
		}
	}
	return nil
}

// Waiting names the rules that are not judged, or whose aggregates are not: they are being brought into force, or taken back.
func (a *Audit) Waiting() []string { return a.waiting }

// Facts are what an item of the user's table says of what is derived.
func (a *Audit) Facts(item change.Item, emit func(drift.Fact)) {
	key := a.planner.Set.Table.KeyOf(item)
	a.seen.mu.Lock()
	a.planner.SeeItem(&a.seen.items, key, item)
	a.seen.mu.Unlock()
	a.audited.Facts(key, item, emit)
}

// RowFacts are what a row of the state table says.
func (a *Audit) RowFacts(row change.Item, emit func(drift.Fact)) { a.audited.RowFacts(row, emit) }

// Combine adds up two facts of the same thing, part and tag, if they are amounts.
func (a *Audit) Combine(about string, tag byte, x, y string) (string, bool) {
	return a.audited.Combine(about, tag, x, y)
}

// Concerns are the tokens of all that a record may be the cause of.
func (a *Audit) Concerns(rec *change.Record, emit func(token string)) { a.audited.Concerns(rec, emit) }

// Operations reads how often each aggregate was changed. If that stays the same, nothing was added or taken away.
func (a *Audit) Operations(ctx context.Context, suspects []drift.Suspect) ([]int64, error) {
	return a.audited.Operations(ctx, suspects)
}

// Mend mends what rederiving an item cannot mend. It reports false if another writer has changed it since it was read.
func (a *Audit) Mend(ctx context.Context, r drift.Reading) (bool, error) {
	return a.audited.Mend(ctx, r)
}

// Judge takes facts in their order, and tells emit what is suspect. The second function ends it.
func (a *Audit) Judge(emit func(drift.Suspect)) (add func(drift.Fact), end func()) {
	j := a.audited.Judge(emit, a.addPointed)
	return j.Add, j.End
}

// Contributions are what a row of the ledger adds to aggregates.
func (a *Audit) Contributions(row change.Item, emit func(drift.Amount)) {
	audit.Contributions(row, emit)
}

// AddAmounts adds amounts to a sum. One that no DynamoDB number holds stays so.
func (a *Audit) AddAmounts(sum string, more []string) string { return tally.AddUp(sum, more) }

// Read reads suspects anew, consistently, and judges each by what is there now. Sums are for ReadSums.
func (a *Audit) Read(ctx context.Context, suspects []drift.Suspect) ([]drift.Reading, error) {
	return a.audited.Read(ctx, suspects, auditing.Sums{})
}

// ReadSums reads aggregates, and what displays them, anew. want is the sum of the ledger entries, if known; otherwise the
// accumulators are right. An aggregate whose operations are not those in before any more is Waiting.
func (a *Audit) ReadSums(ctx context.Context, suspects []drift.Suspect, want map[string]string, before map[string]int64) ([]drift.Reading,
	error) {
	return a.audited.Read(ctx, suspects, auditing.Sums{Want: want, Before: before})
}

// seenItems collects what an audit reports beside drift: items by entity, and missing targets at which sources point.
type seenItems struct {
	mu      sync.Mutex
	items   plan.Seen
	targets map[string]*seenTargets // by rule id
}

// seenTargets are the missing targets of one rule. All are counted, and the first of them held.
type seenTargets struct {
	projections.MissingTargets                  // without examples
	held                       map[string]int64 // sources of each
}

// Matches counts the items that the audit has looked at, by their entities.
func (a *Audit) Matches() projections.Matches {
	a.seen.mu.Lock()
	defer a.seen.mu.Unlock()
	return sightings.MatchesOf(a.planner.Set, a.seen.items, plan.Seen{})
}

// addPointed adds a target at which sources point.
func (a *Audit) addPointed(p audit.PointedTarget) {
	a.seen.mu.Lock()
	defer a.seen.mu.Unlock()
	if a.seen.targets == nil {
		a.seen.targets = map[string]*seenTargets{}
	}
	t := a.seen.targets[p.Rule]
	if t == nil {
		t = &seenTargets{sightings.TargetsOf(a.planner.ByID(p.Rule).Rule), map[string]int64{}}
		t.All = true
		a.seen.targets[p.Rule] = t
	}
	if p.Exists {
		t.All = false
		return
	}
	t.Targets, t.Sources = t.Targets+1, t.Sources+p.Sources
	if len(t.held) < sightings.TargetsHeld(len(a.planner.Set.Rules)) {
		t.held[p.Target] = p.Sources
	}
}

// LookForTargets returns the missing targets by rule. It looks at about a thousand of each again: some may have come since.
func (a *Audit) LookForTargets(ctx context.Context) ([]projections.MissingTargets, error) {
	a.seen.mu.Lock()
	defer a.seen.mu.Unlock()
	var all []projections.MissingTargets
	for id, t := range a.seen.targets {
		b := a.planner.ByID(id)
		if t.Targets > 0 && !b.Rule.ByUnique {
			if err := a.lookAgain(ctx, b, t); err != nil {
				return nil, err
			}
		}
		if t.Targets == 0 {
			continue
		}
		m := t.MissingTargets
		m.Examples = sightings.Examples(t.held)
		if !b.Rule.ByUnique {
			var err error
			if m.OtherCase, err = sightings.FindOtherCase(ctx, a.tables.Reader, a.planner, b, m.Examples); err != nil {
				return nil, err
			}
		}
		all = append(all, m)
	}
	sightings.SortMissing(all)
	return all, nil
}

// lookAgain takes targets out that exist by now.
func (a *Audit) lookAgain(ctx context.Context, b *plan.Binding, t *seenTargets) error {
	there, err := sightings.Existing(ctx, a.tables.Reader, a.planner, b, slices.Sorted(maps.Keys(t.held)))
	if err != nil {
		return err
	}
	for target, exists := range there {
		if exists {
			t.All, t.Targets, t.Sources = false, t.Targets-1, t.Sources-t.held[target]
			delete(t.held, target)
		}
	}
	return nil
}
