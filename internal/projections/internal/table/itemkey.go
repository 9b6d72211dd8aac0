package table

import (
	"unicode/utf8"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
)

// ItemKey is a key in the user's table as the SDK wants it.
func (rd *Reader) ItemKey(k change.Key) Row {
	key := Row{rd.PartitionKey: KeyValue(k.Partition, rd.PartitionN)}
	if rd.SortKey != "" {
		key[rd.SortKey] = KeyValue(k.Sort, rd.SortN)
	}
	return key
}

// KeyValue is the value of a key attribute.
func KeyValue(text string, number bool) ddb.AttributeValue {
	if number {
		return &ddb.AttributeValueMemberN{Value: text}
	}
	return Text(text)
}

// KeyOf reads an item's key.
func (rd *Reader) KeyOf(item Row) change.Key {
	k := change.Key{Partition: TextOf(item[rd.PartitionKey])}
	if rd.SortKey != "" {
		k.Sort = TextOf(item[rd.SortKey])
	}
	return k
}

// CanExist reports whether the table can hold an item under a key: what is not
// from this table's stream may say anything, and DynamoDB would refuse to look.
func (rd *Reader) CanExist(k change.Key) bool {
	good := func(text string, number bool, bytesMax int) bool {
		_, err := decimal.Parse(text)
		return text != "" && len(text) <= bytesMax && utf8.ValidString(text) && (!number || err == nil)
	}
	return good(k.Partition, rd.PartitionN, PartitionBytesMax) && (rd.SortKey == "" || good(k.Sort, rd.SortN, SortBytesMax))
}

// IsItemKey reports whether attributes are the key of an item that the user's table can hold.
func (rd *Reader) IsItemKey(key Row) bool {
	numbers := map[string]bool{rd.PartitionKey: rd.PartitionN}
	if rd.SortKey != "" {
		numbers[rd.SortKey] = rd.SortN
	}
	return isKeyOf(key, numbers) && rd.CanExist(rd.KeyOf(key))
}
