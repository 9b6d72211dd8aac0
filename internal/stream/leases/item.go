package leases

import (
	"errors"
	"strconv"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// The attributes of a lease row that the Kinesis Client Library has too.
const (
	attrKey        = "leaseKey"
	attrOwner      = "leaseOwner"
	attrCounter    = "leaseCounter"
	attrCheckpoint = "checkpoint"
	attrSwitches   = "ownerSwitchesSinceCheckpoint"
	attrParent     = "parentShardId"
	attrChildren   = "childShardIds"
)

// The attributes that it has not. streamName holds the stream's ARN.
const (
	attrStream     = "streamName"
	attrWhole      = "foundWhole"
	attrStart      = "startingSequenceNumber"
	attrOrphan     = "parentGone"
	attrEmptyPolls = "emptyPolls"
	attrNewest     = "newestRecordTime" // seconds since 1970
	attrTerm       = "leaseTerm"        // milliseconds
	attrRun        = "ownerRun"
	// Of a stream's own row only.
	attrLabel        = "streamLabel"
	attrPartitionKey = "partitionKey"
	attrSortKey      = "sortKey"
	attrNews         = "news"
)

// atTimestamp is a checkpoint that the Kinesis Client Library knows and dynamill does not.
const atTimestamp = "AT_TIMESTAMP"

// termMax bounds the terms that rows say others have.
const termMax = 24 * time.Hour

func text(s string) ddb.AttributeValue { return &ddb.AttributeValueMemberS{Value: s} }
func number(n int64) ddb.AttributeValue {
	return &ddb.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

func (l *Lease) texts() map[string]*string {
	return map[string]*string{
		attrKey: &l.Shard, attrStream: &l.Stream, attrOwner: &l.Owner, attrRun: &l.Run, attrCheckpoint: &l.Checkpoint, attrStart: &l.Start,
		attrLabel: &l.Label, attrPartitionKey: &l.PartitionKey, attrSortKey: &l.SortKey,
	}
}

func (l *Lease) numbers() map[string]*int64 {
	return map[string]*int64{attrCounter: &l.Counter, attrSwitches: &l.Switches, attrEmptyPolls: &l.EmptyPolls, attrNews: &l.News}
}

func leaseToItem(l Lease) map[string]ddb.AttributeValue {
	item := map[string]ddb.AttributeValue{}
	for name, value := range l.texts() {
		if *value != "" {
			item[name] = text(*value)
		}
	}
	numbers := l.numbers()
	term, newest := l.Term.Milliseconds(), int64(0)
	if !l.Newest.IsZero() {
		newest = l.Newest.Unix()
	}
	numbers[attrTerm], numbers[attrNewest] = &term, &newest
	for name, n := range numbers {
		if *n > 0 || name == attrCounter || name == attrSwitches {
			item[name] = number(*n)
		}
	}
	if !l.Unadopted {
		item[attrWhole] = &ddb.AttributeValueMemberBOOL{Value: l.Whole}
	}
	if l.Orphan {
		item[attrOrphan] = &ddb.AttributeValueMemberBOOL{Value: true}
	}
	if l.Parent != "" {
		item[attrParent] = &ddb.AttributeValueMemberSS{Value: []string{l.Parent}}
	}
	if len(l.Children) > 0 {
		item[attrChildren] = &ddb.AttributeValueMemberSS{Value: l.Children}
	}
	return item
}

// leaseFromItem refuses a row without a checkpoint: to take it for the start
// or the end of the shard would both be guesses.
func leaseFromItem(item map[string]ddb.AttributeValue) (Lease, error) {
	l := Lease{Whole: truthOf(item[attrWhole]), Orphan: truthOf(item[attrOrphan]), Unadopted: item[attrWhole] == nil}
	for name, to := range l.texts() {
		*to = textOf(item[name])
	}
	if l.Shard == "" || l.Checkpoint == "" {
		return Lease{}, permanentf("row %q has no %s or no %s", l.Shard, attrKey, attrCheckpoint)
	}
	if !l.OfStream() && (l.Checkpoint == Latest || l.Checkpoint == atTimestamp) {
		l.Checkpoint = TrimHorizon // a shard that is opened anywhere else loses records
	}
	numbers := l.numbers()
	var term, newest int64
	numbers[attrTerm], numbers[attrNewest] = &term, &newest
	for name, to := range numbers {
		av, ok := item[name]
		if !ok && name != attrCounter {
			continue
		}
		var err error
		if *to, err = numberOf(av); err != nil {
			return Lease{}, permanentf("row %q: %s: %w", l.Shard, name, err)
		}
	}
	if newest != 0 {
		l.Newest = time.Unix(newest, 0).UTC()
	}
	l.Term = time.Duration(max(0, min(term, termMax.Milliseconds()))) * time.Millisecond
	if parents, ok := item[attrParent].(*ddb.AttributeValueMemberSS); ok && len(parents.Value) > 0 {
		l.Parent = parents.Value[0] // a stream's shard has at most one parent
	}
	if children, ok := item[attrChildren].(*ddb.AttributeValueMemberSS); ok {
		l.Children = children.Value
	}
	return l, nil
}

func textOf(av ddb.AttributeValue) string {
	if s, ok := av.(*ddb.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

func numberOf(av ddb.AttributeValue) (int64, error) {
	n, ok := av.(*ddb.AttributeValueMemberN)
	if !ok {
		return 0, errors.New("want a number")
	}
	return strconv.ParseInt(n.Value, 10, 64)
}

func truthOf(av ddb.AttributeValue) bool {
	b, ok := av.(*ddb.AttributeValueMemberBOOL)
	return ok && b.Value
}
