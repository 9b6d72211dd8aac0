package copies

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/projections/internal/target"
)

// unread writes a parent's state on children that were not read, each on condition that it refers to the parent and holds no later
// state. All these writes differ in the child's key and in three values; the rest is worked out once.
type unread struct {
	run
	pw    parentWrite
	state string // of the parent, as stamps hold it behind their context

	once                  sync.Once
	first                 *target.Write // the form of all
	stamp, context, below string        // placeholders of the values in which they differ
}

// writeUnread writes to children that references name. One that is refused comes with the refusal: RaceLost also says that only a
// child's attributes tell whether it refers to the parent.
func (w run) writeUnread(ctx context.Context, pw parentWrite, keys []change.Key) ([]target.Answer, error) {
	u := unread{run: w, pw: pw, state: stamp.Stamp{Version: pw.Version, Digest: plan.Digest(pw.Binding, pw.values)}.String()}
	answers, err := w.Targets.Send(ctx, len(keys), func(i int) *target.Write { return u.to(keys[i]) })
	if err != nil {
		return nil, err
	}
	for i := range answers {
		if answers[i].Ended == target.Written {
			w.Counters.Children.Add(1)
		}
	}
	return answers, nil
}

// to is the write of one child; nil if only its attributes tell whether it refers to the parent.
func (u *unread) to(child change.Key) *target.Write {
	texts, ok := u.pw.Rule.Join.Texts(u.pw.Parent, child)
	if !ok {
		return nil
	}
	u.once.Do(func() { u.form(texts) })
	context := stamp.Context(u.Planner.Incarnation, child, u.pw.Parent.String())
	t := u.first.Again("copying to "+child.String(), child)
	t.Values[u.stamp], t.Values[u.context] = table.Text(context+u.state), table.Text(context)
	t.Values[u.below] = table.Text(context + string(cmp.Or(u.pw.Since, u.pw.Version)))
	return t
}

// form makes the form of all writes. The texts are those of the attributes by which any child refers to the parent.
func (u *unread) form(texts map[string]string) {
	t := target.On(u.pw.Binding, "", change.Key{})
	u.stamp, u.context, u.below = t.Value(nil), t.Value(nil), t.Value(nil)
	t.PutPlaceholder(u.pw.Stamp, u.stamp)
	u.pw.putCopies(t)
	t.Condition = target.StillEntity(u.Tables.Reader, t.Expression, u.pw.Rule.Target)
	for _, attribute := range slices.Sorted(maps.Keys(texts)) {
		t.Condition += target.HoldsText(t.Expression, attribute, texts[attribute])
	}
	t.Condition += target.UnstampedOrBelow(t.Expression, u.pw.Stamp, u.context, u.below)
	u.first = t
}
