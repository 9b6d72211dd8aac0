package rules_test

import (
	"strings"
	"testing"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/internal/rules/rulediff"
)

func TestPaddedNumberKeepsItsKey(t *testing.T) {
	s := load(t, "padded-keys.yaml")
	nines := strings.Repeat("9", 38)
	for _, tt := range []struct{ partition, sort, variable, value string }{
		{"BOARD#g", "SCORE#0000000005#p", "points", "5"},
		{"BOARD#g", "SCORE#0000000000#p", "points", "0"},
		{"BOARD#g", "SCORE#9999999999#p", "points", "9999999999"},
		{"PAGE#012", "PAGE", "no", "12"},
		{"PAGE#012", "LINE#" + nines, "line", nines},
		{"RANKS#g", "PLACE#a-1#00007", "points", "7"},
	} {
		m := identify(t, s, tt.partition, tt.sort, nil)
		if v := m.Entity.Value(tt.variable, m, nil); !v.Equal(change.Number(tt.value)) {
			t.Errorf("%s / %s has %v, want the number %s", tt.partition, tt.sort, v, tt.value)
		}
		if key := (change.Key{Partition: tt.partition, Sort: tt.sort}); m.Key() != key {
			t.Errorf("%v renders back as %v", key, m.Key())
		}
	}
	for _, key := range []change.Key{
		{Partition: "BOARD#g", Sort: "SCORE#5#p"}, {Partition: "BOARD#g", Sort: "SCORE#00000000005#p"},
		{Partition: "BOARD#g", Sort: "SCORE#000000000x#p"}, {Partition: "BOARD#g", Sort: "SCORE#-000000005#p"},
		{Partition: "BOARD#g", Sort: "SCORE#0000000005"}, {Partition: "PAGE#+12", Sort: "PAGE"}, {Partition: "PAGE#٠١٢", Sort: "PAGE"},
	} {
		if m, ok := s.Identify(key, nil); ok {
			t.Errorf("%v is taken for a %s", key, m.Entity.Name)
		}
	}
}

func TestPaddedNumberJoinsAsANumber(t *testing.T) {
	s := load(t, "padded-keys.yaml")
	score := identify(t, s, "BOARD#g", "SCORE#0000000005#p", nil)
	if key, ok, err := rule(t, s, "ranks").JoinedKey(score, nil); key != (change.Key{Partition: "RANKS#g", Sort: "PLACE#p#00005"}) || !ok {
		t.Errorf("the mirror item of a score of 5 has the key %v, %t, %v", key, ok, err)
	}
	if key, _, err := rule(t, s, "plain").JoinedKey(score, nil); key != (change.Key{Partition: "PLAIN#g", Sort: "5#p"}) {
		t.Errorf("the plain mirror item of a score of 5 has the key %v, %v", key, err)
	}
	if wanted, err := rule(t, s, "plain").Wanted(score, nil); !wanted {
		t.Errorf("5 is not greater than 3: %v", err)
	}
	source, ok := rule(t, s, "ranks").SourceKey(change.Key{Partition: "RANKS#g", Sort: "PLACE#p#00005"})
	if source != (change.Key{Partition: "BOARD#g", Sort: "SCORE#0000000005#p"}) || !ok {
		t.Errorf("the source of a rank of 5 has the key %v, %t", source, ok)
	}
	large := identify(t, s, "BOARD#g", "SCORE#0000123456#p", nil)
	_, _, err := rule(t, s, "ranks").JoinedKey(large, nil)
	wantItemError(t, err, "number.width", `points is "123456"`)

	mark := identify(t, s, "MARK#007", "MARK#1", nil)
	page := change.Key{Partition: "PAGE#007", Sort: "PAGE"}
	if key, _, err := rule(t, s, "mark-title").JoinedKey(mark, nil); key != page {
		t.Errorf("the parent of a mark on page 007 has the key %v, %v", key, err)
	}
	for _, value := range []change.Value{change.Number("7"), change.String("7"), change.String("007"), change.String("0.7e1")} {
		if key, _, err := rule(t, s, "page-marks").JoinedKey(mark, change.Item{"page": value}); key != page {
			t.Errorf("%v is the page with the key %v, %v", value, key, err)
		}
	}
	for value, code := range map[string]string{"1000": "number.width", "-1": "number.width", "1.5": "number.width", "x": "value.type", "7#": "value.type"} {
		_, _, err := rule(t, s, "page-marks").JoinedKey(mark, change.Item{"page": change.String(value)})
		wantItemError(t, err, code, "page is")
	}
}

// A text on the other side tells 7 from 007: such a join needs claims or references.
func TestPaddedNumberBesideATextIsNoWayBack(t *testing.T) {
	s := load(t, "padded-keys.yaml")
	for name, back := range map[string]bool{"ranks": true, "plain": false, "line-title": true, "mark-title": false} {
		if r := rule(t, s, name); r.Injective != (back && r.MakesItems()) || r.Collection != (back && r.HasParent()) {
			t.Errorf("rule %s: injective %t, collection %t", name, r.Injective, r.Collection)
		}
	}
	partition, prefix, ok := rule(t, s, "line-title").Join.CollectionOf(change.Key{Partition: "PAGE#007", Sort: "PAGE"})
	if partition != "PAGE#007" || prefix != "LINE#" || !ok {
		t.Errorf("the lines of page 7 are in %q, %q, %t", partition, prefix, ok)
	}
}

// The unique value of an item is the same text, whether its key or another item tells it.
func TestPaddedUniqueValueIsTheNumber(t *testing.T) {
	s := loadText(t, `version: 1
table: { keys: [pk, sk] }
entities:
  Page: { key: { pk: "BOOK#${book}", sk: "PAGE#${no:04}" }, unique: no }
  Note: { key: { pk: "NOTE#${noteId}", sk: "NOTE" } }
rules:
  notes: { count: Note, as: Page.notes, by: { no: page } }
`)
	page := identify(t, s, "BOOK#b", "PAGE#0012", nil)
	if text, _, err := page.Entity.UniqueValue(page, nil); text != "12" {
		t.Errorf("page 12 is known by %q, %v", text, err)
	}
	note := identify(t, s, "NOTE#n", "NOTE", nil)
	notes := rule(t, s, "notes")
	for _, value := range []change.Value{change.Number("12"), change.String("0012"), change.String("12")} {
		if text, _, err := notes.JoinedText(note, change.Item{"page": value}); text != "12" {
			t.Errorf("%v names the page %q, %v", value, text, err)
		}
	}
	_, _, err := notes.JoinedText(note, change.Item{"page": change.Number("12345")})
	wantItemError(t, err, "number.width", "Note.page is")
}

func TestChangeOfWidthIsAChangeOfTheRule(t *testing.T) {
	file := func(score string) *rules.Rule {
		return rule(t, loadText(t, `version: 1
table: { keys: [pk, sk] }
entities:
  Score: { key: { pk: "BOARD#${game}", sk: "`+score+`" } }
  Game:  { key: { pk: "GAME#${game}", sk: "GAME" } }
rules:
  scores: { count: Score, as: Game.scores }
`), "scores")
	}
	five, six := file("${points:05}"), file("${points:06}")
	if five.Fingerprint == six.Fingerprint || five.Fingerprint == file("${points}").Fingerprint {
		t.Error("the fingerprint does not tell the width")
	}
	changes := rulediff.Compare(five, six)
	if len(changes) != 1 || changes[0].Field != "key of Score" || !strings.Contains(changes[0].New, "${points:06}") {
		t.Errorf("the changes are %+v", changes)
	}
}
