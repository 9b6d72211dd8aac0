package oracle

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamill/dynamill/change"
)

const mirrorStamp = "_dm_member-list"

func TestForeign(t *testing.T) {
	// base is what the application writes in the table that groups returns, among it on a mirror item, and one of the mirror's shape that it
	// made itself.
	base := items{}.
		with("USER#ada", "PROFILE", "name", "Ada").
		with("USER#ben", "PROFILE", "name", "Ben").
		with("GROUP#dev", "METADATA", "name", "Developers").
		with("GROUP#ops", "METADATA", "name", "Operations", "memberCount", 42).
		with("USER#ada", "GROUP#dev", "role", "admin", "points", change.Number("5.0")).
		with("USER#ben", "GROUP#dev", "role", "banned", "points", 2).
		with("NOTE#1", "METADATA", "userId", "ada").
		with("OTHER#1", "THING", "memberCount", 9).
		mirrored("GROUP#dev", "USER#ben", "role", "guest", "seat", "door", "hat", "red").
		with("GROUP#ops", "USER#eve", "role", "guest", "seat", "window")
	good := groups().
		with("GROUP#dev", "USER#ben", "seat", "door", "hat", "red").
		with("GROUP#ops", "USER#eve", "role", "guest", "seat", "window", "userName", "Eve", "_dm_member-name", stampText)

	for name, c := range map[string]struct {
		items items
		want  []string
	}{
		"all is theirs":                                 {good, nil},
		"a mirror item is gone":                         {good.without("GROUP#dev", "USER#ada"), nil},
		"theirs went with a mirror item":                {good.without("GROUP#dev", "USER#ben"), nil},
		"theirs went with a mirror item that came back": {good.with("GROUP#dev", "USER#ben", "seat", nil, "hat", nil), nil},

		"an attribute was changed": {good.with("USER#ada", "PROFILE", "name", "Adele"), []string{
			`USER#ada/PROFILE name: want "Ada", got "Adele"`}},
		"an attribute was removed": {good.with("GROUP#ops", "METADATA", "name", nil), []string{
			`GROUP#ops/METADATA name: want "Operations", got nothing`}},
		"an attribute was added": {good.with("GROUP#ops", "METADATA", "motto", "x"), []string{
			`GROUP#ops/METADATA motto: want nothing, got "x"`}},
		"another entity's derived attribute was added": {good.with("GROUP#ops", "METADATA", "userName", "x"), []string{
			`GROUP#ops/METADATA userName: want nothing, got "x"`}},
		"a stamp where no rule writes": {good.with("USER#ada", "PROFILE", mirrorStamp, stampText), []string{
			`USER#ada/PROFILE _dm_member-list: want nothing, got "contexts0--digestof"`}},
		"an item of no entity was changed": {good.with("OTHER#1", "THING", "memberCount", 1), []string{
			`OTHER#1/THING memberCount: want 9, got 1`}},
		"an item of no entity was stamped": {good.with("OTHER#1", "THING", mirrorStamp, stampText), []string{
			`OTHER#1/THING _dm_member-list: want nothing, got "contexts0--digestof"`}},

		"an item was deleted":              {good.without("NOTE#1", "METADATA"), []string{`NOTE#1/METADATA: want an item, got none`}},
		"an item of no entity was deleted": {good.without("OTHER#1", "THING"), []string{`OTHER#1/THING: want an item, got none`}},
		"an item was made":                 {good.with("NOTE#2", "METADATA", "author", "x"), []string{`NOTE#2/METADATA: want no item, got one`}},
		"an item of no entity was made": {good.with("OTHER#2", "THING", mirrorStamp, stampText),
			[]string{`OTHER#2/THING: want no item, got one`}},
		"a mirror item was made without a mark": {good.with("GROUP#ops", "USER#ada", "role", "admin"), []string{
			`GROUP#ops/USER#ada: want no item, got one`}},
		"a mirror item was made with stamps alone": {good.with("GROUP#ops", "USER#ada", "role", "admin", mirrorStamp, stampText), []string{
			`GROUP#ops/USER#ada: want no item, got one`}},
		"a mirror item was made with more than is mirrored": {good.with("GROUP#dev", "USER#ada", "seat", "x"), []string{
			`GROUP#dev/USER#ada seat: want nothing, got "x"`}},

		"theirs on a mirror item was changed": {good.with("GROUP#dev", "USER#ben", "seat", "x"), []string{
			`GROUP#dev/USER#ben seat: want "door", got "x"`}},
		"some of theirs on a mirror item was removed": {good.with("GROUP#dev", "USER#ben", "hat", nil), []string{
			`GROUP#dev/USER#ben hat: want "red", got nothing`}},
		"an item of the mirror's shape that nothing asks for was changed": {good.with("GROUP#ops", "USER#eve", "role", "admin"), []string{
			`GROUP#ops/USER#eve role: want "guest", got "admin"`}},
		"an item of the mirror's shape that nothing asks for lost what is mirrored": {good.with("GROUP#ops", "USER#eve", "role", nil), nil},
		"an item of the mirror's shape that nothing asks for lost more": {good.with("GROUP#ops", "USER#eve", "seat", nil), []string{
			`GROUP#ops/USER#eve seat: want "window", got nothing`}},
		"an item of the mirror's shape that nothing asks for was deleted": {good.without("GROUP#ops", "USER#eve"), []string{
			`GROUP#ops/USER#eve: want an item, got none`}},
		"an item of the mirror's shape was marked": {good.mirrored("GROUP#ops", "USER#eve"), []string{
			`GROUP#ops/USER#eve _dm: want nothing, got "40cecd109327fb7d"`}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, d := range Foreign(compile(t, groupsRules), base.list(), c.items.list()) {
				got = append(got, d.String())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestForeignOnMirrorsPlaces judges what the application has where views belong.
func TestForeignOnMirrorsPlaces(t *testing.T) {
	base := views().without("POST#a", "VIEW#1").with("USER#1", "PROFILE", "views", nil).
		with("POST#b", "VIEW#1", "title", "mine", "place", 7, "_dm_views", nil)
	for name, c := range map[string]struct {
		items items
		want  []string
	}{
		"all is theirs":           {views(), nil},
		"an adopted item is gone": {views().without("POST#b", "VIEW#1"), []string{`POST#b/VIEW#1: want an item, got none`}},
		"more of an adopted item is gone": {views().with("POST#b", "VIEW#1", "note", nil),
			[]string{`POST#b/VIEW#1 note: want "own", got nothing`}},
		"an adopted item has lost its entity": {views().with("POST#b", "VIEW#1", "kind", nil), []string{
			`POST#b/VIEW#1 kind: want "view", got nothing`, `POST#b/VIEW#1 title: want "mine", got "B"`}},
		"what was mirrored is taken off an adopted item": {views().without("USER#1", "POST#b").with("POST#b", "VIEW#1", "title", nil), []string{
			`USER#1/POST#b: want an item, got none`}},
		"what was mirrored stays on an adopted item": {views().without("USER#1", "POST#b"), []string{
			`POST#b/VIEW#1 title: want "mine", got "B"`, `USER#1/POST#b: want an item, got none`}},
		"another entity's item was written on": {views().with("POST#c", "VIEW#1", "title", "C"),
			[]string{`POST#c/VIEW#1 title: want "own", got "C"`}},
		"another entity's item was marked": {views().mirrored("CODE#c", "POST"), []string{
			`CODE#c/POST _dm: want nothing, got "d58ae7fead9e9d2b"`}},
		"another entity's item was replaced": {views().mirrored("POST#c", "VIEW#1", "kind", "view", "title", "C", "place", nil), []string{
			`POST#c/VIEW#1 _dm: want nothing, got "4bf9693971689431"`, `POST#c/VIEW#1 kind: want "other", got "view"`}},
		"another entity's item is gone": {views().without("CODE#c", "POST"), []string{`CODE#c/POST: want an item, got none`}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, d := range Foreign(compile(t, viewsRules), base.list(), c.items.list()) {
				got = append(got, d.String())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
