package table

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
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
