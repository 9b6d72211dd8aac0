package table

import (
	"reflect"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
)

// Schema are the key attributes that a table's description names, and their types.
type Schema struct {
	PartitionKey, SortKey   string // SortKey is "" for a table without a sort key
	PartitionKind, SortKind change.Kind
}

var stateSchema = Schema{PartitionKey: PK, SortKey: SK, PartitionKind: change.KindString, SortKind: change.KindString}

// SchemaOf reads a table's description.
func SchemaOf(table *ddb.TableDescription) (s Schema) {
	kinds := map[string]change.Kind{}
	for _, d := range table.AttributeDefinitions {
		kinds[aws.ToString(d.AttributeName)] = map[ddb.ScalarAttributeType]change.Kind{
			ddb.ScalarAttributeTypeS: change.KindString, ddb.ScalarAttributeTypeN: change.KindNumber, ddb.ScalarAttributeTypeB: change.KindBinary,
		}[d.AttributeType]
	}
	for _, key := range table.KeySchema {
		if key.KeyType == ddb.KeyTypeHash {
			s.PartitionKey = aws.ToString(key.AttributeName)
		} else {
			s.SortKey = aws.ToString(key.AttributeName)
		}
	}
	s.PartitionKind, s.SortKind = kinds[s.PartitionKey], kinds[s.SortKey]
	return s
}

// ItemKey is the key of an item as the SDK wants it.
func (s *Schema) ItemKey(k change.Key) Row {
	key := Row{s.PartitionKey: KeyValue(k.Partition, s.PartitionKind)}
	if s.SortKey != "" {
		key[s.SortKey] = KeyValue(k.Sort, s.SortKind)
	}
	return key
}

// KeyValue is the value of a key attribute.
func KeyValue(text string, kind change.Kind) ddb.AttributeValue {
	if kind == change.KindNumber {
		return &ddb.AttributeValueMemberN{Value: text}
	}
	return Text(text)
}

// KeyOf reads an item's key.
func (s *Schema) KeyOf(item Row) change.Key {
	k := change.Key{Partition: TextOf(item[s.PartitionKey])}
	if s.SortKey != "" {
		k.Sort = TextOf(item[s.SortKey])
	}
	return k
}

// CanExist reports whether the table can hold an item under a key. DynamoDB refuses a read by an invalid one.
func (s *Schema) CanExist(k change.Key) bool {
	good := func(text string, kind change.Kind, bytesMax int) bool {
		if kind == change.KindNumber {
			_, err := decimal.Parse(text)
			return err == nil
		}
		return text != "" && len(text) <= bytesMax && utf8.ValidString(text)
	}
	return good(k.Partition, s.PartitionKind, PartitionBytesMax) && (s.SortKey == "" || good(k.Sort, s.SortKind, SortBytesMax))
}

// NormalizeKey is a key as the table holds it, numbers in DynamoDB's form; false if the table can hold no item under it.
func (s *Schema) NormalizeKey(k change.Key) (change.Key, bool) {
	if !s.CanExist(k) {
		return change.Key{}, false
	}
	form := func(text string, kind change.Kind) string {
		if kind != change.KindNumber {
			return text
		}
		n, _ := decimal.Parse(text) // it can exist
		return n.String()
	}
	return change.Key{Partition: form(k.Partition, s.PartitionKind), Sort: form(k.Sort, s.SortKind)}, true
}

// IsItemKey reports whether attributes are the key of an item that the table can hold.
func (s *Schema) IsItemKey(key Row) bool {
	k := s.KeyOf(key)
	return s.CanExist(k) && reflect.DeepEqual(key, s.ItemKey(k))
}

// IsKey reports whether attributes are the key of a row that the state table can hold.
func IsKey(key Row) bool { return stateSchema.IsItemKey(key) }
