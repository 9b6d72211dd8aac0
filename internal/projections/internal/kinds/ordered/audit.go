package ordered

import (
	"slices"
	"strconv"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/auditing"
	"github.com/dynamill/dynamill/internal/projections/internal/effects"
	"github.com/dynamill/dynamill/internal/projections/internal/explaining"
	"github.com/dynamill/dynamill/internal/projections/internal/groupaudit"
	"github.com/dynamill/dynamill/internal/projections/internal/groups"
	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

var (
	_ host.Grouper         = (*kind)(nil)
	_ host.Actor           = (*kind)(nil)
	_ host.Keeper          = (*kind)(nil)
	_ host.Debouncer       = (*kind)(nil)
	_ plan.Actor           = (*kind)(nil)
	_ audit.Family         = (*kind)(nil)
	_ auditing.Family      = (*kind)(nil)
	_ explaining.Family    = (*kind)(nil)
	_ groups.Reader        = (*Form)(nil)
	_ groupaudit.Form      = (*Form)(nil)
	_ groupaudit.Collector = (*Form)(nil)
)

// RowFacts implements audit.Family.
func (k *kind) RowFacts(a *audit.Auditor, r audit.Row, emit func(drift.Fact)) {
	groupaudit.RowFacts(k, a, r, emit)
}

// collection are the digests of the members that a target shows: of a group, it keeps no more than these.
type collection struct {
	form  *Form
	shown []string
}

// Collect implements groupaudit.Collector.
func (f *Form) Collect() groupaudit.Collection { return &collection{form: f} }

// Add implements groupaudit.Collection.
func (c *collection) Add(digest string) {
	switch full := len(c.shown) == c.form.shows(); {
	case !full:
		c.shown = append(c.shown, digest)
	case c.form.kind.backward:
		c.shown = append(c.shown[1:], digest)
	}
}

// noneShown is the digest of a member that shows nothing.
var noneShown = effects.MemberDigest(nil)

// Shown implements groupaudit.Collection.
func (c *collection) Shown() string {
	shown := slices.Clone(c.shown)
	if c.form.kind.backward {
		slices.Reverse(shown)
	}
	if c.form.count > 0 {
		return strings.Join(append([]string{strconv.Itoa(len(shown))}, shown...), " ")
	}
	if shown[0] == noneShown {
		return ""
	}
	return shown[0]
}

// RowsOf implements explaining.Family: the member rows of a source, beside the accumulator of a target.
func (k *kind) RowsOf(x *explaining.Explainer, b *plan.Binding, s *audit.Subject) []explaining.Row {
	rows := k.Auditing.RowsOf(x, b, s)
	asked := x.Planner.EffectsOf(s.Key, s.Image)
	for _, key := range asked.Keys() {
		if f := asked[key]; key.ID == b.ID && f.Member != nil {
			row := state.MemberKey(plan.GroupRef{Binding: b, Group: f.Group}, f.Member, s.Key, key.For)
			rows = append(rows, explaining.Row{Key: row, Name: "member row", Rule: b.ID, Says: memberWords(f)})
		}
	}
	return rows
}

func memberWords(f effects.Effect) func(table.Row) string {
	return func(r table.Row) string {
		shown, ok := state.ReadMember(r)
		switch {
		case r == nil:
			return ""
		case !ok || effects.MemberDigest(shown) != f.Member.Digest:
			return "a member of " + f.Group + ", but not as the item asks: run `dynamill verify --repair`"
		}
		return "a member of " + f.Group + ", of which is shown: " + audit.Text(change.Map(shown))
	}
}
