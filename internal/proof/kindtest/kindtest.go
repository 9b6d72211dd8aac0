// Package kindtest loads rules for the tests of rules and of the families of kinds. Only tests import it.
package kindtest

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/rules"
)

// Load loads one of the good rule files of package rules, from a family's folder.
func Load(t testing.TB, file string) *rules.Set {
	t.Helper()
	src, err := os.ReadFile("../../../../rules/testdata/good/" + file)
	if err != nil {
		t.Fatal(err)
	}
	return LoadText(t, string(src))
}

// LoadText loads a rule file.
func LoadText(t testing.TB, src string) *rules.Set {
	t.Helper()
	set, err := rules.Load("dynamill.yaml", []byte(src), projections.Kinds)
	if err != nil {
		t.Fatalf("loading:\n%v", err)
	}
	return set
}

// Rule returns the rule of a name.
func Rule(t testing.TB, s *rules.Set, name string) *rules.Rule {
	t.Helper()
	for _, r := range s.Rules {
		if r.Name == name {
			return r
		}
	}
	t.Fatalf("no rule %s", name)
	return nil
}

// Identify says which entity an item is of.
func Identify(t testing.TB, s *rules.Set, partition, sort string, item change.Item) *rules.Match {
	t.Helper()
	m, ok := s.Identify(change.Key{Partition: partition, Sort: sort}, item)
	if !ok {
		t.Fatalf("%s / %s is of no entity", partition, sort)
	}
	return &m
}

// WantItemError wants an *rules.ItemError of this code, whose reason has these words.
func WantItemError(t testing.TB, err error, code string, words ...string) {
	t.Helper()
	var bad *rules.ItemError
	if !errors.As(err, &bad) {
		t.Fatalf("got %v, want an *ItemError", err)
	}
	if bad.Code != code {
		t.Errorf("code %s, want %s (%s)", bad.Code, code, bad.Reason)
	}
	for _, w := range words {
		if !strings.Contains(bad.Reason, w) {
			t.Errorf("reason %q does not say %q", bad.Reason, w)
		}
	}
}

// EveryType has one attribute of every DynamoDB type.
func EveryType() change.Item {
	return change.Item{
		"s": change.String("text"), "n": change.Number("12345678901234567890123456789012345678"), "b": change.Binary([]byte{0, 255}),
		"bool": change.Bool(false), "null": change.Null(), "l": change.List([]change.Value{change.Number("1"), change.Null()}),
		"m": change.Map(map[string]change.Value{"in": change.String("")}), "ss": change.Set(change.KindStringSet, []string{"b", "a"}),
		"ns": change.Set(change.KindNumberSet, []string{"1"}), "bs": change.Set(change.KindBinarySet, []string{"\x00"}),
		"empty": change.String(""),
	}
}
