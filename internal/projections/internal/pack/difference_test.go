package pack_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/projections/internal/effects"
	"github.com/dynamill/dynamill/internal/projections/internal/kinds"
	"github.com/dynamill/dynamill/internal/projections/internal/pack"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/rules"
)

const clubRules = `
version: 1
table: { keys: [pk, sk] }
entities:
  Club:   { key: { pk: "CLUB#${clubId}", sk: "INFO" } }
  Member: { key: { pk: "USER#${userId}", sk: "CLUB#${clubId}" } }
  Card:   { key: { pk: "CLUB#${clubId}", sk: "USER#${userId}" } }
rules:
  points: { sum: points, of: Member, as: Club.points }
  cards:  { mirror: Member, as: Card, attributes: [name] }
`

func clubPlanner(t *testing.T) *plan.Planner { return plannerOf(t, clubRules) }

func plannerOf(t *testing.T, file string) *plan.Planner {
	t.Helper()
	set, err := rules.Load("club", []byte(file), kinds.All)
	if err != nil {
		t.Fatal(err)
	}
	ids := map[*rules.Rule]string{}
	for _, r := range set.Rules {
		ids[r] = r.Name
	}
	return &plan.Planner{Bindings: plan.Bind(set, ids), Incarnation: "i", Epoch: 1}
}

var (
	member = change.Key{Partition: "USER#u", Sort: "CLUB#c"}
	one    = effects.Key{ID: "points", For: "one"}
	two    = effects.Key{ID: "points", For: "two"}
)

func adds(amount int64, group string) effects.Effect {
	return effects.Effect{Kind: effects.Contribution, Amount: decimal.New(amount), Group: group}
}

func parked(code string) effects.Effect {
	return effects.ParkedBy(&rules.ItemError{Code: code})
}

// A source that moves from one group to another under one purpose, and takes its place under
// another, adds once to each group.
func TestEffectsUnderOneRuleAddUpByGroup(t *testing.T) {
	p := clubPlanner(t)
	mv := &plan.Move{Key: member, Old: effects.ByKey{one: adds(3, "a")}, New: effects.ByKey{one: adds(3, "b"), two: adds(5, "a")}}
	packs := pack.Of(p, []*plan.Move{mv})
	if len(packs) != 1 {
		t.Fatalf("%d packs, want 1", len(packs))
	}
	got := map[string]string{}
	for _, s := range packs[0].Sums {
		got[s.Group.Group] = s.Delta.String()
	}
	if diff := cmp.Diff(map[string]string{"a": "2", "b": "3"}, got); diff != "" {
		t.Error(diff)
	}
}

// No number holds both contributions, so that they go in two steps. Neither is lost.
func TestContributionsThatNoNumberHoldsTogetherGoInSteps(t *testing.T) {
	p := clubPlanner(t)
	huge, err := effects.Parse("+" + strings.Repeat("9", 38) + "00 a")
	if err != nil {
		t.Fatal(err)
	}
	tenth, err := effects.Parse("+0.1 a")
	if err != nil {
		t.Fatal(err)
	}
	mv := &plan.Move{Key: member, New: effects.ByKey{one: huge, two: tenth}}
	if pack.Fits(p, mv) {
		t.Fatal("one transaction is to hold both")
	}
	pack.Divide(p, mv)
	if len(mv.Step) != 1 {
		t.Fatalf("the first step moves %d effects", len(mv.Step))
	}
	if packs := pack.Of(p, []*plan.Move{mv}); len(packs) != 1 || len(packs[0].Moves) != 1 || len(packs[0].Sums) != 1 {
		t.Errorf("packs of the first step: %+v", packs)
	}
}

