package leftovers_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/kinds"
	"github.com/dynamill/dynamill/internal/projections/internal/leftovers"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/rules"
)

const groupRules = `
version: 1
table: { keys: [pk, sk] }
entities:
  Group:      { key: { pk: "GROUP#${groupId}", sk: "METADATA" } }
  Membership: { key: { pk: "USER#${userId}",   sk: "GROUP#${groupId}" } }
  Member:     { key: { pk: "GROUP#${groupId}", sk: "USER#${userId}" } }
rules:
  member-list:  { mirror: Membership, as: Member, attributes: [role, joinedAt] }
  member-count: { count: Membership, as: Group.memberCount, where: role != "banned" }
`

func s(text string) change.Value { return change.String(text) }

func load(t *testing.T, file string) *rules.Set {
	t.Helper()
	set, err := rules.Load("dynamill.yaml", []byte(file), kinds.All)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func groupPlanner(t *testing.T) *plan.Planner {
	t.Helper()
	set, ids := load(t, groupRules), map[*rules.Rule]string{}
	for _, r := range set.Rules {
		ids[r] = r.Name
	}
	return &plan.Planner{Bindings: plan.Bind(set, ids), Incarnation: "i", Epoch: 1}
}

// former binds a rule of groupRules, with one text in the file replaced, as one that has retired.
func former(t *testing.T, name, old, new string) *plan.Binding {
	t.Helper()
	for _, r := range load(t, strings.Replace(groupRules, old, new, 1)).Rules {
		if r.Name == name {
			b := plan.NewFormer(r, name+"-0")
			b.Retired.Store(true)
			return b
		}
	}
	t.Fatalf("there is no rule %s", name)
	return nil
}

func TestAnImageTellsWhatARetiredRuleLeft(t *testing.T) {
	group, member := change.Key{Partition: "GROUP#g1", Sort: "METADATA"}, change.Key{Partition: "GROUP#g1", Sort: "USER#u1"}
	count := former(t, "member-count", "Group.memberCount", "Group.members")
	same := former(t, "member-count", "role != \"banned\"", "role == \"banned\"")
	list := former(t, "member-list", "[role", "[extra, role")
	stamp := func(b *plan.Binding, key change.Key, item change.Item) change.Value {
		return s(stamp.Stamp{Context: stamp.Context("i", key, ""), Version: stamp.VersionOf(1, 4), Digest: plan.DigestOf(b, item)}.String())
	}
	with := func(b *plan.Binding, key change.Key, item change.Item) change.Item {
		item[b.Stamp] = stamp(b, key, item)
		return item
	}
	overwritten := with(count, group, change.Item{"members": change.Number("4")})
	overwritten["members"] = change.Number("5")
	mirror := func() change.Item { return with(list, member, change.Item{"role": s("admin"), "extra": s("x")}) }
	taken := mirror()
	p := groupPlanner(t)
	inForce := func(name string) *plan.Binding {
		for _, r := range p.Set.Rules {
			if r.Name == name {
				return p.Of(r)
			}
		}
		t.Fatalf("there is no rule %s", name)
		return nil
	}
	with(inForce("member-list"), member, taken)
	counted := with(inForce("member-count"), group, with(same, group, change.Item{"memberCount": change.Number("4")}))
	cloned := mirror()
	cloned[list.Stamp] = stamp(list, group, cloned)
	made := mirror()
	made[plan.MadeAttribute] = s(plan.MadeMark(member))
	seeding := former(t, "member-count", "Group.memberCount", "Group.members")
	seeding.Retired.Store(false)
	for name, tt := range map[string]struct {
		b    *plan.Binding
		key  change.Key
		item change.Item
		want *leftovers.Leftover // nil: none
	}{
		"its attribute": {count, group, with(count, group, change.Item{"members": change.Number("4")}),
			&leftovers.Leftover{Names: []string{"members"}}},
		"one that a rule in force wrote, too": {same, group, counted, &leftovers.Leftover{}},
		"one that a rule in force is to write": {same, group, with(same, group, change.Item{"memberCount": change.Number("4")}),
			&leftovers.Leftover{Names: []string{"memberCount"}}},
		"one that somebody has overwritten":      {count, group, overwritten, &leftovers.Leftover{}},
		"a rule that is only retiring":           {seeding, group, with(seeding, group, change.Item{"members": change.Number("4")}), nil},
		"no stamp":                               {count, group, change.Item{"members": change.Number("4")}, nil},
		"what is no stamp":                       {count, group, change.Item{count.Stamp: s("mine")}, nil},
		"another kind of key":                    {count, member, with(count, group, change.Item{"members": change.Number("4")}), nil},
		"its mirror item":                        {list, member, made, &leftovers.Leftover{Whole: true}},
		"the application's item that it adopted": {list, member, mirror(), &leftovers.Leftover{Names: []string{"extra", "role", "joinedAt"}}},
		"its mirror item that another rule has":  {list, member, taken, &leftovers.Leftover{Names: []string{"extra"}}},
		"a clone of its mirror item":             {list, member, cloned, &leftovers.Leftover{}},
		"an item of no entity with its mirrored": {list, change.Key{Partition: "OTHER", Sort: "x"}, mirror(), nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := groupPlanner(t)
			p.AddFormer(tt.b)
			item := tt.item
			position, _ := change.NewPosition("2026-01-01T00:00:00.000", "123")
			pl := p.Plan([]change.Record{{Key: tt.key, Position: position, New: item}}, leftovers.PlanRecord)
			got := leftovers.Found(pl).Of(plan.ItemRule{Binding: tt.b, Key: tt.key})
			if (got == nil) != (tt.want == nil) {
				t.Fatalf("left over is %+v, want %+v", got, tt.want)
			}
			if got == nil {
				return
			}
			if diff := cmp.Diff(tt.want.Names, got.Names); diff != "" && len(tt.want.Names)+len(got.Names) > 0 {
				t.Error(diff)
			}
			if got.Whole != tt.want.Whole || got.Whole != (len(got.Makers) > 0) {
				t.Errorf("goes as a whole: %v, unless one of %d rules has it", got.Whole, len(got.Makers))
			}
		})
	}
}

