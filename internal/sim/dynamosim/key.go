package dynamosim

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/sim/dynamosim/values"
)

// Limits of items and keys in bytes (developer guide, "Quotas").
const (
	itemBytesMax         = 400 << 10
	partitionKeyBytesMax = 2048
	sortKeyBytesMax      = 1024
)

// key reads a request's Key, which has to hold the key attributes and nothing else.
func (t *table) key(given values.Item) (key, values.Item, error) {
	item, err := values.Normalize(given)
	if err != nil {
		return key{}, nil, err
	}
	want := 1
	if t.sort.name != "" {
		want = 2
	}
	if len(item) != want {
		return key{}, nil, invalid("The provided key element does not match the schema")
	}
	k, err := t.keyIn(item, "The provided key element does not match the schema")
	return k, item, err
}

// keyIn finds the key in a whole normalized item.
func (t *table) keyIn(item values.Item, mismatch string) (key, error) {
	for _, a := range []keyAttribute{t.partition, t.sort} {
		if a.name == "" {
			continue
		}
		if err := checkKeyValue(a, item[a.name], mismatch); err != nil {
			return key{}, err
		}
	}
	k := key{partition: makeKeyValue(item[t.partition.name])}
	if t.sort.name != "" {
		k.sort = makeKeyValue(item[t.sort.name])
	}
	if values.SizeOf(item[t.partition.name]) > partitionKeyBytesMax {
		return key{}, invalid("One or more parameter values were invalid: Size of hashkey has exceeded the maximum size limit of %d bytes",
			partitionKeyBytesMax)
	}
	if t.sort.name != "" && values.SizeOf(item[t.sort.name]) > sortKeyBytesMax {
		return key{},
			invalid("One or more parameter values were invalid: Aggregated size of all range keys has exceeded the size limit of %d bytes",
				sortKeyBytesMax)
	}
	return k, nil
}

// checkIndexKeys refuses attributes that could not be keys of the table's indexes. An item without them is in no index.
func (t *table) checkIndexKeys(item values.Item) error {
	for _, x := range t.indexes {
		for _, k := range []struct {
			keyAttribute
			bytesMax int
		}{{x.partition, partitionKeyBytesMax}, {x.sort, sortKeyBytesMax}} {
			v, there := item[k.name]
			if !there {
				continue
			}
			if kind := values.TypeOf(v); kind != k.kind {
				return invalid("One or more parameter values were invalid: Type mismatch for Index Key %s Expected: %s Actual: %s IndexName: %s",
					k.name, k.kind, kind, x.name)
			}
			if n, ok := values.Length(v); ok && n == 0 {
				return invalid("One or more parameter values are not valid. A value specified for a secondary index key is not supported. "+
					"The AttributeValue for a key attribute cannot contain an empty value. IndexName: %s, IndexKey: %s", x.name, k.name)
			}
			if values.SizeOf(v) > k.bytesMax {
				return invalid("One or more parameter values were invalid: Size of the index key %s has exceeded the maximum size limit of %d "+
					"bytes. IndexName: %s", k.name, k.bytesMax, x.name)
			}
		}
	}
	return nil
}

func checkKeyValue(a keyAttribute, av types.AttributeValue, mismatch string) error {
	if av == nil {
		if mismatch != "" {
			return invalid("%s", mismatch)
		}
		return invalid("One or more parameter values were invalid: Missing the key %s in the item", a.name)
	}
	if kind := values.TypeOf(av); kind != a.kind {
		if mismatch != "" {
			return invalid("%s", mismatch)
		}
		return invalid("One or more parameter values were invalid: Type mismatch for key %s expected: %s actual: %s", a.name, a.kind, kind)
	}
	if n, ok := values.Length(av); ok && n == 0 {
		return invalid("One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty value. "+
			"Key: %s", a.name)
	}
	return nil
}

// checkEmptyKey refuses key attributes that are empty.
func (t *table) checkEmptyKey(item values.Item) error {
	for _, a := range []keyAttribute{t.partition, t.sort} {
		if av := item[a.name]; a.name != "" && av != nil && values.TypeOf(av) == a.kind {
			if err := checkKeyValue(a, av, ""); err != nil {
				return err
			}
		}
	}
	return nil
}

// startKey reads an ExclusiveStartKey.
func (t *table) startKey(given values.Item) (key, error) {
	k, _, err := t.key(given)
	if err != nil {
		return k, invalid("The provided starting key is invalid: %v", err)
	}
	return k, nil
}
