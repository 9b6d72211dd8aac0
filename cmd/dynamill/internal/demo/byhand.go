package demo

import (
	"context"
	"fmt"
	"strconv"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/printable"
)

// handTotal is a total of the handler written by hand, beside what dynamill shows.
type handTotal struct {
	key           change.Key
	attribute     string
	hand, derived int
}

func (t handTotal) wrong() bool { return t.hand != t.derived }

// handTotals reads the totals of the handler written by hand; none without one.
func (p *play) handTotals(ctx context.Context, items snapshot) ([]handTotal, error) {
	found, err := p.bench.ByHand(ctx)
	if err != nil {
		return nil, err
	}
	var totals []handTotal
	for _, f := range found {
		t := handTotal{key: f.Key, attribute: f.Attribute, hand: f.Count}
		if shown := items[f.Key].Lookup(f.Attribute); shown.Kind() == change.KindNumber {
			if t.derived, err = strconv.Atoi(shown.Text()); err != nil {
				return nil, fmt.Errorf("a count is no whole number: %w", err)
			}
		}
		totals = append(totals, t)
	}
	return totals, nil
}

// handWritten shows which totals of the handler written by hand are wrong now.
func (p *play) handWritten(ctx context.Context, items snapshot) error {
	totals, err := p.handTotals(ctx, items)
	if err != nil {
		return err
	}
	for _, t := range totals {
		if t.wrong() {
			text := fmt.Sprintf("%s=%d, dynamill has %d", t.attribute, t.hand, t.derived)
			p.paper.columns(p.view.marked("ADD", badNews, t.key), 2+markWidth+p.view.indent(), []span{ink(text, badNews)}, 2)
		}
	}
	return nil
}

// compareByHand says at the end how many totals of the handler written by hand are wrong.
func (p *play) compareByHand(ctx context.Context, end snapshot) error {
	totals, err := p.handTotals(ctx, end)
	if err != nil || len(totals) == 0 {
		return err
	}
	wrong := 0
	for _, t := range totals {
		if t.wrong() {
			wrong++
		}
	}
	tone := goodNews
	if wrong > 0 {
		tone = badNews
	}
	p.paper.say(2, ink("By hand: ", heading), ink(fmt.Sprintf("with a bare ADD, %d of %s are wrong.",
		wrong, printable.Counted(len(totals), "total")), tone))
	return nil
}
