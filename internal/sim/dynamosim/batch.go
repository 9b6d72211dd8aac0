package dynamosim

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// batchWriteMax bounds a BatchWriteItem (API reference).
const batchWriteMax = 25

// BatchWriteItem is the SDK client's method.
func (s *Sim) BatchWriteItem(ctx context.Context, in *dynamodb.BatchWriteItemInput,
	_ ...func(*dynamodb.Options)) (*dynamodb.BatchWriteItemOutput, error) {
	return call(ctx, s, tableService, "BatchWriteItem", in, s.batchWriteItem)
}

func (s *Sim) batchWriteItem(in *dynamodb.BatchWriteItemInput) (*dynamodb.BatchWriteItemOutput, error) {
	writes, count, err := s.checkBatchWrite(in.RequestItems)
	if err != nil {
		return nil, err
	}
	out := &dynamodb.BatchWriteItemOutput{UnprocessedItems: map[string][]types.WriteRequest{}}
	bound := s.batchBound("BatchWriteItem", count)
	spent := map[*table]float64{}
	taken := 0
	for _, name := range sortedNames(in.RequestItems) {
		for i, w := range writes[name] {
			if taken == bound || s.held[holdID(w.table, w.key)] > 0 {
				out.UnprocessedItems[name] = append(out.UnprocessedItems[name], in.RequestItems[name][i])
				continue
			}
			taken++
			o, err := w.plan()
			if err != nil {
				return nil, err
			}
			spent[w.table] += writeUnits(o)
			s.commit(o)
		}
	}
	for _, t := range sortedTables(spent) {
		if c := shown(in.ReturnConsumedCapacity, s.chargeWrite(t, spent[t])); c != nil {
			out.ConsumedCapacity = append(out.ConsumedCapacity, *c)
		}
	}
	return out, nil
}

func (s *Sim) checkBatchWrite(requests map[string][]types.WriteRequest) (writes map[string][]*write, count int, err error) {
	if len(requests) == 0 {
		return nil, 0, invalid("The batch write request list must not be empty")
	}
	writes = map[string][]*write{}
	for _, name := range sortedNames(requests) {
		if len(requests[name]) == 0 {
			return nil, 0, invalid("RequestItems.%s: must have length greater than or equal to 1", name)
		}
		if count += len(requests[name]); count > batchWriteMax {
			return nil, 0, invalid("Too many items requested for the BatchWriteItem call")
		}
		seen := map[string]bool{}
		for _, r := range requests[name] {
			w, err := s.batchWrite(name, r)
			if err == nil {
				err = w.mismatch
			}
			if err != nil {
				return nil, 0, err
			}
			if seen[w.key.id()] {
				return nil, 0, invalid("Provided list of item keys contains duplicates")
			}
			seen[w.key.id()] = true
			writes[name] = append(writes[name], w)
		}
	}
	return writes, count, nil
}

func (s *Sim) batchWrite(name string, r types.WriteRequest) (*write, error) {
	switch {
	case (r.PutRequest == nil) == (r.DeleteRequest == nil):
		return nil, invalid("Supplied AttributeValue has more than one datatypes set or none: a write request is one put or one delete")
	case r.PutRequest != nil:
		return s.newPut(aws.String(name), r.PutRequest.Item, conditional{})
	}
	w, err := s.newKeyed(aws.String(name), r.DeleteRequest.Key, nil, conditional{})
	if err == nil {
		w.remove = true
	}
	return w, err
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func sortedTables(m map[*table]float64) []*table {
	return slices.SortedFunc(maps.Keys(m), func(a, b *table) int { return cmp.Compare(a.name, b.name) })
}
