package oracle

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamill/dynamill/change"
)

// TestWhatIsOccupiedIsParked looks at the parked rows of hand-made state tables.
func TestWhatIsOccupiedIsParked(t *testing.T) {
	parked := func(rule, item string) change.Item {
		row := change.Item{"pk": change.String("parked"), "sk": change.String(rule + "/" + item), "id": change.String(rule + "/" + item),
			"rule": change.String(rule), "item": change.String(item), "code": change.String("mirror.occupied")}
		for _, name := range []string{"reason", "parking", "parkedAt"} {
			row[name] = change.String("x")
		}
		return row
	}
	view, code := parked("views", "POST#c/VIEW#1"), parked("codes", "CODE#c/POST")
	several := parked("contested:codes", "CODE#c/POST")
	several["rule"], several["code"] = change.String("codes"), change.String("item.contested")
	for name, c := range map[string]struct {
		items items
		state []change.Item
		want  []string
	}{
		"two places, with one source and with several": {views(), []change.Item{view, code, several}, nil},
		"nothing is parked": {views(), nil,
			[]string{"parked codes/CODE#c/POST", "parked contested:codes/CODE#c/POST", "parked views/POST#c/VIEW#1"}},
		"the source is gone": {views().without("USER#1", "POST#c"), []change.Item{view, code, several},
			[]string{"parked views/POST#c/VIEW#1"}},
		"one of several sources is gone": {views().without("USER#1", "POST#a"), []change.Item{view, code}, nil},
		"the place is free": {views().without("CODE#c", "POST"), []change.Item{view, code, several},
			[]string{"parked codes/CODE#c/POST"}},
		"the item has become one of the target's entity": {views().with("POST#c", "VIEW#1", "kind", "view"), []change.Item{view, code, several},
			[]string{"parked views/POST#c/VIEW#1"}},
		"the engine has made the item": {views().mirrored("POST#c", "VIEW#1"), []change.Item{code, several}, nil},
		"an adopted item": {views(), []change.Item{view, code, several, parked("views", "POST#b/VIEW#1")},
			[]string{"parked views/POST#b/VIEW#1"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, d := range Audit(compile(t, viewsRules), c.items.list(), c.state, time.Unix(0, 0)) {
				if d.Key.Partition == "parked" {
					got = append(got, d.Key.Partition+" "+d.Key.Sort)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
