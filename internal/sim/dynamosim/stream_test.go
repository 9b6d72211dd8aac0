package dynamosim_test

import (
	"fmt"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/dynamill/dynamill/internal/sim/dynamosim"
)

func TestSequenceNumbersRiseNumericallyButNotAsText(t *testing.T) {
	w := newWorld(t, dynamosim.Options{})
	for i := range 200 {
		w.put("a", "a", i)
	}
	records, _ := w.read(*w.shards()[0].ShardId)
	var texts []string
	last := new(big.Int)
	for _, r := range records {
		n, ok := new(big.Int).SetString(*r.Dynamodb.SequenceNumber, 10)
		if !ok || n.Cmp(last) <= 0 {
			t.Fatalf("%s does not rise from %s", *r.Dynamodb.SequenceNumber, last)
		}
		last = n
		texts = append(texts, *r.Dynamodb.SequenceNumber)
	}
	if len(texts[0]) != 21 || len(texts[199]) != 22 || slices.IsSorted(texts) {
		t.Errorf("got %s to %s: want 21 digits that grow to 22", texts[0], texts[199])
	}
}

func TestSplitShardsHandTheirKeysToTheirChildren(t *testing.T) {
	w := newWorld(t, dynamosim.Options{Shards: 2, Seed: 3})
	const keys = 40
	write := func(n int) {
		for i := range keys {
			w.put(fmt.Sprint(i), "a", n)
		}
	}
	write(1)
	parents, err := w.OpenShards(table)
	w.must(err)
	children, err := w.SplitShard(table, parents[0])
	w.must(err)
	write(2)
	child, err := w.RollOver(table, parents[1])
	w.must(err)
	write(3)

	lineage := map[string]string{}
	for _, sh := range w.shards() {
		lineage[*sh.ShardId] = aws.ToString(sh.ParentShardId)
		open := !slices.Contains(parents, *sh.ShardId)
		if (sh.SequenceNumberRange.EndingSequenceNumber == nil) != open {
			t.Errorf("shard %s: open is %t, ending sequence number %v", *sh.ShardId, open, aws.ToString(sh.SequenceNumberRange.EndingSequenceNumber))
		}
	}
	want := map[string]string{parents[0]: "", parents[1]: "", children[0]: parents[0], children[1]: parents[0], child: parents[1]}
	if fmt.Sprint(lineage) != fmt.Sprint(want) {
		t.Errorf("got parents %v, want %v", lineage, want)
	}
	where := map[string][]string{} // the shards that each key went through, in the order of its changes
	for _, sh := range append(slices.Clone(parents), append(children, child)...) {
		records, ended := w.read(sh)
		if ended != slices.Contains(parents, sh) {
			t.Errorf("shard %s: ended %t", sh, ended)
		}
		for _, r := range records {
			pk := r.Dynamodb.Keys["pk"].(*streamtypes.AttributeValueMemberS).Value
			where[pk] = append(where[pk], sh)
		}
	}
	for pk, shards := range where {
		if len(shards) != 3 || !slices.Contains(parents, shards[0]) || slices.Contains(parents, shards[2]) {
			t.Errorf("key %s went through %v", pk, shards)
		}
	}
	if len(where) != keys {
		t.Errorf("got the records of %d keys, want %d", len(where), keys)
	}
	filtered, err := w.DescribeStream(t.Context(), &dynamodbstreams.DescribeStreamInput{StreamArn: &w.arn,
		ShardFilter: &streamtypes.ShardFilter{Type: streamtypes.ShardFilterTypeChildShards, ShardId: &parents[1]}})
	w.must(err)
	if got := filtered.StreamDescription.Shards; len(got) != 1 || *got[0].ShardId != child {
		t.Errorf("the children of %s are %v, want %s", parents[1], got, child)
	}
	if _, err := w.SplitShard(table, parents[0]); err == nil {
		t.Error("a closed shard was split again")
	}
}

func TestShardsAreDescribedInPages(t *testing.T) {
	w := newWorld(t, dynamosim.Options{Shards: 7})
	var got []string
	in := &dynamodbstreams.DescribeStreamInput{StreamArn: &w.arn, Limit: aws.Int32(3)}
	for pages := 1; ; pages++ {
		out, err := w.DescribeStream(t.Context(), in)
		w.must(err)
		for _, sh := range out.StreamDescription.Shards {
			got = append(got, *sh.ShardId)
		}
		if in.ExclusiveStartShardId = out.StreamDescription.LastEvaluatedShardId; in.ExclusiveStartShardId == nil {
			if pages != 3 || len(got) != 7 || len(slices.Compact(slices.Sorted(slices.Values(got)))) != 7 {
				t.Errorf("got %d pages of %v", pages, got)
			}
			return
		}
	}
}

