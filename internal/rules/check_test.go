package rules_test

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/rules"
)

const small = `version: 1
table: { keys: [pk, sk] }
entities:
  Post:    { key: { pk: "POST#${postId}", sk: "METADATA" } }
  Comment: { key: { pk: "POST#${postId}", sk: "COMMENT#${n}" }, match: { kind: c, deep: true } }
rules:
  comments: { count: Comment, as: Post.comments, where: hidden == false }
`

func TestByteOrderMarksAndWindowsLineEndsAreTolerated(t *testing.T) {
	want := describe(loadText(t, small))
	for _, src := range []string{"\xef\xbb\xbf" + small, strings.ReplaceAll(small, "\n", "\r\n"), "---\n" + small, small + "...\n"} {
		if got := describe(loadText(t, src)); got != want {
			t.Errorf("%q...: got\n%s", src[:10], got)
		}
	}
}

func TestFingerprintsFollowTheMeaningOnly(t *testing.T) {
	fingerprint := func(replace ...string) string {
		return loadText(t, strings.NewReplacer(replace...).Replace(small)).Rules[0].Fingerprint
	}
	first := fingerprint()
	if len(first) != 16 {
		t.Errorf("fingerprint %q", first)
	}
	for name, replace := range map[string][]string{
		"the rule's name":      {"  comments:", "  other:"},
		"layout":               {"{ kind: c, deep: true }", "{\n      kind: 'c',\n      deep: true }"},
		"order of match":       {"kind: c, deep: true", "deep: true, kind: c"},
		"quotes":               {"where: hidden == false", "where: 'hidden == false'"},
		"write_shards":         {"where:", "write_shards: 8, where:"},
		"names of entities":    {"Comment", "Reply"},
		"the table's name":     {"keys: [pk, sk]", "keys: [pk, sk], name: app"},
		"unconcerned entities": {"rules:", "  User: { key: { pk: \"USER#${userId}\", sk: \"PROFILE\" } }\nrules:"},
	} {
		if got := fingerprint(replace...); got != first {
			t.Errorf("%s changes the fingerprint", name)
		}
	}
	for name, replace := range map[string][]string{
		"where":           {"hidden == false", "hidden == true"},
		"the attribute":   {"Post.comments", "Post.n"},
		"source template": {"COMMENT#", "REPLY#"},
		"target template": {"METADATA", "META"},
		"match":           {"deep: true", "deep: false"},
		"the kind":        {"count: Comment", "sum: 1, of: Comment"},
		"the table's key": {"sk", "SK"},
		"unique":          {`"METADATA" }`, `"METADATA" }, unique: postId`},
	} {
		if got := fingerprint(replace...); got == first {
			t.Errorf("%s does not change the fingerprint", name)
		}
	}
}

func TestLevelsFollowWhatRulesReadOfEachOther(t *testing.T) {
	s := loadText(t, `
version: 1
table: { keys: [pk, sk] }
entities:
  Order:    { key: { pk: "ORDER#${orderId}", sk: "ORDER" } }
  Line:     { key: { pk: "ORDER#${orderId}", sk: "LINE#${n}" } }
  Customer: { key: { pk: "CUSTOMER#${customerId}", sk: "C" } }
  Card:     { key: { pk: "CARD#${customerId}", sk: "CARD" } }
rules:
  card-spent: { copy: spent, from: Customer, to: Card }
  spent:      { sum: total, of: Order, as: Customer.spent, by: customerId }
  total:      { sum: price, of: Line, as: Order.total }
  lines:      { count: Line, as: Order.lines }
`)
	want := map[string]int{"card-spent": 2, "spent": 1, "total": 0, "lines": 0}
	for _, r := range s.Rules {
		if r.Level != want[r.Name] {
			t.Errorf("%s has level %d, want %d", r.Name, r.Level, want[r.Name])
		}
	}
}

func TestTheTablesRealKeysMustSuitTheTemplates(t *testing.T) {
	S, N, B, none := change.KindString, change.KindNumber, change.KindBinary, change.KindAbsent
	for name, tt := range map[string]struct {
		file            string
		partition, sort change.Kind
		code            string // "" if they suit
	}{
		"strings":                            {"blog.yaml", S, S, ""},
		"numbers for single variables":       {"number-keys.yaml", N, N, ""},
		"strings for single variables":       {"number-keys.yaml", S, S, ""},
		"no sort key":                        {"no-sort-key.yaml", S, none, ""},
		"a sort key that the file lacks":     {"no-sort-key.yaml", S, S, "table.sort_key"},
		"a sort key that the table lacks":    {"blog.yaml", S, none, "table.sort_key"},
		"a number for a template with texts": {"blog.yaml", S, N, "template.number"},
		"a binary key":                       {"blog.yaml", B, S, "table.binary_key"},
	} {
		t.Run(name, func(t *testing.T) {
			err := load(t, tt.file).CheckKeys(tt.partition, tt.sort)
			if tt.code == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			var problems *rules.Problems
			if !errors.As(err, &problems) || problems.List[0].Code != tt.code {
				t.Fatalf("got %v, want %s", err, tt.code)
			}
		})
	}
}

func TestEnginesMayShareASet(t *testing.T) {
	s := load(t, "number-keys.yaml")
	var group errgroup.Group
	for range 2 {
		group.Go(func() error {
			err := s.CheckKeys(change.KindNumber, change.KindNumber)
			s.Identify(change.Key{Partition: "7", Sort: "1"}, change.Item{"kind": change.String("booking")})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	var problems *rules.Problems
	if err := s.CheckKeys(change.KindNumber, change.KindString); !errors.As(err, &problems) || problems.List[0].Code != "table.key_types" {
		t.Fatalf("got %v for a table whose keys have other types", err)
	}
}

func TestNumberKeysAreRenderedInDynamoDBsForm(t *testing.T) {
	s := load(t, "number-keys.yaml")
	if err := s.CheckKeys(change.KindNumber, change.KindNumber); err != nil {
		t.Fatal(err)
	}
	r := rule(t, s, "day-total")
	item := change.Item{"kind": change.String("booking"), "amount": change.Number("1"), "day": change.String("020.50")}
	got, ok, err := r.Form.(rules.Adder).Contribution(identify(t, s, "7", "1", item), item)
	if got.Group != "7/20.5" || !ok || err != nil {
		t.Errorf("group %q, %t, %v", got.Group, ok, err)
	}
	item["day"] = change.String("monday")
	_, _, err = r.Form.(rules.Adder).Contribution(identify(t, s, "7", "1", item), item)
	wantItemError(t, err, "value.type", "Booking.day", "monday", "number")
}
