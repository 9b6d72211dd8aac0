package dynamosim

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/sim/dynamosim/expression"
	"github.com/dynamill/dynamill/internal/sim/dynamosim/values"
)

// pageBytesMax ends a page of a query or scan (API reference: 1 MB, before filters).
const pageBytesMax = 1 << 20

// page collects one page of a query or scan.
type page struct {
	stale   bool
	limit   int // 0 for none
	filter  *expression.Condition
	pick    func(values.Item) values.Item // nil to count only
	items   []map[string]types.AttributeValue
	count   int32
	scanned int32
	bytes   int
	last    *row
	more    bool
}

// add takes one row; false once the page is full.
func (p *page) add(r *row) bool {
	if p.stale {
		if r = r.past(); r == nil {
			return true
		}
	}
	if p.limit > 0 && int(p.scanned) == p.limit || p.scanned > 0 && p.bytes+r.size > pageBytesMax {
		p.more = true
		return false
	}
	p.scanned++
	p.bytes += r.size
	p.last = r
	if p.filter == nil || p.filter.Holds(r.item) {
		p.count++
		if p.pick != nil {
			p.items = append(p.items, p.pick(r.item))
		}
	}
	return true
}

// lastKey is where the next page starts. A page that a limit ended has one,
// whether or not anything follows: AWS does not look ahead either.
func (p *page) lastKey(t *table) values.Item {
	if p.last == nil || !p.more && (p.limit == 0 || int(p.scanned) < p.limit) {
		return nil
	}
	return t.keyOf(p.last.item)
}

func newPage(limit *int32, sel types.Select, projection, filter *string, attrs *expression.Attributes) (*page, error) {
	p := &page{pick: values.Clone}
	if limit != nil {
		if *limit < 1 {
			return nil, invalid("Limit: must have value greater than or equal to 1")
		}
		p.limit = int(*limit)
	}
	if filter != nil {
		c, err := expression.ParseCondition("FilterExpression", *filter, attrs)
		if err != nil {
			return nil, err
		}
		p.filter = &c
	}
	if projection != nil {
		if sel != "" && sel != types.SelectSpecificAttributes {
			return nil, invalid("Cannot specify the ProjectionExpression when choosing to get %s", sel)
		}
		paths, err := expression.ParseProjection(*projection, attrs)
		if err != nil {
			return nil, err
		}
		p.pick = paths.Of
	}
	switch sel {
	case types.SelectCount:
		p.pick = nil
	case types.SelectSpecificAttributes:
		if projection == nil {
			return nil, invalid("Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES")
		}
	case types.SelectAllProjectedAttributes:
		return nil, invalid("ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName")
	}
	return p, nil
}

// Query is the SDK client's method.
func (s *Sim) Query(ctx context.Context, in *dynamodb.QueryInput, _ ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	return call(ctx, s, tableService, "Query", in, s.query)
}

func (s *Sim) query(in *dynamodb.QueryInput) (*dynamodb.QueryOutput, error) {
	t, condition, p, err := s.checkQuery(in)
	if err != nil {
		return nil, err
	}
	var rows []*row
	if c := t.collections[makeKeyValue(condition.Partition).text]; c != nil {
		rows = c.rows
	}
	backward := in.ScanIndexForward != nil && !*in.ScanIndexForward
	if in.ExclusiveStartKey != nil {
		start, err := t.startKey(in.ExclusiveStartKey)
		if err != nil {
			return nil, err
		}
		if start.partition.text != makeKeyValue(condition.Partition).text {
			return nil, invalid("The provided starting key is outside query boundaries based on provided conditions")
		}
		i, found := slices.BinarySearchFunc(rows, start.sort, func(r *row, v keyValue) int { return r.key.sort.compare(v) })
		switch {
		case backward:
			rows = rows[:i]
		case found:
			rows = rows[i+1:]
		default:
			rows = rows[i:]
		}
	}
	p.stale = s.stale("Query", in.ConsistentRead)
	matched := false
	for i := range rows {
		r := rows[i]
		if backward {
			r = rows[len(rows)-1-i]
		}
		if !condition.HoldsSort(r.item) {
			if matched { // a key condition selects a range, which has ended
				break
			}
			continue
		}
		matched = true
		if !p.add(r) {
			break
		}
	}
	out := &dynamodb.QueryOutput{Items: p.items, Count: p.count, ScannedCount: p.scanned, LastEvaluatedKey: p.lastKey(t)}
	if out.Items == nil && in.Select != types.SelectCount {
		out.Items = []map[string]types.AttributeValue{}
	}
	out.ConsumedCapacity = shown(in.ReturnConsumedCapacity, s.chargeRead(t, readUnits(p.bytes, in.ConsistentRead)))
	return out, nil
}