func TestWhatALateWriteReplacedIsPutBack(t *testing.T) {
	group := change.Key{Partition: "GROUP#g1", Sort: "METADATA"}
	late := former(t, "member-count", "Group.memberCount", "Group.members")
	other := plan.NewFormer(late.Rule, "member-count-1")
	other.Retired.Store(true)
	item := func(b *plan.Binding, count string) change.Item {
		it := change.Item{"members": change.Number(count)}
		it[b.Stamp] = s(stamp.Stamp{Context: stamp.Context("i", group, ""), Version: stamp.VersionOf(1, 4),
			Digest: plan.DigestOf(b, it)}.String())
		return it
	}
	both := item(late, "5")
	both[other.Stamp] = item(other, "5")[other.Stamp]
	for name, tt := range map[string]struct {
		old, new change.Item
		names    []string
		back     map[string]change.Value
	}{
		"the application's value": {change.Item{"members": change.Number("77")}, item(late, "5"), []string{"members"},
			map[string]change.Value{"members": change.Number("77")}},
		"none":                                 {change.Item{}, item(late, "5"), []string{"members"}, nil},
		"an equal one of the application":      {change.Item{"members": change.Number("5")}, item(late, "5"), nil, nil},
		"an equal one of another retired rule": {item(other, "5"), both, []string{"members"}, nil},
		"another one of another retired rule":  {item(other, "4"), item(late, "5"), []string{"members"}, nil},
		"one that the late rule itself wrote":  {item(late, "4"), item(late, "5"), []string{"members"}, nil},
		"no late write, but somebody else's": {change.Item{}, func() change.Item {
			it := item(late,
				"5")
			it["members"] = change.Number("6")
			return it
		}(), nil, nil},
		"nothing, for the item was put by then": {nil, item(late, "5"), []string{"members"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := groupPlanner(t)
			p.AddFormer(late, other)
			position, _ := change.NewPosition("2026-01-01T00:00:00.000", "123")
			rec := change.Record{Key: group, Position: position, New: tt.new}
			if tt.old != nil {
				rec.Old = tt.old
			}
			got := leftovers.Found(p.Plan([]change.Record{rec}, leftovers.PlanRecord)).Of(plan.ItemRule{Binding: late, Key: group})
			if got == nil {
				t.Fatal("nothing is left over")
			}
			if diff := cmp.Diff(tt.names, got.Names) + cmp.Diff(tt.back, got.Back); diff != "" {
				t.Error(diff)
			}
		})
	}
}
