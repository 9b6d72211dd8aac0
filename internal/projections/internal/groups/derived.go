package groups

import (
	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/effects"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/rules"
)

// The rules on a derived entity make its items together. An item exists exactly while one of these rules has a member. Whatever
// the application puts under such a key belongs to the rules, so the key alone decides.

// classifyDerived asks for a derived item to be brought up to date if another program wrote or deleted it, or if it came. An
// item that DynamoDB's time to live deleted stays away.
func classifyDerived(p *plan.Planner, pl *plan.Changes, b *plan.Binding, s *plan.Sides) bool {
	rec := s.Record
	if !b.Rule.Target.HasKey(rec.Key) {
		return false
	}
	context, group := contextOf(b, p.Incarnation, rec.Key, ""), plan.GroupRef{Binding: b, Group: rec.Key.String()}
	if rec.Old != nil && rec.New != nil && IsWhole(b.Rule.Target, rec.Key, rec.New) && IsWhole(b.Rule.Target, rec.Key, rec.Old) {
		ours := plan.Stamped(b, context, rec.Old) && !plan.Foreign(b, context, rec.Old, rec.New)
		if ours || plan.Untouched(b, rec.Old, rec.New) {
			if ru := pl.Rollups.Of(group); ru != nil { // of an earlier record: other rules may find more in this one
				see(ru, rec.Key, rec.New)
			}
			return false
		}
	}
	ru := pl.Rollups.OrPut(group, plan.Rollup{First: s.Index})
	ru.Expired = rec.New == nil && rec.Expired && IsWhole(b.Rule.Target, rec.Key, rec.Old)
	if rec.New == nil && rec.Old != nil {
		if st, ok := stamp.Read(rec.Old.Lookup(b.Stamp), context); ok {
			ru.Showed = st.Version.Count()
		}
	}
	ru.Deleted = rec.New == nil && !rec.Expired
	see(ru, rec.Key, rec.New)
	if !rec.Expired && isCorrection(b, context, rec.Old, rec.New) {
		plan.Note(&ru.Corrections, rec.Key)
	}
	return true
}

// see notes a target as it was at a moment; nil: there was none.
func see(ru *plan.Rollup, key change.Key, img change.Image) {
	if ru.Seen == nil {
		ru.Seen = map[change.Key]change.Image{}
	}
	ru.Seen[key] = img
}

// look plans to look at the derived items that an item is, or contributes to.
func look(pl *plan.Changes, b *plan.Binding, key change.Key, m *rules.Match, img change.Image) {
	if b.Rule.Target.HasKey(key) {
		ru := pl.Rollups.OrPut(plan.GroupRef{Binding: b, Group: key.String()}, plan.Rollup{})
		ru.Looked = true
		see(ru, key, img)
	}
	if img == nil || m.Entity != b.Rule.Source {
		return
	}
	// Of an item that the rule cannot read, some elements are told all the same: looking there changes nothing that is right.
	_ = b.Family.(plan.Feeder).Effects(b, m, img, func(_ string, f effects.Effect) {
		if f.Kind == effects.Contribution {
			pl.Rollups.OrPut(plan.GroupRef{Binding: b, Group: f.Group}, plan.Rollup{}).Looked = true
		}
	})
}
