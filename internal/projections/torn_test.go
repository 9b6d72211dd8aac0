package projections

import (
	"maps"
	"strings"
	"testing"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
)

// tear takes an attribute from every row of the state table whose partition key begins so.
func (w *world) tear(prefix, attribute string) {
	w.t.Helper()
	torn := 0
	for _, row := range w.scan("app-dynamill") {
		if _, has := row[attribute]; has && strings.HasPrefix(row["pk"].Text(), prefix) {
			row = maps.Clone(row)
			delete(row, attribute)
			w.putState(row)
			torn++
		}
	}
	if torn == 0 {
		w.t.Fatalf("no row %s has %s", prefix, attribute)
	}
}

// TestALedgerEntryThatIsNoneIsNamedWithItsRemedy tears entries of which records and rederivations start.
func TestALedgerEntryThatIsNoneIsNamedWithItsRemedy(t *testing.T) {
	w := newWorld(t, socialRules)
	w.social()
	e := w.seeded()
	from := w.drain(e, 0)
	w.tear(state.EntryPrefix+"USER#u1/GROUP#", "a")
	member := change.Key{Partition: "USER#u1", Sort: "GROUP#g0"}
	w.update(member, change.Item{"role": s("other")})
	_, applied := e.Process(w.ctx, w.records()[from:])
	for name, err := range map[string]error{"a record": applied, "rederiving": e.Rederive(w.ctx, []change.Key{member})} {
		if err == nil || !strings.Contains(err.Error(), "USER#u1/GROUP#g0") || !strings.Contains(err.Error(), "`dynamill verify --repair`") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestADanglingReferenceWithoutItsPositionHoldsUpNothing has a parent change whose child is gone.
func TestADanglingReferenceWithoutItsPositionHoldsUpNothing(t *testing.T) {
	w := newWorld(t, socialRules)
	w.social()
	e := w.seeded()
	w.drain(e, 0)
	for _, it := range w.items() { // their records are lost
		if strings.HasPrefix(it["sk"].Text(), "COMMENT#") {
			w.delete(change.Key{Partition: it["pk"].Text(), Sort: it["sk"].Text()})
		}
	}
	w.tear("ref/", "a")
	from := len(w.records())
	w.update(change.Key{Partition: "USER#u1", Sort: "PROFILE"}, change.Item{"name": s("Changed")})
	w.drain(e, from)
}
