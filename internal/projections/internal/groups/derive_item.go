package groups

import (
	"context"
	"slices"
	"strings"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/effects"
	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/projections/internal/target"
	"github.com/dynamill/dynamill/internal/rules"
)

// itemDerivation is the work on one item, round by round.
type itemDerivation struct {
	run
	to                 target.Sender
	it                 *Item
	rows               map[table.Key]table.Row
	fresh              bool  // the item was read with the rows
	refused            bool  // DynamoDB has refused a write
	suspect            int   // the rule that leaveOut tries first
	correctionsCounted bool  // MayHeal has counted them
	beyondBound        []int // indices in Live of rules whose values may not be corrected again for a while
}

// deriveItem brings one item to what the rows say. A write that leaves the item there is conditional on its stamps, as any roll-up. One
// that makes or deletes it goes in a transaction which checks that the rows are as they were read: no stamp on a deleted item would hold
// off a late worker.
func (r run) deriveItem(ctx context.Context, to target.Sender, it *Item, rows map[table.Key]table.Row) error {
	if err := r.tidyItem(ctx, it, &rows); err != nil {
		return err
	}
	w := &itemDerivation{run: r, to: to, it: it, rows: rows}
	return table.Contend(ctx, "deriving "+it.Key.String(), func() (table.Round, error) {
		ended, err := w.round(ctx)
		if ended == target.Written || err != nil {
			return table.Finished, err
		}
		items, values, err := r.Tables.ReadBoth(ctx, "reading a derived item", []change.Key{it.Key}, it.Rows())
		w.rows, w.fresh, it.known, it.seen = values, true, true, table.Image(items[it.Key])
		return table.Lost, err
	})
}

// round brings the item to what the rows say, as far as it is known. It returns RaceLost if the caller must read item and rows again.
func (w *itemDerivation) round(ctx context.Context) (target.Outcome, error) {
	it, s := w.it, AddUpItem(w.it, w.rows)
	for i, g := range it.parts() {
		if err := w.read(ctx, g, &s.Totals[i]); err != nil {
			return target.RaceLost, err
		}
	}
	w.leaveOutSpent(s)
	leftOut := w.fresh && w.fit(it, s)
	if err := w.noteTotals(ctx, it, s); err != nil {
		return target.RaceLost, err
	}
	if it.known && (w.fresh || !it.forced) && w.isRight(it, s, it.seen) {
		return target.Written, nil
	}
	if it.known && !w.fresh && !it.seenWhole() {
		return target.RaceLost, nil // the item comes or goes as a whole, in a transaction
	}
	if !w.correctionsCounted {
		if err := w.countCorrections(ctx, s); err != nil || len(w.beyondBound) > 0 {
			return target.RaceLost, err
		}
	}
	if w.isLeft(s) {
		return target.Written, nil
	}
	bring := func() (target.Outcome, error) { return w.writeItem(ctx, s, leftOut) }
	ended, err := bring()
	if ended != target.Refused {
		return ended, err
	}
	if w.refused = true; !w.fresh {
		return target.RaceLost, nil
	}
	return w.leaveOut(ctx, s, err, bring)
}

// countCorrections counts the corrections of what another program overwrote. A rule that has had too many of them is parked. If the item
// was deleted, and a rule has counted more since, the item that comes again is no correction: the engine may have deleted it itself.
func (w *itemDerivation) countCorrections(ctx context.Context, s ItemTotals) error {
	for _, i := range w.it.corrections {
		if showed := w.it.showed[i]; showed != 0 && showed != s.Totals[i].Operations {
			continue
		}
		switch allowed, err := w.MayHeal(ctx, w.it.Live[i], w.it.Key, true); {
		case err != nil:
			return err
		case !allowed:
			w.beyondBound = append(w.beyondBound, i)
		}
	}
	w.correctionsCounted = true
	return nil
}

// leaveOutSpent leaves out the rules beyond their bound. An item that comes as a whole comes with their values.
func (w *itemDerivation) leaveOutSpent(s ItemTotals) {
	if w.it.known && !w.it.seenWhole() {
		return
	}
	for _, i := range w.beyondBound {
		s.Totals[i].Err = errCorrectionsSpent
	}
}

// isLeft reports whether an item that another program deleted or replaced is left as it is: all its rules are beyond their bounds.
func (w *itemDerivation) isLeft(s ItemTotals) bool {
	if len(w.beyondBound) == 0 || w.it.expired || w.it.seenWhole() {
		return false
	}
	for i, t := range s.Totals {
		if t.Err == nil && !slices.Contains(w.beyondBound, i) {
			return false
		}
	}
	return true
}

// errCorrectionsSpent marks a rule whose values stay as they are, because its corrections are beyond the bound. The rule is parked already.
var errCorrectionsSpent = &rules.ItemError{Code: effects.CodeHealContested}

