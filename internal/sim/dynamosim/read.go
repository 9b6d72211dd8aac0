package dynamosim

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/sim/dynamosim/expression"
	"github.com/dynamill/dynamill/internal/sim/dynamosim/values"
)

// GetItem is the SDK client's method.
func (s *Sim) GetItem(ctx context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return call(ctx, s, tableService, "GetItem", in, s.getItem)
}

func (s *Sim) getItem(in *dynamodb.GetItemInput) (*dynamodb.GetItemOutput, error) {
	if err := refuse(map[string]bool{"AttributesToGet": in.AttributesToGet != nil}); err != nil {
		return nil, err
	}
	pick, err := newPicker(in.ProjectionExpression, in.ExpressionAttributeNames)
	if err != nil {
		return nil, err
	}
	t, err := s.table(in.TableName)
	if err != nil {
		return nil, err
	}
	k, _, err := t.key(in.Key)
	if err != nil {
		return nil, err
	}
	out := &dynamodb.GetItemOutput{}
	size := 0
	if r := t.see(k, s.stale("GetItem", in.ConsistentRead)); r != nil {
		out.Item, size = pick(r.item), r.size
	}
	out.ConsumedCapacity = shown(in.ReturnConsumedCapacity, s.chargeRead(t, readUnits(size, in.ConsistentRead)))
	return out, nil
}

// newPicker returns a function that copies what a projection asks for.
func newPicker(projection *string, names map[string]string) (func(values.Item) values.Item, error) {
	attrs, err := expression.NewAttributes(names, nil)
	if err != nil {
		return nil, err
	}
	if projection == nil {
		if names != nil {
			return nil, invalid("ExpressionAttributeNames can only be specified when using expressions")
		}
		return values.Clone, nil
	}
	p, err := expression.ParseProjection(*projection, attrs)
	if err != nil {
		return nil, err
	}
	return p.Of, attrs.CheckUsed()
}

// batchGetKeysMax and batchGetBytesMax bound a BatchGetItem (API reference).
const (
	batchGetKeysMax  = 100
	batchGetBytesMax = 16 << 20
)

// BatchGetItem is the SDK client's method.
func (s *Sim) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput,
	error) {
	return call(ctx, s, tableService, "BatchGetItem", in, s.batchGetItem)
}

// batchGet is one table's part of a BatchGetItem.
type batchGet struct {
	table   *table
	request types.KeysAndAttributes
	pick    func(values.Item) values.Item
	keys    []key
}

func (s *Sim) batchGetItem(in *dynamodb.BatchGetItemInput) (*dynamodb.BatchGetItemOutput, error) {
	parts, count, err := s.checkBatchGet(in.RequestItems)
	if err != nil {
		return nil, err
	}
	out := &dynamodb.BatchGetItemOutput{Responses: map[string][]map[string]types.AttributeValue{},
		UnprocessedKeys: map[string]types.KeysAndAttributes{}}
	bound := s.batchBound("BatchGetItem", count)
	bytes, taken := 0, 0
	for _, name := range sortedNames(in.RequestItems) {
		part := parts[name]
		out.Responses[name] = []map[string]types.AttributeValue{}
		spent := 0.0
		stale := s.stale("BatchGetItem", part.request.ConsistentRead)
		for i, k := range part.keys {
			r := part.table.see(k, stale)
			if taken == bound || r != nil && bytes+r.size > batchGetBytesMax {
				rest := part.request
				rest.Keys = rest.Keys[i:]
				out.UnprocessedKeys[name] = rest
				break
			}
			taken++
			size := 0
			if r != nil {
				size = r.size
				out.Responses[name] = append(out.Responses[name], part.pick(r.item))
			}
			bytes += size
			spent += readUnits(size, part.request.ConsistentRead)
		}
		if c := shown(in.ReturnConsumedCapacity, s.chargeRead(part.table, spent)); c != nil {
			out.ConsumedCapacity = append(out.ConsumedCapacity, *c)
		}
	}
	return out, nil
}

func (s *Sim) checkBatchGet(requests map[string]types.KeysAndAttributes) (parts map[string]batchGet, count int, err error) {
	if len(requests) == 0 {
		return nil, 0, invalid("The requestItems parameter is required for BatchGetItem")
	}
	parts = map[string]batchGet{}
	for _, name := range sortedNames(requests) {
		request := requests[name]
		if err := refuse(map[string]bool{"AttributesToGet": request.AttributesToGet != nil}); err != nil {
			return nil, 0, err
		}
		if len(request.Keys) == 0 {
			return nil, 0, invalid("RequestItems.%s.Keys: must have length greater than or equal to 1", name)
		}
		if count += len(request.Keys); count > batchGetKeysMax {
			return nil, 0, invalid("Too many items requested for the BatchGetItem call")
		}
		part := batchGet{request: request}
		if part.table, err = s.table(&name); err != nil {
			return nil, 0, err
		}
		if part.pick, err = newPicker(request.ProjectionExpression, request.ExpressionAttributeNames); err != nil {
			return nil, 0, err
		}
		seen := map[string]bool{}
		for _, given := range request.Keys {
			k, _, err := part.table.key(given)
			if err != nil {
				return nil, 0, err
			}
			if seen[k.id()] {
				return nil, 0, invalid("Provided list of item keys contains duplicates")
			}
			seen[k.id()] = true
			part.keys = append(part.keys, k)
		}
		parts[name] = part
	}
	return parts, count, nil
}

func (s *Sim) batchBound(op string, n int) int {
	if s.options.BatchBound == nil {
		return n
	}
	return min(n, max(0, s.options.BatchBound(op, n)))
}
