package table

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

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

// Attributes is the key as the SDK wants it.
func (k Key) Attributes() Row {
	return Row{PK: Text(k.Partition), SK: Text(k.Sort)}
}

// KeyOf reads the key of a row.
func KeyOf(r Row) Key { return Key{TextOf(r[PK]), TextOf(r[SK])} }

// IsKey reports whether attributes are the key of a row that the state table can hold.
func IsKey(key Row) bool {
	k := KeyOf(key)
	return isKeyOf(key, map[string]bool{PK: false, SK: false}) && k.Partition != "" && k.Sort != "" &&
		len(k.Partition) <= PartitionBytesMax && len(k.Sort) <= SortBytesMax
}

// isKeyOf reports whether attributes have these names and are numbers, or else texts.
func isKeyOf(key Row, numbers map[string]bool) bool {
	for name, number := range numbers {
		_, text := key[name].(*ddb.AttributeValueMemberS)
		_, numeric := key[name].(*ddb.AttributeValueMemberN)
		if number && !numeric || !number && !text {
			return false
		}
	}
	return len(key) == len(numbers)
}
