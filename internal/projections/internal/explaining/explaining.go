// Package explaining reads what both tables hold of one item, by its key and without a scan, and says it to people in
// words. It holds what is the same for all kinds of rules: stamps, the ledger entry, locators and parked records. Each kind
// of rule adds the rows that its rules alone keep. It writes nothing.
package explaining

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/effects"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// Family is what a kind of rule says of an item.
type Family interface {
	// StampScope is what the context of a rule's stamp on an item names beside the item; false if the rule
	// writes nothing on it.
	StampScope(b *plan.Binding, s *audit.Subject) (string, bool)
	// RowsOf returns those that the state table may hold of an item under a rule, beside those of the ledger. The item
	// may be missing.
	RowsOf(x *Explainer, b *plan.Binding, s *audit.Subject) []Row
}

// Row is a row of the state table that may be there.
type Row struct {
	Key  table.Key
	Name string                   // as docs/state-table.md has it
	Rule string                   // the id of the rule or locator; "" for none
	Says func(r table.Row) string // "" for nothing to say; r is nil if there is no row
}

// Lister is a Family that keeps rows whose keys are found by a query.
type Lister interface {
	// QueryOf is the query for an item's rows under a rule; false for none.
	QueryOf(b *plan.Binding, s *audit.Subject) (Query, bool)
}

// Query finds rows of the state table.
type Query struct {
	Partition string // all its rows are asked for
	Name      string // of each row, as docs/state-table.md has it
	Says      func(r table.Row) string
}

// rowsFoundMax is how many rows of a query are told.
const rowsFoundMax = 100

// Explainer reads what is kept of items.
type Explainer struct {
	Planner *plan.Planner
	Reader  *table.Reader
}

// Item is what the tables hold of one item.
type Item struct {
	*audit.Subject // without an image if there is no item
	Stamps         []StampLine
	Rows           []RowLine
}

// StampLine is what a stamp says.
type StampLine struct {
	Attribute string `json:"attribute"`
	Rule      string `json:"rule"`
	Says      string `json:"says"`
}

// RowLine is one thing that a row of the state table says.
type RowLine struct {
	Row  string `json:"row"`
	PK   string `json:"pk"`
	SK   string `json:"sk"`
	Rule string `json:"rule,omitempty"`
	Says string `json:"says"`
}

// Read reads an item and then its rows, each consistently.
func (x *Explainer) Read(ctx context.Context, key change.Key) (Item, error) {
	doing := "reading what is kept of " + key.String()
	items, err := x.Reader.ReadItems(ctx, doing, []change.Key{key})
	if err != nil {
		return Item{}, err
	}
	it := Item{Subject: &audit.Subject{Key: key, Image: table.Image(items[key])}, Stamps: []StampLine{}, Rows: []RowLine{}}
	if it.Image != nil {
		it.Match, _ = x.Planner.Set.Identify(key, it.Image)
		it.Stamps = append(it.Stamps, x.stamps(it.Subject)...)
	}
	rows, entry := x.rows(it.Subject), state.EntryKey(key)
	keys := []table.Key{entry}
	for _, row := range rows {
		keys = append(keys, row.Key)
	}
	found, err := x.Reader.ReadState(ctx, doing, keys)
	if err != nil {
		return Item{}, err
	}
	it.Rows = append(it.Rows, x.entry(it.Subject, entry, found[entry])...)
	for _, row := range rows {
		if says := row.Says(found[row.Key]); says != "" {
			it.Rows = append(it.Rows, RowLine{row.Name, row.Key.Partition, row.Key.Sort, x.ruleOf(row.Rule), says})
		}
	}
	for _, b := range x.Planner.InForce {
		if lister, ok := b.Family.(Lister); ok {
			if err := x.list(ctx, doing, lister, b, &it); err != nil {
				return Item{}, err
			}
		}
	}
	return it, nil
}

// list adds the rows that a query finds.
func (x *Explainer) list(ctx context.Context, doing string, lister Lister, b *plan.Binding, it *Item) error {
	query, ok := lister.QueryOf(b, it.Subject)
	if !ok {
		return nil
	}
	found := 0
	err := x.Reader.EachRow(ctx, doing, query.Partition, func(r table.Row) {
		if found++; found <= rowsFoundMax {
			it.Rows = append(it.Rows, RowLine{query.Name, table.TextOf(r[table.PK]), table.TextOf(r[table.SK]), b.Rule.Name, query.Says(r)})
		}
	})
	if more := found - rowsFoundMax; more > 0 {
		it.Rows = append(it.Rows, RowLine{Row: query.Name, Rule: b.Rule.Name, Says: fmt.Sprintf("and %d more", more)})
	}
	return err
}

// ruleGone stands for a rule that the registry does not know.
const ruleGone = "a rule that is no longer there"

// ruleOf names a rule or a locator by its id.
func (x *Explainer) ruleOf(id string) string {
	_, locator := effects.LocatorIn(id)
	switch {
	case x.Planner.Former(id) != nil:
		return x.Planner.NameOf(id) + ", not in force any more"
	case x.Planner.ByID(id) == nil && !locator && id != "":
		return ruleGone
	}
	return x.Planner.NameOf(id)
}

