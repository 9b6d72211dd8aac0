package host

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// A target is contested while two or more items claim it. It then has a row among the parked records, and its set the attribute `listed`.
// Every change of a set is followed by a derivation or a roll-up, which reads the set anyway. If `listed` does not fit the number of
// claimants, that reader writes row and attribute in one transaction, on condition that the set did not change since it was read. If it
// did, the worker that changed it reads it again later. So an uncontested target costs nothing, and no late worker leaves a stale row
// (docs/adr/0017-contention-is-listed.md). While no rule of a locator is live, the worker reads it for this alone.

// UpdateContentionList lists a contested target, and unlists another, by its set as it was read. It logs one at most once an hour.
func (h *Host) UpdateContentionList(ctx context.Context, t audit.ContestedTarget, set state.Set) error {
	contested := len(set.Sources) > 1
	if contested {
		h.logContention(ctx, t, set.Sources)
	}
	if contested == set.Listed {
		return nil
	}
	items := []ddb.TransactWriteItem{h.listingWrite(t, contested), h.listedWrite(t, set, contested)}
	err := h.Tables.Transact(ctx, "listing the claimants of "+t.Text(), []string{t.ID}, items)
	if contested && table.Refusal(err) != "" { // the set is full: its row has no room for one attribute more
		c := table.NewExpression()
		items[1] = h.Tables.CheckPart(state.SetKey(t), state.SetIs(c, set), c)
		err = h.Tables.Transact(ctx, "listing the claimants of "+t.Text(), []string{t.ID}, items)
	}
	if table.LostRace(err) {
		return nil // the set changed since: the worker that changed it updates the list
	}
	if err == nil && contested {
		h.Counters.Parked.Add(1)
	}
	return err
}

// UnlistIfUncontested deletes the row of a listed target if the target is no longer contested.
func (h *Host) UnlistIfUncontested(ctx context.Context, t audit.ContestedTarget) error {
	key := state.SetKey(t)
	rows, err := h.Tables.ReadState(ctx, "reading the claimants of "+t.Text(), []table.Key{key})
	if err != nil || audit.TornSet(attributes.ItemFromTable(rows[key])) {
		return err
	}
	found := state.ReadSet(rows[key], t.Value != "")
	switch {
	case len(found.Sources) > 1:
		return nil
	case rows[key] == nil:
		return h.Unpark(ctx, t.RowID(), "")
	}
	found.Listed = true
	return h.UpdateContentionList(ctx, t, found)
}

// listingWrite puts the row of a contested target, or deletes it.
func (h *Host) listingWrite(t audit.ContestedTarget, contested bool) ddb.TransactWriteItem {
	if !contested {
		return h.Tables.DeletePart(state.ParkedKey(t.RowID()), "", table.NewExpression())
	}
	r := state.Parked{
		ID: t.RowID(), Rule: t.ID, Item: t.Target, Value: t.Value, Code: t.Code(), At: h.Now(), Parking: state.NewID(),
		Reason: "several items claim it, and the one with the smallest key wins",
	}.Row()
	return h.Tables.PutPart(r, "", table.NewExpression())
}

// listedWrite notes in a set whether its target is listed, provided that the set did not change since it was read.
func (h *Host) listedWrite(t audit.ContestedTarget, set state.Set, contested bool) ddb.TransactWriteItem {
	c := table.NewExpression()
	update := "REMOVE " + c.Name("listed")
	if contested {
		update = c.Format("SET %n = %v", "listed", &ddb.AttributeValueMemberBOOL{Value: true})
	}
	return h.Tables.UpdatePart(state.SetKey(t), update, state.SetIs(c, set), c)
}

// claimantsShown is how many claimants a line names.
const claimantsShown = 3

// claimantsText names a few claimants, and says how many more there are.
func claimantsText(claimants []string) string {
	text := strings.Join(claimants[:min(len(claimants), claimantsShown)], ", ")
	if more := len(claimants) - claimantsShown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// ContentionReason says which items claim a target, which of them wins, and what to do.
func ContentionReason(t audit.ContestedTarget, claimants []string) string {
	if len(claimants) < 2 {
		return "fewer than two items claim this by now: the next change, or a retry, deletes the row"
	}
	what := "ask for this item"
	if t.Value != "" {
		what = fmt.Sprintf("have the unique value %q", t.Value)
	}
	return fmt.Sprintf("%d items %s: %s. %s wins, because its key is the smallest: %s",
		len(claimants), what, claimantsText(claimants), claimants[0], contentionRemedy(t))
}

func contentionRemedy(t audit.ContestedTarget) string {
	if t.Value != "" {
		return "give each of the others a value of its own, or delete them"
	}
	return "delete the others, or change them so that each asks for an item of its own"
}

const (
	// contentionLogEvery is how long a process stays silent about a contested target that it has logged.
	contentionLogEvery = time.Hour
	// contentionLogMax bounds how many targets a process logs, and remembers, in that time.
	contentionLogMax = 1_000
)

// contentionLog decides which contested targets a process logs: each at most once an hour. It is safe for concurrent use.
type contentionLog struct {
	mu     sync.Mutex
	since  time.Time       // the hour's begin
	logged map[string]bool // the ids of the rows of targets logged in it
	full   bool            // that further targets are contested is logged
}

// admit says whether to log a contested target now, or that there are more than are logged.
func (l *contentionLog) admit(id string, now time.Time) (target, others bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.logged == nil || now.Sub(l.since) >= contentionLogEvery {
		l.since, l.logged, l.full = now, map[string]bool{}, false
	}
	switch {
	case l.logged[id] || l.full:
		return false, false
	case len(l.logged) >= contentionLogMax:
		l.full = true
		return false, true
	}
	l.logged[id] = true
	return true, false
}

// logContention logs that several items claim one target, and which of them wins.
func (h *Host) logContention(ctx context.Context, t audit.ContestedTarget, claimants []string) {
	switch target, others := h.contentions.admit(t.RowID(), h.Now()); {
	case target:
		what := slog.String("target", t.Target.String())
		if t.Value != "" {
			what = slog.String("value", t.Value)
		}
		h.Logger.WarnContext(ctx, "several items claim one target; the smallest key wins", "rule", h.Planner.NameOf(t.ID), what,
			"claimants", len(claimants), "among_them", claimantsText(claimants), "winner", claimants[0],
			"remedy", contentionRemedy(t), "code", t.Code())
	case others:
		h.Logger.WarnContext(ctx, "further targets are contested, and not logged before the hour is over: `dynamill parked list` shows them all",
			"logged", contentionLogMax)
	}
}
