package infra

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const entities = `
version: 1
table: { keys: [pk, sk] }
entities:
  User:       { key: { pk: "USER#${userId}",   sk: "PROFILE" } }
  Order:      { key: { pk: "USER#${userId}",   sk: "ORDER#${orderId}" } }
  Group:      { key: { pk: "GROUP#${groupId}", sk: "METADATA" }, unique: name }
  Membership: { key: { pk: "USER#${userId}",   sk: "GROUP#${groupId}" } }
  Member:     { key: { pk: "GROUP#${groupId}", sk: "USER#${userId}" } }
`

const derivedEntity = `  Day:        { key: { pk: "DAY#${day}",       sk: "ORDERS" }, derived: true }
`

// The function may do to the table what its rules need, and nothing else.
func TestPermissionsFollowFromTheRules(t *testing.T) {
	always := []string{"BatchGetItem", "DescribeTable", "PartiQLUpdate", "UpdateItem"}
	for _, c := range []struct {
		name, rules string
		more        []string
	}{
		{"a count", "count: Membership, as: Group.members", nil},
		{"a sum by stream position", "sum: total, of: Order, as: User.spent, hot: true", []string{"ConditionCheckItem"}},
		{"a copy within a collection", "copy: name as userName, from: User, to: Order", []string{"ConditionCheckItem", "Query"}},
		{"a copy by references", "copy: name as userName, from: User, to: Member", []string{"ConditionCheckItem"}},
		{"a mirror", "mirror: Membership, as: Member", []string{"ConditionCheckItem", "DeleteItem"}},
		{"values of an item alone", "set: { GSI1PK: ORDERS, GSI1SK: '${at}' }, of: Order", []string{"ConditionCheckItem"}},
		{"a maximum", "max: at, of: Order, as: User.latest", nil},
		{"the last items", "last: 3, of: Order, as: User.recent, attributes: [orderId, total], order: at", nil},
		{"the attributes of the first item", "first: [total as firstTotal], of: Order, to: User, order: at", nil},
		{"a maximum of derived items", "max: at, of: Order, as: Day.latest, by: day", []string{"DeleteItem", "PutItem"}},
		{"the last item of derived items", "last: total, of: Order, to: Day, by: day, order: at", []string{"DeleteItem", "PutItem"}},
		{"a tree", "tree: Group, by: { groupId: parentId }, path: name as path, lineage: groupIds", []string{"ConditionCheckItem"}},
		{"a deletion within a collection", "delete: Order, with: User", []string{"ConditionCheckItem", "DeleteItem", "Query"}},
		{"a deletion by references", "delete: Member, with: User", []string{"ConditionCheckItem", "DeleteItem"}},
		{"a deletion by a unique value", "delete: Order, with: Group, by: { name: groupName }", []string{"ConditionCheckItem", "DeleteItem"}},
	} {
		src := entities
		if strings.Contains(c.rules, "Day") { // which is refused without rules
			src += derivedEntity
		}
		set := load(t, src+"rules: { r: { "+c.rules+" } }\n")
		want := slices.Sorted(slices.Values(slices.Concat(always, c.more)))
		var got []string
		for _, s := range permissionsOf(set, Options{Table: "app", StateTable: "app-dynamill"}).Function {
			if slices.Contains(s.Resources, "arn:${partition}:dynamodb:${region}:${account}:table/app") {
				for _, action := range s.Actions {
					got = append(got, strings.TrimPrefix(action, "dynamodb:"))
				}
			}
			for _, action := range s.Actions {
				puts := action == "dynamodb:PutItem" && s.ID != "StateTable" && s.ID != "Table"
				if puts || strings.Contains(action, "*") || slices.Contains([]string{"dynamodb:Scan", "dynamodb:CreateTable"}, action) {
					t.Errorf("%s: statement %s allows %s", c.name, s.ID, action)
				}
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: actions on the table (-want +got)\n%s", c.name, diff)
		}
	}
}

func TestFunctionNamesAreLambdasAndNobodyElses(t *testing.T) {
	seen := map[string]string{}
	long := strings.Repeat("x", 240)
	for _, table := range []string{"app", "app.dynamill", "app-dynamill", "a.b", "a-b", long + "1", long + "2", strings.Repeat("x", 64),
		"UPPER_lower"} {
		o, err := Options{Table: table}.complete()
		if err != nil {
			t.Fatal(err)
		}
		name := o.FunctionName()
		if len(name) > 64 || strings.Contains(name, ".") || !strings.HasPrefix(name, strings.ReplaceAll(table[:3], ".", "-")) {
			t.Errorf("table %s: %q is no name for a function", table, name)
		}
		if other, taken := seen[name]; taken {
			t.Errorf("tables %s and %s share the function's name %s", table, other, name)
		}
		seen[name] = table
		prefix := (deployment{Options: o}).BucketPrefix()
		if len(prefix) > 37 || prefix != strings.ToLower(prefix) || strings.Contains(prefix, "_") {
			t.Errorf("table %s: %q is no beginning of a bucket's name", table, prefix)
		}
	}
}

func TestTheSameRulesGiveTheSameTemplate(t *testing.T) {
	for _, format := range Formats() {
		first := generate(t, format, "likes", Options{})
		for range 5 {
			if diff := cmp.Diff(first, generate(t, format, "likes", Options{})); diff != "" {
				t.Fatalf("%s: another template for the same rules\n%s", format, diff)
			}
		}
	}
}

func TestAnUnknownFormatIsRefused(t *testing.T) {
	if _, err := Generate("pulumi", example(t, "blog"), Options{Table: "app"}); err == nil || !strings.Contains(err.Error(), "terraform") {
		t.Errorf("got %v, want an error that lists the formats", err)
	}
}
