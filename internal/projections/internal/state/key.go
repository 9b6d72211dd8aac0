package state

import (
	"crypto/rand"
	"encoding/hex"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
)

// escape keeps a text apart from what follows it in a key.
func escape(text string) string { return change.Key{Partition: text}.String() }

// CountOf returns a count of operations or changes, 0 of anything that is none.
func CountOf(v ddb.AttributeValue) int64 {
	n, _ := plan.ReadCount(attributes.FromTable(v))
	return n
}

// NewID draws a name at random: of a state table's incarnation, of a parking, of a process.
func NewID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return hex.EncodeToString(b[:])
}
