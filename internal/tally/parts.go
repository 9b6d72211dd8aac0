package tally

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/internal/decimal"
)

// Parts are what counts under each value of an aggregate with `per`.
type Parts map[string]Share

// Share is what counts under one value.
type Share struct {
	Value   decimal.Decimal
	Members int64
}

// IsEmpty reports whether nothing counts there.
func (p Share) IsEmpty() bool { return p.Value.IsZero() && p.Members == 0 }

// Values are those that are not empty, sorted.
func (ps Parts) Values() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(ps)), func(per string) bool { return ps[per].IsEmpty() })
}

// String is the parts as facts hold them, behind an amount.
func (ps Parts) String() string {
	var b strings.Builder
	for _, per := range ps.Values() {
		fmt.Fprintf(&b, "/%s/%s/%d", url.PathEscape(per), ps[per].Value, ps[per].Members)
	}
	return b.String()
}

func parseParts(text string) Parts {
	var ps Parts
	for fields := range slices.Chunk(strings.Split(text, "/"), 3) {
		if len(fields) < 3 {
			break
		}
		per, _ := url.PathUnescape(fields[0])
		value, _ := decimal.Parse(fields[1])
		if ps == nil {
			ps = Parts{}
		}
		ps[per] = Share{value, ParseCount(fields[2])}
	}
	return ps
}