// The (item, rule) has one row among the parked records, however many effects are parked under the rule.
func TestAnItemIsParkedOnceForAllEffectsUnderARule(t *testing.T) {
	p := clubPlanner(t)
	both, first := effects.ByKey{one: parked("x"), two: parked("y")}, effects.ByKey{one: parked("x")}
	for name, tt := range map[string]struct {
		old, new effects.ByKey
		repark   bool
		want     []plan.ActionKind
	}{
		"both parked":                {nil, both, false, []plan.ActionKind{plan.Park}},
		"one cleared, one stays":     {both, first, false, nil},
		"the first cleared":          {both, effects.ByKey{two: parked("y")}, false, []plan.ActionKind{plan.Park}},
		"both cleared":               {both, nil, false, []plan.ActionKind{plan.Unpark}},
		"one joins":                  {first, both, false, nil},
		"nothing changes":            {both, both, false, nil},
		"parked anew":                {both, both, true, []plan.ActionKind{plan.Park}},
		"one moves, and one is left": {effects.ByKey{one: parked("x"), two: adds(1, "a")}, first, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, actions := pack.Difference(p, &plan.Move{Key: member, Old: tt.old, New: tt.new, Repark: tt.repark})
			var got []plan.ActionKind
			for _, a := range actions {
				got = append(got, a.Kind)
				if a.Target != member {
					t.Errorf("an action on %s", a.Target)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A move with several effects under one rule goes in steps that move one effect each, and ends where it should.
func TestAMoveGoesInStepsOfSingleEffects(t *testing.T) {
	p := clubPlanner(t)
	want := p.EffectsOf(member, change.Item{"points": change.Number("5"), "name": change.String("Ada")})
	want[two] = adds(7, "b")
	mv := &plan.Move{Key: member, First: -1, New: want, StepMax: 1}
	mv.Expect(nil, p.Bindings)
	steps := 0
	for ; !pack.Fits(p, mv) && steps < 10; steps++ {
		pack.Divide(p, mv)
		if len(mv.Step) != 1 {
			t.Fatalf("step %d moves %v, want one effect", steps, mv.Step)
		}
		if !mv.Advance(p.Epoch) {
			t.Fatal("the move ends with a step")
		}
		mv.StepMax = 1 // it doubles with each step that succeeds
	}
	if steps != len(want)-1 || len(mv.Changing()) != 1 || cmp.Diff(want.Keys(), mv.Next().Keys()) != "" {
		t.Errorf("after %d steps %v are in force, and %v changes", steps, mv.Next(), mv.Changing())
	}
}

func TestEffectsUnderALocatorThatIsNoMoreAreNotTakenBack(t *testing.T) {
	p := clubPlanner(t)
	gone, err := effects.Parse("=0123456789abcdef t")
	if err != nil {
		t.Fatal(err)
	}
	mv := &plan.Move{Key: change.Key{Partition: "p"}, Old: effects.ByKey{{ID: "@Post"}: {Kind: effects.Located, Group: "x"},
		{ID: "gone"}: gone, {ID: "sum"}: {Kind: effects.Contribution, Group: "g"}}}
	if sums, actions := pack.Difference(p, mv); len(sums)+len(actions) > 0 {
		t.Errorf("%v, %v", sums, actions)
	}
}

// TestPacksOfOneCounterGoSideBySideUnderTheirSuffixes has three packs add to one counter.
func TestPacksOfOneCounterGoSideBySideUnderTheirSuffixes(t *testing.T) {
	for suffixes, want := range map[int][]int{1: {1, 1, 1}, 2: {2, 1}, 4: {3}} {
		p := plannerOf(t, strings.Replace(clubRules, "as: Club.points", fmt.Sprintf("as: Club.points, write_shards: %d", suffixes), 1))
		group := plan.GroupRef{Binding: p.ByID("points"), Group: "c"}
		var packs []*pack.Pack
		for i := range 3 {
			packs = append(packs, &pack.Pack{Number: i + 1, Sums: []plan.Sum{{Group: group}}})
		}
		var got []int
		for _, wave := range pack.Waves(packs) {
			got = append(got, len(wave))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d suffixes: waves of %v packs, want %v", suffixes, got, want)
		}
	}
}
