package audit

import (
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/projections/internal/effects"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
)

// ParkingStays reports whether what is parked of an (item, rule) stays so until an operator retries or discards it: the engine found it
// when it wrote, and the items do not show it. An expression with a result that no number holds is shown by its item; a sum is not.
// Without a binding it is what a rule no longer in force, or a locator, has parked.
func ParkingStays(b *plan.Binding, code string) bool {
	if code == effects.CodeNumberOverflow {
		return b == nil || b.Rule.Displays() && !b.Rule.Folds()
	}
	return code == effects.CodeWriteRejected || code == effects.CodeHealContested
}

// parkingJudged reports whether the items alone decide what is parked under a row's code.
func (a *Auditor) parkingJudged(p ParkedRow) bool {
	return !a.ParkingStays(p) && !strings.HasPrefix(p.Code, "record.")
}

// ParkingStays reports whether a row stays until an operator retries or discards it. A display's row never does under a rule that displays
// nothing.
func (a *Auditor) ParkingStays(p ParkedRow) bool {
	b := a.ByID(p.ID)
	if !p.Display {
		return ParkingStays(b, p.Code)
	}
	return (b == nil || b.Rule.Displays()) && (p.Code == effects.CodeNumberOverflow || ParkingStays(b, p.Code))
}

// ParkedRow is one row of the state table that sets an (item, rule) aside.
type ParkedRow struct {
	ID      string // the rule id, or "@" and the locator
	Item    string // the item's key as text
	Code    string // "" if the row's attributes contradict its key
	Display bool   // the row parks what the rule displays on the item
}

// ReadParked reads a row that sets an (item, rule) aside. It reports false for a
// stream record that could not be read, and for a cut key without its whole id.
func ReadParked(row change.Item) (ParkedRow, bool) {
	name := parkedID(row)
	rest, display := strings.CutPrefix(name, displayPrefix)
	id, item, ok := strings.Cut(rest, "/")
	_, raw := row["raw"]
	p := ParkedRow{ID: id, Item: item, Display: display}
	if row["id"].Text() == name && row["rule"].Text() == id && row["item"].Text() == item {
		p.Code = row["code"].Text()
	}
	return p, ok && !raw
}

// parkedID is the id of a row among the parked records. Its key tells it more surely than its attribute, unless the key was cut.
func parkedID(row change.Item) string {
	if sort := row["sk"].Text(); sort != "" && !cutForm.MatchString(sort) {
		return sort
	}
	return row["id"].Text()
}

// inForce reports whether a rule in force, or a locator of one, is judged under an id.
func (a *Auditor) inForce(id string) bool {
	if locator, ok := effects.LocatorIn(id); ok {
		return a.locators[locator]
	}
	return a.judged[a.ByID(id)]
}

func (a *Auditor) factOfParked(row change.Item, emit func(drift.Fact)) {
	if t, ok := ReadContested(row); ok {
		a.factOfContested(t, row["code"].Text(), emit)
		return
	}
	if p, ok := ReadParked(row); ok && a.inForce(p.ID) && a.parkingJudged(p) {
		id := p.ID
		if p.Display {
			id = displayPrefix + id
		}
		emit(drift.Fact{About: About(AboutParked, id, p.Item), Tag: TagHave, Data: p.Code})
	}
}

// MustBeParked says that an item asks for being parked under a rule or locator.
func MustBeParked(id string, key change.Key, code string, emit func(drift.Fact)) {
	emit(drift.Fact{About: About(AboutParked, id, key.String()), Tag: TagWant, Data: code})
}

// CompareParked says how a row differs from the code that an item asks for; ""
// asks for none. row is nil if nothing is parked.
func (a *Auditor) CompareParked(f drift.Finding, want string, row change.Item) []drift.Finding {
	p, _ := ReadParked(row)
	torn := row != nil && p.Code == ""
	if _, raw := row["raw"]; raw || p.Code == want && !torn || !a.parkingJudged(p) {
		return nil
	}
	return compareCode(f, want, row)
}

// compareCode says how a row differs from one with the code that is wanted; "" wants none.
func compareCode(f drift.Finding, want string, row change.Item) []drift.Finding {
	f.Kind, f.What, f.WriteUnits = drift.Parked, drift.Wrong, 2*TransactionUnitsMin
	f.Expected, f.Found = want, row["code"].Text()
	switch {
	case row == nil:
		f.What = drift.Missing
	case want == "":
		f.What = drift.Surplus
	}
	return []drift.Finding{f}
}

