// Package attributes turns the AWS SDK's attribute values and stream records into those of package change. It also reads the
// identities and the ARNs of records.
package attributes

import (
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/dynamill/dynamill/change"
)

// FromTable turns a table's attribute value into a Value; the zero Value for nil or an unknown type.
func FromTable(av ddb.AttributeValue) change.Value {
	switch v := av.(type) {
	case *ddb.AttributeValueMemberS:
		return change.String(v.Value)
	case *ddb.AttributeValueMemberN:
		return change.Number(v.Value)
	case *ddb.AttributeValueMemberB:
		return change.Binary(v.Value)
	case *ddb.AttributeValueMemberBOOL:
		return change.Bool(v.Value)
	case *ddb.AttributeValueMemberNULL:
		return change.Null()
	case *ddb.AttributeValueMemberSS:
		return change.Set(change.KindStringSet, v.Value)
	case *ddb.AttributeValueMemberNS:
		return change.Set(change.KindNumberSet, v.Value)
	case *ddb.AttributeValueMemberBS:
		return change.Set(change.KindBinarySet, texts(v.Value))
	case *ddb.AttributeValueMemberL:
		return change.List(mapSlice(v.Value, FromTable))
	case *ddb.AttributeValueMemberM:
		return change.Map(mapFields(v.Value, FromTable))
	}
	return change.Value{}
}

// FromStream turns a stream's attribute value into a Value; the zero Value for nil or an unknown type.
func FromStream(av streams.AttributeValue) change.Value {
	switch v := av.(type) {
	case *streams.AttributeValueMemberS:
		return change.String(v.Value)
	case *streams.AttributeValueMemberN:
		return change.Number(v.Value)
	case *streams.AttributeValueMemberB:
		return change.Binary(v.Value)
	case *streams.AttributeValueMemberBOOL:
		return change.Bool(v.Value)
	case *streams.AttributeValueMemberNULL:
		return change.Null()
	case *streams.AttributeValueMemberSS:
		return change.Set(change.KindStringSet, v.Value)
	case *streams.AttributeValueMemberNS:
		return change.Set(change.KindNumberSet, v.Value)
	case *streams.AttributeValueMemberBS:
		return change.Set(change.KindBinarySet, texts(v.Value))
	case *streams.AttributeValueMemberL:
		return change.List(mapSlice(v.Value, FromStream))
	case *streams.AttributeValueMemberM:
		return change.Map(mapFields(v.Value, FromStream))
	}
	return change.Value{}
}

// ToTable turns a Value into the SDK's form; nil for the absent Value.
func ToTable(v change.Value) ddb.AttributeValue {
	switch v.Kind() {
	case change.KindString:
		return &ddb.AttributeValueMemberS{Value: v.Text()}
	case change.KindNumber:
		return &ddb.AttributeValueMemberN{Value: v.Text()}
	case change.KindBinary:
		return &ddb.AttributeValueMemberB{Value: []byte(v.Text())}
	case change.KindBool:
		return &ddb.AttributeValueMemberBOOL{Value: v.Bool()}
	case change.KindNull:
		return &ddb.AttributeValueMemberNULL{Value: true}
	case change.KindStringSet:
		return &ddb.AttributeValueMemberSS{Value: mapSlice(v.List(), change.Value.Text)}
	case change.KindNumberSet:
		return &ddb.AttributeValueMemberNS{Value: mapSlice(v.List(), change.Value.Text)}
	case change.KindBinarySet:
		return &ddb.AttributeValueMemberBS{Value: mapSlice(v.List(), func(m change.Value) []byte { return []byte(m.Text()) })}
	case change.KindList:
		return &ddb.AttributeValueMemberL{Value: mapSlice(v.List(), ToTable)}
	case change.KindMap:
		return &ddb.AttributeValueMemberM{Value: mapFields(v.Map(), ToTable)}
	}
	return nil
}

// ItemFromTable decodes a whole item; nil for nil.
func ItemFromTable(item map[string]ddb.AttributeValue) change.Item {
	if item == nil {
		return nil
	}
	return mapFields(item, FromTable)
}

