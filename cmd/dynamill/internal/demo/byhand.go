package demo

import (
	"context"
	"fmt"
	"strconv"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/printable"
	"github.com/dynamill/dynamill/internal/sim/workbench"
)

// wrongTotal is a total of the handler written by hand that differs from what dynamill shows.
type wrongTotal struct {
	workbench.Total
	derived int
}

// wrongTotals finds the wrong totals of the handler written by hand, among all that it has; none without one.
func (p *play) wrongTotals(ctx context.Context, items snapshot) (wrong []wrongTotal, all int, err error) {
	totals, err := p.bench.ByHand(ctx)
	if err != nil {
		return nil, 0, err
	}
	for _, t := range totals {
		derived := 0
		if shown := items[t.Key].Lookup(t.Attribute); shown.Kind() == change.KindNumber {
			if derived, err = strconv.Atoi(shown.Text()); err != nil {
				return nil, 0, fmt.Errorf("a count is no whole number: %w", err)
			}
		}
		if t.Count != derived {
			wrong = append(wrong, wrongTotal{t, derived})
		}
	}
	return wrong, len(totals), nil
}

// handWritten shows which totals of the handler written by hand are wrong now.
func (p *play) handWritten(ctx context.Context, items snapshot) error {
	wrong, _, err := p.wrongTotals(ctx, items)
	for _, t := range wrong {
		text := fmt.Sprintf("%s=%d, dynamill has %d", t.Attribute, t.Count, t.derived)
		p.paper.columns(p.view.marked("ADD", badNews, t.Key), 2+markWidth+p.view.indent(), []span{ink(text, badNews)}, 2)
	}
	return err
}

// compareByHand says at the end how many totals of the handler written by hand are wrong.
func (p *play) compareByHand(ctx context.Context, end snapshot) error {
	wrong, all, err := p.wrongTotals(ctx, end)
	if err != nil || all == 0 {
		return err
	}
	tone := goodNews
	if len(wrong) > 0 {
		tone = badNews
	}
	p.paper.say(2, ink("By hand: ", heading), ink(fmt.Sprintf("with a bare ADD, %d of %s are wrong.",
		len(wrong), printable.Counted(all, "total")), tone))
	return nil
}
