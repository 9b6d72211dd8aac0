package audit

import (
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
)

// ParkingStays reports whether a code stays parked until an operator retries
// or discards it: the engine met it while it wrote, and the items do not show it.
func ParkingStays(code string) bool {
	return slices.Contains([]string{"write.rejected", "heal.contested", "number.overflow"}, code)
}

// parkingJudged reports whether the items alone decide what is parked under a code.
func parkingJudged(code string) bool {
	return !ParkingStays(code) && !strings.HasPrefix(code, "record.")
}

// ParkedRow is one row of the state table that sets an (item, rule) aside.
type ParkedRow struct {
	ID   string // the rule id, or "@" and the locator
	Item string // the item's key as text
	Code string // "" if the row's attributes contradict its key
}

// ReadParked reads a row that sets an (item, rule) aside. It reports false for a
// stream record that could not be read, and for a cut key without its whole id.
func ReadParked(row change.Item) (ParkedRow, bool) {
	name := row["sk"].Text()
	if cutForm.MatchString(name) {
		name = row["id"].Text()
	}
	id, item, ok := strings.Cut(name, "/")
	_, raw := row["raw"]
	p := ParkedRow{ID: id, Item: item}
	if row["id"].Text() == name && row["rule"].Text() == id && row["item"].Text() == item {
		p.Code = row["code"].Text()
	}
	return p, ok && !raw
}

// inForce reports whether a rule in force, or a locator of one, is judged under an id.
func (a *Auditor) inForce(id string) bool {
	if locator, ok := plan.LocatorIn(id); ok {
		return a.locators[locator]
	}
	return a.judged[a.ByID(id)]
}

func (a *Auditor) factOfParked(row change.Item, emit func(drift.Fact)) {
	if t, ok := ReadContested(row); ok {
		a.factOfContested(t, row["code"].Text(), emit)
		return
	}
	if p, ok := ReadParked(row); ok && a.inForce(p.ID) && parkingJudged(p.Code) {
		emit(drift.Fact{About: About(AboutParked, p.ID, p.Item), Tag: TagHave, Data: p.Code})
	}
}

// MustBeParked says that an item asks for being parked under a rule or locator.
func MustBeParked(id string, key change.Key, code string, emit func(drift.Fact)) {
	emit(drift.Fact{About: About(AboutParked, id, key.String()), Tag: TagWant, Data: code})
}

// CompareParked says how a row differs from the code that an item asks for; ""
// asks for none. row is nil if nothing is parked.
func CompareParked(f drift.Finding, want string, row change.Item) []drift.Finding {
	p, _ := ReadParked(row)
	if _, raw := row["raw"]; raw || p.Code == want || !parkingJudged(p.Code) {
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