func (s *Sim) checkQuery(in *dynamodb.QueryInput) (t *table, condition expression.KeyCondition, p *page, err error) {
	if err = refuse(map[string]bool{"IndexName": in.IndexName != nil, "KeyConditions": in.KeyConditions != nil,
		"QueryFilter":         in.QueryFilter != nil,
		"ConditionalOperator": in.ConditionalOperator != "", "AttributesToGet": in.AttributesToGet != nil}); err != nil {
		return
	}
	if in.KeyConditionExpression == nil {
		err = invalid("Either the KeyConditions or KeyConditionExpression parameter must be specified in the request.")
		return
	}
	attrs, err := expression.NewAttributes(in.ExpressionAttributeNames, in.ExpressionAttributeValues)
	if err != nil {
		return
	}
	if t, err = s.table(in.TableName); err != nil {
		return
	}
	if condition, err = expression.ParseKeyCondition(*in.KeyConditionExpression, t.partition.name, t.sort.name, attrs); err != nil {
		return
	}
	if p, err = newPage(in.Limit, in.Select, in.ProjectionExpression, in.FilterExpression, attrs); err != nil {
		return
	}
	if err = attrs.CheckUsed(); err != nil {
		return
	}
	if p.filter != nil {
		for _, name := range p.filter.TopLevelNames() {
			if t.isKey(name) {
				err = invalid("Filter Expression can only contain non-primary key attributes: Primary key attribute: %s", name)
				return
			}
		}
	}
	err = checkKeyOperands(t, condition)
	return
}

func checkKeyOperands(t *table, condition expression.KeyCondition) error {
	const mismatch = "One or more parameter values were invalid: Condition parameter type does not match schema type"
	if err := checkKeyValue(t.partition, condition.Partition, mismatch); err != nil {
		return err
	}
	if values.SizeOf(condition.Partition) > partitionKeyBytesMax {
		return invalid("One or more parameter values were invalid: Size of hashkey has exceeded the maximum size limit of %d bytes",
			partitionKeyBytesMax)
	}
	for _, av := range condition.Operands {
		if values.TypeOf(av) != t.sort.kind {
			return invalid("%s", mismatch)
		}
		if values.SizeOf(av) > sortKeyBytesMax {
			return invalid("One or more parameter values were invalid: Aggregated size of all range keys has exceeded the size limit of %d bytes",
				sortKeyBytesMax)
		}
	}
	return nil
}

// Scan is the SDK client's method.
func (s *Sim) Scan(ctx context.Context, in *dynamodb.ScanInput, _ ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	return call(ctx, s, tableService, "Scan", in, s.scan)
}

// segmentsMax bounds TotalSegments (API reference).
const segmentsMax = 1_000_000

func (s *Sim) scan(in *dynamodb.ScanInput) (*dynamodb.ScanOutput, error) {
	t, p, err := s.checkScan(in)
	if err != nil {
		return nil, err
	}
	inSegment := func(c *collection) bool {
		return in.TotalSegments == nil || c.hash%uint64(*in.TotalSegments) == uint64(aws.ToInt32(in.Segment))
	}
	p.stale = s.stale("Scan", in.ConsistentRead)
	order := t.inOrder()
	var start *key
	if in.ExclusiveStartKey != nil {
		k, err := t.startKey(in.ExclusiveStartKey)
		if err != nil {
			return nil, err
		}
		if !inSegment(&collection{hash: s.hash(k.partition.text)}) {
			return nil,
				invalid("The provided starting key is invalid: Invalid ExclusiveStartKey. Please use ExclusiveStartKey with correct Segment.")
		}
		start, order = &k, t.from(s.hash(k.partition.text), k.partition.text)
	}
collections:
	for _, c := range order {
		if !inSegment(c) {
			continue
		}
		rows := c.rows
		if start != nil && c.id == start.partition.text {
			i, found := c.find(start.sort)
			if found {
				i++
			}
			rows = rows[i:]
		}
		for _, r := range rows {
			if !p.add(r) {
				break collections
			}
		}
	}
	out := &dynamodb.ScanOutput{Items: p.items, Count: p.count, ScannedCount: p.scanned, LastEvaluatedKey: p.lastKey(t)}
	if out.Items == nil && in.Select != types.SelectCount {
		out.Items = []map[string]types.AttributeValue{}
	}
	out.ConsumedCapacity = shown(in.ReturnConsumedCapacity, s.chargeRead(t, readUnits(p.bytes, in.ConsistentRead)))
	return out, nil
}

func (s *Sim) checkScan(in *dynamodb.ScanInput) (*table, *page, error) {
	if err := refuse(map[string]bool{"IndexName": in.IndexName != nil, "ScanFilter": in.ScanFilter != nil,
		"ConditionalOperator": in.ConditionalOperator != "", "AttributesToGet": in.AttributesToGet != nil}); err != nil {
		return nil, nil, err
	}
	if (in.Segment == nil) != (in.TotalSegments == nil) {
		return nil, nil, invalid("The TotalSegments parameter is required when Segment is specified, and the other way round")
	}
	if in.TotalSegments != nil && (*in.TotalSegments < 1 || *in.TotalSegments > segmentsMax || *in.Segment < 0 ||
		*in.Segment >= *in.TotalSegments) {
		return nil, nil,
			invalid("The Segment parameter is zero-based and must be less than parameter TotalSegments: Segment: %d is not less than "+
				"TotalSegments: %d", *in.Segment, *in.TotalSegments)
	}
	if in.FilterExpression == nil && in.ProjectionExpression == nil {
		if err := checkPlaceholders(conditional{names: in.ExpressionAttributeNames, vals: in.ExpressionAttributeValues}, false); err != nil {
			return nil, nil, err
		}
	}
	attrs, err := expression.NewAttributes(in.ExpressionAttributeNames, in.ExpressionAttributeValues)
	if err != nil {
		return nil, nil, err
	}
	t, err := s.table(in.TableName)
	if err != nil {
		return nil, nil, err
	}
	p, err := newPage(in.Limit, in.Select, in.ProjectionExpression, in.FilterExpression, attrs)
	if err != nil {
		return nil, nil, err
	}
	return t, p, attrs.CheckUsed()
}