// stamps says what each stamp on an item says.
func (x *Explainer) stamps(s *audit.Subject) (lines []StampLine) {
	for name, v := range s.Image.All() {
		id, ok := strings.CutPrefix(name, stamp.Prefix)
		if !ok {
			continue
		}
		says := "no stamp: another program wrote it"
		if written, ok := stamp.Parse(v); ok {
			says = x.stampWords(x.Planner.AnyByID(id), s, written)
		}
		lines = append(lines, StampLine{name, x.ruleOf(id), says})
	}
	slices.SortFunc(lines, func(a, b StampLine) int { return strings.Compare(a.Attribute, b.Attribute) })
	return lines
}

// stampWords tell people what the stamp of a rule says, and what became of the values beside it. b is nil if the rule is unknown.
func (x *Explainer) stampWords(b *plan.Binding, s *audit.Subject, written stamp.Stamp) string {
	text := written.Version.Words()
	if b == nil {
		return text
	}
	if !b.Former { // only a former rule's own file tells of which entity the item was
		within, writes := b.Family.(Family).StampScope(b, s)
		switch {
		case !writes:
			return text + "; the rule writes nothing on the item as it is now"
		case written.Context != stamp.Context(x.Planner.Incarnation, s.Key, within):
			return text + "; it counts as none: it is of another item, parent or group, or of a former state table"
		}
	}
	kept := b.Covered(written.Digest, s.Image)
	others := slices.DeleteFunc(slices.Clone(b.Rule.Writes), func(name string) bool { return slices.Contains(kept, name) })
	if len(kept) > 0 {
		text += "; as dynamill wrote it: " + plan.Listed(kept)
	}
	if len(others) > 0 {
		text += "; written by another rule or program since: " + plan.Listed(others)
	}
	return text
}

// entry says what the ledger remembers of an item.
func (x *Explainer) entry(s *audit.Subject, key table.Key, r table.Row) (lines []RowLine) {
	tell := func(id, says string) {
		lines = append(lines, RowLine{"ledger entry", key.Partition, key.Sort, x.ruleOf(id), says})
	}
	ent, err := state.ReadEntry(x.Planner, r)
	switch {
	case err != nil:
		tell("", err.Error())
		return lines
	case ent == nil && s.Match.Entity != nil && plan.FeedsLedger(s.Match.Entity):
		tell("", "there is none: the item has no effect yet")
		return lines
	case ent == nil:
		return nil
	}
	says := "processed up to " + ent.At.Words()
	if ent.Rederived > 0 {
		says += fmt.Sprintf(", rederived since: %d", ent.Rederived)
	}
	if len(ent.Effects) == 0 {
		says += "; the item has no effect any more" + expiry(r)
	}
	tell("", says)
	for _, k := range ent.Effects.Keys() {
		tell(k.ID, "asks for "+x.Planner.WordsOf(k.ID, ent.Effects[k]).What)
	}
	for _, group := range ent.Due {
		id, group, _ := strings.Cut(group, " ")
		tell(id, group+" is still to be brought up to date")
	}
	return lines
}

// expiry says when DynamoDB's time to live deletes a row; "" if it does not.
func expiry(r table.Row) string {
	if r["ttl"] == nil {
		return ""
	}
	return ", and the row expires at " + timeText(time.Unix(table.NumberOf(r["ttl"]), 0))
}

func timeText(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// rows are those that may be kept of an item beside its ledger entry.
func (x *Explainer) rows(s *audit.Subject) []Row {
	var all, parked []Row
	park := func(rule, id string) {
		parked = append(parked, Row{state.ParkedKey(id), "parked record", rule, parkedWords})
	}
	for _, b := range slices.Concat(x.Planner.InForce, x.Planner.Formers()) {
		if !b.Former {
			all = append(all, b.Family.(Family).RowsOf(x, b, s)...)
		}
		park(b.ID, state.ParkedID(b.ID, s.Key))
		if b.Rule.Displays() {
			park(b.ID, audit.DisplayID(b.ID, s.Key))
		}
		if b.Claimed() {
			park(b.ID, audit.ContestedTarget{ID: b.ID, Target: s.Key}.RowID())
		}
	}
	if e := s.Match.Entity; e != nil && e.Located {
		locator := x.Planner.LocatorOf(e)
		id := effects.LocatorID(locator)
		park(id, state.ParkedID(id, s.Key))
		if value, ok, err := e.UniqueValue(&s.Match, s.Image); err == nil && ok {
			all = append(all, Row{state.LocatorKey(locator, value), "locator", id, func(r table.Row) string {
				return SetWords("items with the value "+value, state.ReadSet(r, true), "displays what is found by it")
			}})
			park(id, audit.ContestedTarget{ID: id, Value: value}.RowID())
		}
	}
	return append(all, parked...)
}

// membersListed is how many items of a set are named.
const membersListed = 10

// SetWords tell people which items claim a target, and what the first of them does; "" if no item claims it.
func SetWords(what string, set state.Set, first string) string {
	total := len(set.Sources)
	if total == 0 {
		return ""
	}
	text := what + ": " + strings.Join(set.Sources[:min(total, membersListed)], ", ")
	if total > membersListed {
		text += fmt.Sprintf(" and %d more", total-membersListed)
	}
	if total > 1 {
		text += "; the first one " + first
	}
	return text
}

func parkedWords(r table.Row) string {
	if r == nil {
		return ""
	}
	p := state.ReadParked(r)
	return p.Code + " since " + timeText(p.At) + ": " + p.Reason
}