func TestTheLastRecordsOfAClosedShardComeWithNoNextIterator(t *testing.T) {
	w := newWorld(t, dynamosim.Options{})
	for i := range 3 {
		w.put("a", "a", i)
	}
	shard := *w.shards()[0].ShardId
	_, err := w.RollOver(table, shard)
	w.must(err)
	it, err := w.iterator(shard, streamtypes.ShardIteratorTypeTrimHorizon, "")
	w.must(err)
	out, err := w.GetRecords(t.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: it, Limit: aws.Int32(2)})
	w.must(err)
	if len(out.Records) != 2 || out.NextShardIterator == nil {
		t.Fatalf("got %d records first, next %v", len(out.Records), out.NextShardIterator)
	}
	out, err = w.GetRecords(t.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: out.NextShardIterator, Limit: aws.Int32(2)})
	w.must(err)
	if len(out.Records) != 1 || out.NextShardIterator != nil {
		t.Fatalf("got %d records last, next %v", len(out.Records), out.NextShardIterator)
	}
}

func TestIteratorsExpireAfterFifteenMinutes(t *testing.T) {
	w := newWorld(t, dynamosim.Options{})
	it, err := w.iterator(*w.shards()[0].ShardId, streamtypes.ShardIteratorTypeLatest, "")
	w.must(err)
	for _, c := range []struct {
		after   time.Duration
		expired bool
	}{{15*time.Minute - 1, false}, {1, true}} {
		w.now = w.now.Add(c.after)
		_, err := w.GetRecords(t.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: it})
		if got := isError[*streamtypes.ExpiredIteratorException](err); got != c.expired {
			t.Errorf("after %s more: got %v, want expired %t", c.after, err, c.expired)
		}
	}
}

func TestTrimmedRecordsCannotBeRead(t *testing.T) {
	w := newWorld(t, dynamosim.Options{})
	shard := *w.shards()[0].ShardId
	for i := range 4 {
		w.put("a", "a", i)
		w.now = w.now.Add(time.Minute)
	}
	records, _ := w.read(shard)
	old, err := w.iterator(shard, streamtypes.ShardIteratorTypeTrimHorizon, "")
	w.must(err)
	n, err := w.Trim(table, w.now.Add(-2*time.Minute))
	w.must(err)
	if n != 2 {
		t.Fatalf("trimmed %d records, want 2", n)
	}
	if _, err := w.GetRecords(t.Context(),
		&dynamodbstreams.GetRecordsInput{ShardIterator: old}); !isError[*streamtypes.TrimmedDataAccessException](err) {
		t.Errorf("got %v from an iterator before the trim point", err)
	}
	for i, trimmed := range []bool{true, true, false, false} {
		_, err := w.iterator(shard, streamtypes.ShardIteratorTypeAfterSequenceNumber, *records[i].Dynamodb.SequenceNumber)
		if isError[*streamtypes.TrimmedDataAccessException](err) != trimmed {
			t.Errorf("after record %d: got %v, want trimmed %t", i, err, trimmed)
		}
	}
	if rest, _ := w.read(shard); len(rest) != 2 {
		t.Errorf("got %d records from the trim horizon, want 2", len(rest))
	}
}

func TestADayLaterRecordsAndClosedShardsAreGone(t *testing.T) {
	w := newWorld(t, dynamosim.Options{})
	w.put("a", "a", 1)
	parent := *w.shards()[0].ShardId
	child, err := w.RollOver(table, parent)
	w.must(err)
	w.now = w.now.Add(24*time.Hour + 1)
	if shards := w.shards(); len(shards) != 1 || *shards[0].ShardId != child || aws.ToString(shards[0].ParentShardId) != parent {
		t.Errorf("got shards %v, want the child alone, with its parent's id", shards)
	}
	if _, err := w.iterator(parent, streamtypes.ShardIteratorTypeTrimHorizon, ""); !isError[*streamtypes.ResourceNotFoundException](err) {
		t.Errorf("got %v for the shard that is gone", err)
	}
}