// writeItem writes the item. One that stays is written without a check of the rows, unless a worker that has read it could not do so.
func (w *itemDerivation) writeItem(ctx context.Context, s ItemTotals, leftOut bool) (target.Outcome, error) {
	stays := s.Members > 0 && (!w.it.known || w.it.seenWhole()) && w.hasRoom(w.it, s)
	if stays && (!w.fresh || leftOut || w.refused) {
		ended, _, err := w.to.Write(ctx, w.itemWrite(w.it, s))
		if ended == target.Written && err == nil {
			w.Counters.Rollups.Add(1)
		}
		if ended != target.RaceLost || err != nil {
			return ended, err
		}
	}
	if !w.fresh {
		return target.RaceLost, nil
	}
	return w.deriveInTransaction(ctx, w.it, s, w.rows)
}

// leaveOut parks the rule whose values make DynamoDB refuse an item: without it, DynamoDB takes the write. If no rule is to blame alone,
// all are parked. After a lost race it goes on with the same rule.
func (w *itemDerivation) leaveOut(ctx context.Context, s ItemTotals, refusal error, bring func() (target.Outcome, error),
) (target.Outcome, error) {
	why, live := host.WriteRejected(table.Refusal(refusal)), w.it.Live
	for range live {
		i := w.suspect % len(live)
		if s.Totals[i].Err == nil {
			s.Totals[i].Err = why
			ended, err := bring()
			if ended == target.Written && err == nil {
				err = w.ParkTarget(ctx, live[i], w.it.Key, why)
			}
			if ended != target.Refused {
				return ended, err
			}
			s.Totals[i].Err = nil
		}
		w.suspect++
	}
	for i, b := range live {
		if s.Totals[i].Err == nil {
			if err := w.ParkTarget(ctx, b, w.it.Key, why); err != nil {
				return target.RaceLost, err
			}
		}
	}
	return target.Written, nil
}

// deriveInTransaction makes, replaces, writes or deletes the item that was read, if rows and stamps are still as they were read. If
// DynamoDB refuses that, the error says why.
func (r run) deriveInTransaction(ctx context.Context, it *Item, s ItemTotals, rows map[table.Key]table.Row) (target.Outcome, error) {
	var part ddb.TransactWriteItem
	switch {
	case it.seen != nil && r.isLater(it):
		return target.Written, nil // rules that this process does not know have it: it is about to find out
	case s.Members <= 0 && it.seen != nil && it.Waits && plan.IsMade(it.Key, it.seen), s.Members > 0 && plan.IsMade(it.Key, it.seen):
		w := target.On(it.Live[0], "", it.Key)
		putAll(w, r.content(it, s))
		w.Condition = r.asRead(it, w.Expression)
		part = w.InTransaction(r.Tables.Reader)
	case s.Members <= 0 && it.Waits:
		return target.Written, nil
	case s.Members <= 0:
		part = r.deletePart(it)
	case it.seen == nil && it.expired && !it.forced && showedAll(it, s):
		return r.noteExpiry(ctx, it, s, rows)
	default:
		part = r.putPart(it, s)
	}
	parts := []ddb.TransactWriteItem{part}
	for _, key := range it.Rows() {
		c := table.NewExpression() // absent: no operation was ever counted there
		parts = append(parts, r.Tables.CheckPart(key, table.Whole(c.SameAs(rows[key], "ops")), c))
	}
	err := r.Tables.Transact(ctx, "deriving "+it.Key.String(), []string{it.Live[0].ID}, parts)
	switch {
	case table.LostRace(err):
		return target.RaceLost, nil
	case table.Refusal(err) != "":
		return target.Refused, err
	case err != nil:
		return target.RaceLost, err
	}
	r.Counters.Made.Add(1)
	return target.Written, nil
}

// isLater reports whether the item carries the stamp of a rule that this process does not know, or of a later rules epoch.
func (r run) isLater(it *Item) bool {
	for name, v := range it.seen.All() {
		id, stamped := strings.CutPrefix(name, stamp.Prefix)
		s, ok := stamp.Parse(v)
		if stamped && ok && s.Context == stamp.Context(r.Planner.Incarnation, it.Key, "") &&
			(r.Planner.AnyByID(id) == nil || s.Version.RulesEpoch() > r.Planner.Epoch) {
			return true
		}
	}
	return false
}

// showedAll reports whether an expired item showed every operation. If it did not, it comes back. A parked rule does not count: it shows
// what it showed before.
func showedAll(it *Item, s ItemTotals) bool {
	for i, t := range s.Totals {
		if t.Err == nil && it.showed[i] != t.Operations {
			return false
		}
	}
	return true
}

// noteExpiry notes that the item's time to live has passed, after so many operations.
func (r run) noteExpiry(ctx context.Context, it *Item, s ItemTotals, rows map[table.Key]table.Row) (target.Outcome, error) {
	for _, key := range it.Rows() {
		if state.CountOf(rows[key]["ops"]) == 0 {
			continue
		}
		c := table.NewExpression()
		condition := table.Whole(c.SameAs(rows[key], "ops"))
		update := c.Format("SET %n = %v", state.ExpiredAt, table.Number(s.Operations))
		written, err := r.Tables.UpdateState(ctx, it.Live[0].ID, "noting that "+it.Key.String()+" expired", key, update, condition, c)
		if err != nil || !written {
			return target.RaceLost, err
		}
		break
	}
	return target.Written, nil
}
