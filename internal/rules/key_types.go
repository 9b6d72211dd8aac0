package rules

import (
	"fmt"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/rules/internal/templates"
)

// CheckKeys compares the templates with the table's real key types; sort is change.KindAbsent for a table without a sort
// key. A key must be S, or N if every template of it is one single ${x}. The error is a *Problems. CheckKeys tells the
// Set how to render numbers: call it before the Set is used, again only for a table with keys of the same types.
func (s *Set) CheckKeys(partition, sort change.Kind) error {
	var found Problems
	say := func(code, hint, message string, args ...any) {
		found.List = append(found.List, Problem{File: s.file, Code: code, Message: fmt.Sprintf(message, args...), Hint: hint})
	}
	if (sort == change.KindAbsent) != (s.Table.SortKey == "") {
		if sort == change.KindAbsent {
			say("table.sort_key", "name one key: `keys: ["+s.Table.PartitionKey+"]`",
				"the rule file names a sort key, %s, but the table has none", s.Table.SortKey)
		} else {
			say("table.sort_key", "name both keys: `keys: [partition, sort]`", "the table has a sort key, but the rule file names none")
		}
		return &found
	}
	check := func(attribute string, kind change.Kind, of func(*templates.Shape) *templates.Template) {
		if kind == change.KindBinary {
			say("table.binary_key", "", "the table's key %s is binary: only strings and numbers are supported", attribute)
		}
		for _, e := range s.Entities {
			t := of(e.shape)
			if _, single := t.Single(); kind == change.KindNumber && !single {
				say("template.number", "use a single variable, as in \"${x}\"",
					"the table's key %s is a number, which %s's template %q cannot give", attribute, e.Name, t.Text)
			}
		}
	}
	check(s.Table.PartitionKey, partition, func(sh *templates.Shape) *templates.Template { return &sh.Partition })
	if s.Table.SortKey != "" {
		check(s.Table.SortKey, sort, func(sh *templates.Shape) *templates.Template { return &sh.Sort })
	}
	if len(found.List) > 0 {
		return &found
	}
	dropUnlike := func() { // a number key drops leading zeros
		for _, r := range s.Rules {
			if !r.Join.HoldsAlike() {
				r.Injective, r.Collection = false, false
			}
		}
	}
	if !s.keyTypes.Tell(partition, sort, dropUnlike) {
		say("table.key_types", "load the rule file once more for this table",
			"the rules are in use for a table whose keys have other types")
		return &found
	}
	return nil
}
