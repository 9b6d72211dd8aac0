package oracle

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
)

func TestDrift(t *testing.T) {
	nines := strings.Repeat("9", decimal.DigitsMax)
	for name, c := range map[string]struct {
		rules string
		items items
		want  []string
	}{
		"a table that is right has none": {groupsRules, groups(), nil},
		"an empty table has none":        {groupsRules, items{}, nil},
		"a table known by ids has none":  {likesRules, likes(), nil},
		"numbers compare by value":       {groupsRules, groups().with("GROUP#dev", "METADATA", "points", change.Number("7.00")), nil},
		"numbers inside lists do as well": {groupsRules, groups().with("USER#ada", "PROFILE", "name", list("1.0")).with("GROUP#dev", "USER#ada",
			"userName", list("1")).with("NOTE#1", "METADATA", "author", list("1")), nil},
		"a count over nothing is not absent": {groupsRules, groups().with("GROUP#ops", "METADATA", "memberCount", nil), []string{
			`GROUP#ops/METADATA memberCount: want 0, got nothing (rule member-count)`}},
		"a sum over nothing is not absent": {groupsRules, groups().with("GROUP#ops", "METADATA", "points", nil), []string{
			`GROUP#ops/METADATA points: want 0, got nothing (rule member-sum)`}},
		"if_none: absent hides a 0 over nothing": {hidden(groupsRules), groups(), []string{
			`GROUP#ops/METADATA memberCount: want nothing, got 0 (rule member-count)`,
			`GROUP#ops/METADATA points: want nothing, got 0 (rule member-sum)`}},
		"if_none: absent hides a 0 that items add up to": {hidden(groupsRules), groups().
			with("USER#ada", "GROUP#dev", "points", -2).with("GROUP#dev", "USER#ada", "points", -2).
			with("GROUP#dev", "METADATA", "points", 0).with("GROUP#ops", "METADATA", "points", nil, "memberCount", nil), []string{
			`GROUP#dev/METADATA points: want nothing, got 0 (rule member-sum)`}},

		"a stale copy": {groupsRules, groups().with("USER#ada", "PROFILE", "name", "Adele"), []string{
			`GROUP#dev/USER#ada userName: want "Adele", got "Ada" (rule member-name)`,
			`NOTE#1/METADATA author: want "Adele", got "Ada" (rule note-author)`}},
		"a missing copy": {groupsRules, groups().with("GROUP#dev", "USER#ada", "userName", nil), []string{
			`GROUP#dev/USER#ada userName: want "Ada", got nothing (rule member-name)`}},
		"a copy of a parent that is gone": {groupsRules, groups().without("USER#ben", "PROFILE"), []string{
			`GROUP#dev/USER#ben userName: want nothing, got "Ben" (rule member-name)`}},
		"if_missing is not there": {groupsRules, groups().with("NOTE#1", "METADATA", "userId", "eve"), []string{
			`NOTE#1/METADATA author: want "[deleted]", got "Ada" (rule note-author)`}},
		"a copy without a reference": {groupsRules, groups().with("NOTE#1", "METADATA", "userId", nil), []string{
			`NOTE#1/METADATA author: want nothing, got "Ada" (rule note-author)`}},
		"a copy with a bad reference is not compared": {groupsRules, groups().with("NOTE#1", "METADATA", "userId", list("1")), nil},

		"a wrong count": {groupsRules, groups().with("GROUP#dev", "METADATA", "memberCount", 2), []string{
			`GROUP#dev/METADATA memberCount: want 1, got 2 (rule member-count)`}},
		"a lost count": {groupsRules, groups().with("GROUP#dev", "METADATA", "memberCount", nil), []string{
			`GROUP#dev/METADATA memberCount: want 1, got nothing (rule member-count)`}},
		"a count over nothing": {groupsRules, groups().with("GROUP#ops", "METADATA", "memberCount", 3), []string{
			`GROUP#ops/METADATA memberCount: want 0, got 3 (rule member-count)`}},
		"a count that is no number": {groupsRules, groups().with("GROUP#ops", "METADATA", "memberCount", "many"), []string{
			`GROUP#ops/METADATA memberCount: want 0, got "many" (rule member-count)`}},
		"an average":       {daysRules, days("0.5"), nil},
		"an average of 0s": {daysRules, days("0").with("DAY#1", "METADATA", "cpu", 0).without("DAY#1", "SAMPLE#2"), nil},
		"an average that is rounded to fewer digits": {daysRules, days("0.66666666666666666666").with("DAY#1", "SAMPLE#3", "cpu", 1), []string{
			"DAY#1/METADATA cpu: want 0.66666666666666666666666666666666666667, got 0.66666666666666666666 (rule day-cpu)"}},
		"an average of 0 is not nothing": {daysRules, days("0").with("DAY#1", "METADATA", "cpu", nil).without("DAY#1", "SAMPLE#2"), []string{
			"DAY#1/METADATA cpu: want 0, got nothing (rule day-cpu)"}},
		"an average of nothing is not 0": {daysRules, days("0").without("DAY#1", "SAMPLE#1").without("DAY#1", "SAMPLE#2"), []string{
			"DAY#1/METADATA cpu: want nothing, got 0 (rule day-cpu)"}},
		"a wrong sum": {groupsRules, groups().with("GROUP#dev", "METADATA", "points", 8), []string{
			`GROUP#dev/METADATA points: want 7, got 8 (rule member-sum)`}},
		"a bad contribution contributes nothing": {groupsRules,
			groups().with("USER#ben", "GROUP#dev", "points", "two").with("GROUP#dev", "USER#ben", "points", "two"), []string{
				`GROUP#dev/METADATA points: want 5, got 7 (rule member-sum)`}},
		"a sum that no number holds is not compared": {groupsRules,
			groups().with("USER#ben", "GROUP#dev", "points", change.Number(nines)).with("GROUP#dev", "USER#ben", "points", change.Number(nines)),
			nil},

		"a missing mirror item, which is counted all the same": {groupsRules, groups().without("GROUP#dev", "USER#ada"), []string{
			`GROUP#dev/USER#ada: want an item, got none (rule member-list)`}},
		"a mirror item that nothing asks for": {groupsRules, groups().mirrored("GROUP#ops", "USER#ada", "role", "admin"), []string{
			`GROUP#ops/USER#ada: want no item, got one (rule member-list)`}},
		"a clone of a mirror item under a key that nothing asks for is the application's": {groupsRules,
			groups().with("GROUP#ops", "USER#ada", "role", "admin", "userName", "Ada", "_dm_member-list", stampText, "_dm",
				madeAt("GROUP#dev", "USER#ada")).
				with("GROUP#ops", "METADATA", "memberCount", 1), nil},
		"a mirror item that the application made and a copy reached is counted": {groupsRules,
			groups().with("GROUP#ops", "USER#ada", "role", "admin", "userName", "Ada", "_dm_member-name", stampText), []string{
				`GROUP#ops/METADATA memberCount: want 1, got 0 (rule member-count)`}},
		"a stale mirrored attribute": {groupsRules, groups().with("GROUP#dev", "USER#ada", "role", "member"), []string{
			`GROUP#dev/USER#ada role: want "admin", got "member" (rule member-list)`}},
		"a mirrored attribute that the source lost": {groupsRules, groups().with("USER#ada", "GROUP#dev", "role", nil), []string{
			`GROUP#dev/USER#ada role: want nothing, got "admin" (rule member-list)`}},
		"an unban reaches the count through the mirror": {groupsRules, groups().with("USER#ben", "GROUP#dev", "role", "member"), []string{
			`GROUP#dev/METADATA memberCount: want 2, got 1 (rule member-count)`,
			`GROUP#dev/USER#ben role: want "member", got "banned" (rule member-list)`}},

		"views of the engine and of the application": {viewsRules, views(), nil},
		"a view is gone": {viewsRules, views().without("POST#a", "VIEW#1"), []string{`POST#a/VIEW#1: want an item, got none (rule views)`}},
		"an adopted view without what its source asks for": {viewsRules, views().with("POST#b", "VIEW#1", "title", "own", "place", 7), []string{
			`POST#b/VIEW#1 place: want nothing, got 7 (rule views)`, `POST#b/VIEW#1 title: want "B", got "own" (rule views)`}},
		"an adopted view without a source": {viewsRules, views().without("USER#1", "POST#b").with("CODE#c", "POST", "title", "own"), nil},
		"a view that was made, and no source": {viewsRules, views().without("USER#1", "POST#a").with("USER#1", "PROFILE", "views", 1), []string{
			`POST#a/VIEW#1: want no item, got one (rule views)`}},
		"a view that was made has lost its entity": {viewsRules, views().with("POST#a", "VIEW#1", "kind", nil), []string{
			`POST#a/VIEW#1 kind: want "view", got nothing (rule views)`}},
		"a view that was made has lost its entity and its source": {viewsRules,
			views().with("POST#a", "VIEW#1", "kind", "other").without("USER#1", "POST#a").
				with("USER#1", "PROFILE", "views", 1), []string{`POST#a/VIEW#1: want no item, got one (rule views)`}},
		"an occupied place is counted": {viewsRules, views().with("USER#1", "PROFILE", "views", 3),
			[]string{`USER#1/PROFILE views: want 2, got 3 (rule viewed)`}},
		"an occupied place whose item was made": {viewsRules, views().mirrored("CODE#c", "POST", "title", "own"), []string{
			`CODE#c/POST kind: want "code", got nothing (rule codes)`, `CODE#c/POST title: want "A", got "own" (rule codes)`}},

		"a copy for which there is no room is not compared": {groupsRules,
			groups().with("NOTE#1", "METADATA", "author", nil, "fill", strings.Repeat("x", itemBytesMax-100)), nil},
		"a copy for which there is room": {groupsRules, groups().with("NOTE#1", "METADATA", "author", nil, "fill",
			strings.Repeat("x", itemBytesMax-1000)), []string{
			`NOTE#1/METADATA author: want "Ada", got nothing (rule note-author)`}},
		"a mirror item for which there is no room is not missed": {groupsRules,
			groups().with("USER#ada", "GROUP#dev", "role", strings.Repeat("x", itemBytesMax-100)).without("GROUP#dev", "USER#ada").
				with("GROUP#dev", "METADATA", "memberCount", 0, "points", 2), nil},

		"a wrong count by id": {likesRules, likes().with("USER#ada", "POST#p1", "likes", 3), []string{
			`USER#ada/POST#p1 likes: want 2, got 3 (rule like-count)`}},
		"two items of one id: the second displays nothing": {likesRules, likes().with("USER#zoe", "POST#p1", "likes", 2), []string{
			`USER#zoe/POST#p1 likes: want nothing, got 2 (rule like-count)`}},
		"two items of one id: the first displays it": {likesRules, likes().with("USER#aaa", "POST#p1").with("USER#ada", "POST#p1", "likes", nil),
			[]string{
				`USER#aaa/POST#p1 likes: want 2, got nothing (rule like-count)`}},
		"two sources of one mirror item: the first wins": {likesRules, likes().with("CUSTOMER#0", "ORDER#a", "total", 5), []string{
			`ORDER#a/BY-ID total: want 5, got 10 (rule order-list)`}},
		"two sources of one mirror item: the second loses": {likesRules, likes().with("CUSTOMER#2", "ORDER#a", "total", 5), nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, d := range Drift(compile(t, c.rules), c.items.list()) {
				got = append(got, d.String())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestAMirrorItemThatExpiredMayBeAbsent has one that is counted, and one that is back.
func TestAMirrorItemThatExpiredMayBeAbsent(t *testing.T) {
	expired := Expired(change.Key{Partition: "POST#a", Sort: "VIEW#1"})
	for name, c := range map[string]struct {
		items items
		want  []string
	}{
		"absent":              {views().without("POST#a", "VIEW#1").with("USER#1", "PROFILE", "views", 1), nil},
		"absent, and counted": {views().without("POST#a", "VIEW#1"), []string{`USER#1/PROFILE views: want 1, got 2 (rule viewed)`}},
		"there":               {views(), nil},
		"there, and stale":    {views().with("POST#a", "VIEW#1", "title", "x"), []string{`POST#a/VIEW#1 title: want "A", got "x" (rule views)`}},
		"there, without a source": {views().without("USER#1", "POST#a").with("USER#1", "PROFILE", "views", 1), []string{
			`POST#a/VIEW#1: want no item, got one (rule views)`}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, d := range Drift(compile(t, viewsRules), c.items.list(), expired) {
				got = append(got, d.String())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func list(numbers ...string) change.Value {
	var vs []change.Value
	for _, n := range numbers {
		vs = append(vs, change.Number(n))
	}
	return change.List(vs)
}