// ItemToTable encodes a whole item.
func ItemToTable(item change.Item) map[string]ddb.AttributeValue { return mapFields(item, ToTable) }

// StreamImage is an Image over a stream record's attribute values, decoded one by one as they are looked up.
type StreamImage map[string]streams.AttributeValue

// Lookup decodes one attribute.
func (im StreamImage) Lookup(name string) change.Value { return FromStream(im[name]) }

// All decodes every attribute.
func (im StreamImage) All() iter.Seq2[string, change.Value] {
	return func(yield func(string, change.Value) bool) {
		for name, av := range im {
			if !yield(name, FromStream(av)) {
				return
			}
		}
	}
}

// RecordDecoder turns a stream's records into change.Records.
type RecordDecoder struct {
	Label                 string // the stream's label, the epoch of positions
	PartitionKey, SortKey string // the table's key attributes; SortKey is "" without a sort key
}

// Decode turns one record of GetRecords into a change.Record, whose images are decoded as they are looked up.
func (d RecordDecoder) Decode(raw *streams.Record) (record change.Record, err error) {
	body := raw.Dynamodb
	if body == nil || body.SequenceNumber == nil {
		return change.Record{}, errors.New("it has no sequence number")
	}
	record = change.Record{
		Old: streamImage(body.OldImage), New: streamImage(body.NewImage),
		Created: aws.ToTime(body.ApproximateCreationDateTime), Expired: expired(raw.UserIdentity),
	}
	if record.Position, err = change.NewPosition(d.Label, *body.SequenceNumber); err != nil {
		return change.Record{}, err
	}
	if record.Key, err = KeyOf(StreamImage(body.Keys), d.PartitionKey, d.SortKey); err != nil {
		return change.Record{}, err
	}
	return record, nil
}

// KeyOf takes the key out of an item; sort is "" without a sort key.
func KeyOf(item change.Image, partition, sort string) (key change.Key, err error) {
	if key.Partition, err = keyText(item, partition); err == nil && sort != "" {
		key.Sort, err = keyText(item, sort)
	}
	return key, err
}

func keyText(item change.Image, name string) (string, error) {
	switch v := item.Lookup(name); v.Kind() {
	case change.KindString, change.KindNumber:
		return v.Text(), nil
	case change.KindBinary:
		return "", fmt.Errorf("key attribute %s is binary (type B): only string and number keys are supported", name)
	}
	return "", fmt.Errorf("it has no key attribute %s", name)
}

// streamImage returns nil, not an empty Image, where the item did not exist.
func streamImage(av map[string]streams.AttributeValue) change.Image {
	if len(av) == 0 {
		return nil
	}
	return StreamImage(av)
}

func expired(by *streams.Identity) bool {
	return by != nil && IsExpiry(aws.ToString(by.Type), aws.ToString(by.PrincipalId))
}

// IsExpiry reports whether the user identity of a stream record says that time to live deleted the item. GetRecords writes the
// values of the identity with capitals, Lambda without; both count.
func IsExpiry(kind, principal string) bool {
	return strings.EqualFold(kind, "Service") && strings.EqualFold(principal, "dynamodb.amazonaws.com")
}

// TableOf returns the table's name in an ARN of the table, its stream or its export; "" if the ARN names no table.
func TableOf(arn string) string {
	_, resource, _ := strings.Cut(arn, ":table/")
	table, _, _ := strings.Cut(resource, "/")
	return table
}

func texts(bs [][]byte) []string {
	return mapSlice(bs, func(b []byte) string { return string(b) })
}

func mapSlice[A, B any](as []A, f func(A) B) []B {
	bs := make([]B, len(as))
	for i, a := range as {
		bs[i] = f(a)
	}
	return bs
}

func mapFields[A, B any](as map[string]A, f func(A) B) map[string]B {
	bs := make(map[string]B, len(as))
	for name, a := range as {
		bs[name] = f(a)
	}
	return bs
}
