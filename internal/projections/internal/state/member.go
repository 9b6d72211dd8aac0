package state

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/projections/internal/effects"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// MemberRows begins the partition keys of member rows.
const MemberRows = "member"

// MembersOf is the partition key of a group's member rows.
func MembersOf(g plan.GroupRef) string {
	return table.NewKey(MemberRows+"/"+g.ID+"/"+escape(g.Group), "").Partition
}

// MemberKey is the key of the row of a source that is a member of a group, for what an effect of it is for: "" of the only one. The rows of
// a group sort by the order of the members, then by the keys of their sources.
func MemberKey(g plan.GroupRef, m *effects.Member, source change.Key, purpose string) table.Key {
	return table.Key{Partition: MembersOf(g), Sort: MemberSort(m.Order, source, purpose)}
}

// MemberSort is the sort key of a member row: the order, the source and what the effect is for, with blanks between. No other blank
// stands before the last part.
func MemberSort(order string, source change.Key, purpose string) string {
	text := order + " " + sourceText(source)
	if purpose != "" {
		text += " " + purpose
	}
	return text
}

// sourceBytesMax is how long the key of a source may be that stands in the sort key of its member row as it is.
const sourceBytesMax = 400

// sourceDigestMark begins the digest that stands for a longer one.
const sourceDigestMark = "~"

// sourceText stands for a source in the sort key of its member row.
func sourceText(source change.Key) string {
	if text := EscapeOrder(source.String()); len(text) <= sourceBytesMax && !strings.HasPrefix(text, sourceDigestMark) {
		return text
	}
	sum := sha256.Sum256([]byte(source.String()))
	return sourceDigestMark + hex.EncodeToString(sum[:])
}

// The characters up to escapeMark are written as the mark and a character from escapeFirst on, so that a blank sorts before everything.
const (
	escapeMark  = '!'
	escapeFirst = '0'
)

// EscapeOrder writes a text without blanks that sorts as the text does, also with a blank behind it.
func EscapeOrder(text string) string {
	if strings.IndexFunc(text, func(r rune) bool { return r <= escapeMark }) < 0 {
		return text
	}
	var b strings.Builder
	for i := range len(text) {
		if c := text[i]; c <= escapeMark {
			b.WriteByte(escapeMark)
			b.WriteByte(escapeFirst + c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// unescapeOrder reads what EscapeOrder wrote; false for a text that it never gives.
func unescapeOrder(text string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c < escapeMark:
			return "", false
		case c == escapeMark:
			if i++; i == len(text) || text[i] < escapeFirst || text[i]-escapeFirst > escapeMark {
				return "", false
			}
			c = text[i] - escapeFirst
		}
		b.WriteByte(c)
	}
	return b.String(), true
}

// MemberRow is a member row: what is shown of the source, by attribute, and the source if its key does not stand in the row's key.
func MemberRow(key table.Key, source change.Key, shown map[string]change.Value) table.Row {
	r := key.Attributes()
	r["shown"] = &ddb.AttributeValueMemberM{Value: attributes.ItemToTable(shown)}
	if strings.HasPrefix(sourceText(source), sourceDigestMark) {
		r["item"] = table.Text(source.String())
	}
	return r
}

// ReadMember reads what is shown of the source of a member row; false if another program has written there.
func ReadMember(r table.Row) (map[string]change.Value, bool) {
	v := attributes.FromTable(r["shown"])
	return v.Map(), v.Kind() == change.KindMap
}

// MemberSource is the source of a member row; false if the row does not tell it.
func MemberSource(sort, item string) (change.Key, bool) {
	_, rest, _ := strings.Cut(sort, " ")
	text, _, _ := strings.Cut(rest, " ")
	if strings.HasPrefix(text, sourceDigestMark) {
		key := change.ParseKey(item)
		return key, item != "" && sourceText(key) == text
	}
	whole, ok := unescapeOrder(text)
	key := change.ParseKey(whole)
	return key, ok && whole != "" && key.String() == whole
}