func TestASequenceNumberOfAnotherShardIsRefused(t *testing.T) {
	w := newWorld(t, dynamosim.Options{})
	w.put("a", "a", 1)
	parent := *w.shards()[0].ShardId
	records, _ := w.read(parent)
	child, err := w.RollOver(table, parent)
	w.must(err)
	for _, sequence := range []string{*records[0].Dynamodb.SequenceNumber, "9999999999999999999999999", "x"} {
		if _, err := w.iterator(child, streamtypes.ShardIteratorTypeAfterSequenceNumber, sequence); !isInvalid(err) {
			t.Errorf("%s: got %v, want it refused", sequence, err)
		}
	}
}

func TestExpiredItemsAreRemovedByTheService(t *testing.T) {
	w := newWorld(t, dynamosim.Options{})
	_, err := w.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{TableName: aws.String(table),
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("ttl"), Enabled: aws.Bool(true)}})
	w.must(err)
	for sk, ttl := range map[string]types.AttributeValue{
		"past": num(w.now.Unix() - 1), "now": num(w.now.Unix()), "future": num(w.now.Unix() + 60), "text": str("1"),
		"ancient": num(w.now.AddDate(-6, 0, 0).Unix()),
	} {
		_, err := w.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(table),
			Item: item{"pk": str("a"), "sk": str(sk), "ttl": ttl}})
		w.must(err)
	}
	before := w.Usage()
	if n := w.ExpireItems(); n != 1 || w.get("a", "past") != nil {
		t.Fatalf("%d items expired, want the past one alone", n)
	}
	if d := w.Usage().Sub(before); d.WriteUnits != 0 {
		t.Errorf("expiry cost %v write units", d.WriteUnits)
	}
	records, _ := w.read(*w.shards()[0].ShardId)
	last := records[len(records)-1]
	if last.EventName != streamtypes.OperationTypeRemove || aws.ToString(last.UserIdentity.Type) != "Service" ||
		aws.ToString(last.UserIdentity.PrincipalId) != "dynamodb.amazonaws.com" {
		t.Errorf("got %s by %+v", last.EventName, last.UserIdentity)
	}
	start := w.now.Unix()
	for i, c := range []struct {
		later time.Duration
		put   types.AttributeValue // the time to live of one more item
		want  int
	}{
		{time.Second, str("none"), 1}, {30 * time.Second, num(start), 1}, {0, num(start + 40), 0}, {30 * time.Second, str("none"), 2},
	} {
		w.now = w.now.Add(c.later)
		late := item{"pk": str("late"), "sk": str(fmt.Sprint(i)), "ttl": c.put}
		_, err := w.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(table), Item: late})
		w.must(err)
		if n := w.ExpireItems(); n != c.want {
			t.Errorf("look %d: %d items expired, want %d", i, n, c.want)
		}
	}
}

func TestScatteredCollectionsSpreadOneKeyOverShards(t *testing.T) {
	for _, scatter := range []bool{false, true} {
		w := newWorld(t, dynamosim.Options{Shards: 4, ScatterCollections: scatter})
		for i := range 40 {
			w.put("one", fmt.Sprint(i), i)
		}
		used := 0
		for _, sh := range w.shards() {
			if records, _ := w.read(*sh.ShardId); len(records) > 0 {
				used++
			}
		}
		if (used > 1) != scatter {
			t.Errorf("scatter %t: one collection went to %d shards", scatter, used)
		}
	}
}

func TestEveryStreamNumbersItsRecordsAnew(t *testing.T) {
	w := newWorld(t, dynamosim.Options{})
	for i := range 100 {
		w.put("a", "a", i)
	}
	former, _ := w.read(*w.shards()[0].ShardId)
	w.enableAnew()
	w.put("a", "a", 100)
	records, _ := w.read(*w.shards()[0].ShardId)
	if len(records) != 1 {
		t.Fatalf("the new stream has %d records, want one", len(records))
	}
	last, _ := new(big.Int).SetString(*former[99].Dynamodb.SequenceNumber, 10)
	if n, _ := new(big.Int).SetString(*records[0].Dynamodb.SequenceNumber, 10); n.Cmp(last) >= 0 {
		t.Errorf("the new stream begins at %s, the former one ended at %s", n, last)
	}
}
