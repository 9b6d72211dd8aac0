package attributes

import (
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/dynamill/dynamill/change"
)

// RecordDecoder turns a stream's records into change.Records.
type RecordDecoder struct {
	Label                 string // the stream's label, the epoch of positions
	PartitionKey, SortKey string // the table's key attributes; SortKey is "" without a sort key
}

// Decode turns one record of GetRecords into a change.Record. Its images are decoded
// as they are looked up.
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

// expired recognises a deletion by time to live. GetRecords writes the members'
// values with capitals, Lambda without; both count.
func expired(by *streams.Identity) bool {
	return by != nil &&
		strings.EqualFold(aws.ToString(by.Type), "Service") &&
		strings.EqualFold(aws.ToString(by.PrincipalId), "dynamodb.amazonaws.com")
}
