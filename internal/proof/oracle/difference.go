package oracle

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
)

// Difference is one place where a table is not what its rules ask for.
type Difference struct {
	Rule      string // the rule that owns the attribute or item; "" if it is none's
	State     bool   // the key is one of the state table, not of the application's
	Key       change.Key
	Attribute string       // "" where the whole item is missing or should not be there
	Want, Got change.Value // absent = must not be there, is not there; a map for a whole item
}

// String returns the difference as one line.
func (d Difference) String() string {
	key, whose := d.Key.String(), ""
	if d.State { // whose keys are names parted by "/" already
		key = strings.TrimSpace("state " + d.Key.Partition + " " + d.Key.Sort)
	}
	if d.Rule != "" {
		whose = " (rule " + d.Rule + ")"
	}
	if d.Attribute == "" {
		want, got := "an item", "none"
		if d.Want.Kind() == change.KindAbsent {
			want, got = "no item", "one"
		}
		return fmt.Sprintf("%s: want %s, got %s%s", key, want, got, whose)
	}
	return fmt.Sprintf("%s %s: want %s, got %s%s", key, d.Attribute, text(d.Want), text(d.Got), whose)
}

func compareDifferences(a, b Difference) int {
	return cmp.Or(
		cmp.Compare(a.Key.String(), b.Key.String()),
		cmp.Compare(a.Attribute, b.Attribute),
		cmp.Compare(a.Rule, b.Rule),
	)
}

// text shows a value so that values that differ look different.
func text(v change.Value) string {
	switch v.Kind() {
	case change.KindAbsent:
		return "nothing"
	case change.KindString:
		return fmt.Sprintf("%q", v.Text())
	case change.KindNumber:
		return v.Text()
	case change.KindBinary:
		return "0x" + hex.EncodeToString([]byte(v.Text()))
	case change.KindBool:
		return fmt.Sprint(v.Bool())
	case change.KindNull:
		return "null"
	case change.KindMap:
		var fields []string
		for name, f := range v.Map() {
			fields = append(fields, name+": "+text(f))
		}
		slices.Sort(fields)
		return "{" + strings.Join(fields, ", ") + "}"
	}
	members := make([]string, len(v.List()))
	for i, m := range v.List() {
		members[i] = text(m)
	}
	if v.Kind() == change.KindList {
		return "[" + strings.Join(members, ", ") + "]"
	}
	slices.Sort(members) // a set has no order
	return v.Kind().String() + "{" + strings.Join(members, ", ") + "}"
}