// displayPrefix begins the id of the row of a display.
const displayPrefix = "display:"

// DisplayID is the id under which a display is parked. As a source of the same rule, the target has a row of its own.
func DisplayID(ruleID string, target change.Key) string {
	return displayPrefix + ruleID + "/" + target.String()
}

// ParkedTargetID is the id under which the engine parks an item that it cannot write for a rule: DisplayID if the rule displays something,
// else that of the (item, rule).
func ParkedTargetID(b *plan.Binding, item change.Key) string {
	if b.Rule.Displays() {
		return DisplayID(b.ID, item)
	}
	return b.ID + "/" + item.String()
}

// RuleOf returns the rule id or locator of a suspect that is parked: if a display is, the suspect's Rule begins with displayPrefix.
func RuleOf(id string) string { return strings.TrimPrefix(id, displayPrefix) }

// The codes under which contested targets are listed among the parked records.
const (
	ItemContested   = "item.contested"
	UniqueContested = "unique.contested"
)

// PerTooMany is the code under which aggregates are listed among the parked records that have too many values.
const PerTooMany = "per.too_many"

// crowdedPrefix begins the id of such an aggregate's row.
const crowdedPrefix = "values:"

// CrowdedID is the id of the row of an aggregate that has too many values.
func CrowdedID(ruleID, group string) string {
	return crowdedPrefix + ruleID + "/" + change.Key{Partition: group}.String()
}

// ReadCrowded reads the row of an aggregate that has too many values. It reports false for any other row.
func ReadCrowded(row change.Item) (ruleID, group string, ok bool) {
	rest, ok := strings.CutPrefix(parkedID(row), crowdedPrefix)
	ruleID, text, cut := strings.Cut(rest, "/")
	return ruleID, change.ParseKey(text).Partition, ok && cut
}

// contestedPrefix begins the id of a contested target's row. No rule's name holds a colon.
const contestedPrefix = "contested:"

// ContestedTarget is a target that several items may claim: a mirror item, or a unique value.
type ContestedTarget struct {
	ID     string     // of the rule, or of the locator with its mark
	Target change.Key // of a mirror item
	Value  string     // of a locator; "" of a mirror item
}

// Text is the target's key, or the unique value.
func (t ContestedTarget) Text() string {
	if t.Value != "" {
		return t.Value
	}
	return t.Target.String()
}

// RowID is the id of the target's row among the parked records.
func (t ContestedTarget) RowID() string {
	if t.Value != "" {
		return contestedPrefix + t.ID + "/" + change.Key{Partition: t.Value}.String()
	}
	return contestedPrefix + t.ID + "/" + t.Target.String()
}

// Code is the code under which the target is listed.
func (t ContestedTarget) Code() string {
	if t.Value != "" {
		return UniqueContested
	}
	return ItemContested
}

// ReadContested reads the row of a contested target. It reports false for any other row.
func ReadContested(row change.Item) (ContestedTarget, bool) {
	rest, ok := strings.CutPrefix(parkedID(row), contestedPrefix)
	id, text, cut := strings.Cut(rest, "/")
	if !ok || !cut {
		return ContestedTarget{}, false
	}
	if _, located := effects.LocatorIn(id); located {
		return ContestedTarget{ID: id, Value: change.ParseKey(text).Partition}, true
	}
	return ContestedTarget{ID: id, Target: change.ParseKey(text)}, true
}

// factOfContested says that a target is listed as contested. The fact holds the row's
// code only if that is another one than the target's.
func (a *Auditor) factOfContested(t ContestedTarget, code string, emit func(drift.Fact)) {
	if !a.inForce(t.ID) {
		return
	}
	if code == t.Code() {
		code = ""
	}
	if t.Value != "" {
		emit(drift.Fact{About: About(AboutLocator, t.ID, t.Value), Tag: TagListed, Data: code})
	} else if b := a.ByID(t.ID); b.Claimed() {
		emit(drift.Fact{About: About(AboutClaims, t.ID, t.Target.String()), Tag: TagListed, Data: code})
	}
}

// CompareListing says how the row of a target differs from what its claimants ask for:
// it stands exactly while there are two or more of them.
func CompareListing(f drift.Finding, t ContestedTarget, claimants int, row change.Item) []drift.Finding {
	want := ""
	if claimants > 1 {
		want = t.Code()
	}
	if row["code"].Text() == want && (want != "" || row == nil) {
		return nil
	}
	f.Item, f.Group = t.Target, t.Value
	return compareCode(f, want, row)
}
