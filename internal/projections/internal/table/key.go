package table

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// PK and SK are the names of the state table's key attributes.
const (
	PK = "pk"
	SK = "sk"
)

// The longest partition and sort key, in bytes (DynamoDB developer guide, "Constraints").
const (
	PartitionBytesMax = 2048
	SortBytesMax      = 1024
)

// Key is the key of an item in the state table.
type Key struct{ Partition, Sort string }

// NewKey returns a key that DynamoDB takes, however long the texts are.
func NewKey(partition, sort string) Key {
	return Key{bounded(partition, PartitionBytesMax), bounded(sort, SortBytesMax)}
}

// bounded shortens a key that DynamoDB would refuse: its beginning, for the reader, then a hash of it all.
func bounded(text string, bytesMax int) string {
	if len(text) <= bytesMax {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	tail := "~" + hex.EncodeToString(sum[:])
	return strings.ToValidUTF8(text[:bytesMax-len(tail)], "") + tail
}

var cutTail = regexp.MustCompile(`~[0-9a-f]{64}$`)

// LooksCut reports whether a partition key looks like one that NewKey has cut.
func LooksCut(partition string) bool {
	return len(partition) > PartitionBytesMax-utf8.UTFMax && cutTail.MatchString(partition)
}

// Attributes is the key as the SDK wants it.
func (k Key) Attributes() Row {
	return Row{PK: Text(k.Partition), SK: Text(k.Sort)}
}

// KeyOf reads the key of a row.
func KeyOf(r Row) Key { return Key{TextOf(r[PK]), TextOf(r[SK])} }

// Row is an item of the state table, or a part of one.
type Row = map[string]ddb.AttributeValue

// Text is a text as the SDK wants it.
func Text(s string) ddb.AttributeValue { return &ddb.AttributeValueMemberS{Value: s} }

// Number is a whole number as the SDK wants it.
func Number(n int64) ddb.AttributeValue {
	return &ddb.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

// TextOf returns the text of an S or N, "" of anything else.
func TextOf(v ddb.AttributeValue) string {
	switch v := v.(type) {
	case *ddb.AttributeValueMemberS:
		return v.Value
	case *ddb.AttributeValueMemberN:
		return v.Value
	}
	return ""
}

// NumberOf returns a whole number, 0 of anything else.
func NumberOf(v ddb.AttributeValue) int64 {
	n, _ := strconv.ParseInt(TextOf(v), 10, 64)
	return n
}

// TextsOf returns the members of a set of texts, none of anything else.
func TextsOf(v ddb.AttributeValue) []string {
	if set, ok := v.(*ddb.AttributeValueMemberSS); ok {
		return set.Value
	}
	return nil
}
