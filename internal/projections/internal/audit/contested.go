package audit

import (
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
)

// The codes under which contested targets are listed among the parked records.
const (
	ItemContested   = "item.contested"
	UniqueContested = "unique.contested"
)

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
	name := row["id"].Text()
	if sort := row["sk"].Text(); sort != "" && !cutForm.MatchString(sort) { // the key tells more surely
		name = sort
	}
	rest, ok := strings.CutPrefix(name, contestedPrefix)
	id, text, cut := strings.Cut(rest, "/")
	if !ok || !cut {
		return ContestedTarget{}, false
	}
	if _, located := plan.LocatorIn(id); located {
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
