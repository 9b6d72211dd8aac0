package dynamosim

import (
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// OpenShards returns the ids of the shards of the table's stream that take records, in order.
func (s *Sim) OpenShards(tableName string) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.streamingTable(tableName)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, sh := range t.stream.shards {
		if sh.closed.IsZero() {
			ids = append(ids, sh.id)
		}
	}
	return ids, nil
}

// SplitShard closes an open shard and opens two children in its place, each
// with half of its keys, as DynamoDB does when a partition splits.
func (s *Sim) SplitShard(tableName, shardID string) (children []string, err error) {
	return s.succeed(tableName, shardID, 2)
}

// RollOver closes an open shard and opens one child in its place, as DynamoDB
// does every few hours.
func (s *Sim) RollOver(tableName, shardID string) (child string, err error) {
	children, err := s.succeed(tableName, shardID, 1)
	if err != nil {
		return "", err
	}
	return children[0], nil
}

func (s *Sim) succeed(tableName, shardID string, n int) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.streamingTable(tableName)
	if err != nil {
		return nil, err
	}
	for _, sh := range t.stream.shards {
		if sh.id != shardID || !sh.closed.IsZero() {
			continue
		}
		if n == 2 && sh.from == sh.to {
			return nil, fmt.Errorf("shard %s of table %s cannot be split further", shardID, tableName)
		}
		s.closeShard(t.stream, sh)
		if n == 1 {
			return []string{s.addShard(t.stream, sh.id, sh.from, sh.to).id}, nil
		}
		middle := sh.from + (sh.to-sh.from)/2
		return []string{
			s.addShard(t.stream, sh.id, sh.from, middle).id,
			s.addShard(t.stream, sh.id, middle+1, sh.to).id,
		}, nil
	}
	return nil, fmt.Errorf("table %s has no open shard %s", tableName, shardID)
}

// Trim drops the records of the table's stream that were made before a moment,
// as DynamoDB does after 24 hours, and returns how many. Records older than
// that by the Sim's clock go by themselves, and so do closed shards.
func (s *Sim) Trim(tableName string, before time.Time) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.streamingTable(tableName)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, sh := range t.stream.shards {
		n += sh.trim(before)
	}
	return n, nil
}

func (s *Sim) streamingTable(name string) (*table, error) {
	t, err := s.table(&name)
	if err != nil {
		return nil, err
	}
	if !t.streaming() {
		return nil, fmt.Errorf("table %s has no stream", name)
	}
	return t, nil
}

// never is later than the time to live of any item: DynamoDB's numbers are less than 1E126 (developer guide, "Data types").
var never = makeKeyValue(&types.AttributeValueMemberN{Value: "1E126"})

// expiredMax is how long ago a time to live may have passed for the item to be deleted still (developer guide).
const expiredMax = 5 * 365 * 24 * time.Hour

// ExpireItems deletes the items of all tables whose time to live has passed by
// the Sim's clock, as DynamoDB does within days, and returns how many. Their
// stream records say that the service did it. It costs no capacity.
func (s *Sim) ExpireItems() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetOld()
	n, now := 0, s.options.Now()
	earliest, latest := unixSeconds(now.Add(-expiredMax)), unixSeconds(now)
	for _, name := range sortedNames(s.tables) {
		t := s.tables[name]
		if t.ttlAttribute == "" || latest.compare(t.expiresFrom) <= 0 {
			continue
		}
		t.expiresFrom = never
		var expired []*row
		for _, c := range t.inOrder() {
			for _, r := range c.rows {
				at, ok := t.expiry(r.item)
				switch {
				case !ok:
				case isBetween(at, earliest, latest):
					expired = append(expired, r)
				case at.compare(latest) >= 0 && at.compare(t.expiresFrom) < 0:
					t.expiresFrom = at
				}
			}
		}
		for _, r := range expired {
			s.store(t, r.key, nil)
			s.record(t, r.key, r.item, nil, &streamtypes.Identity{
				Type: aws.String("Service"), PrincipalId: aws.String("dynamodb.amazonaws.com"),
			})
		}
		n += len(expired)
	}
	return n
}

// unixSeconds is a time as an item's time to live attribute has it: seconds since 1970, as a number.
func unixSeconds(t time.Time) keyValue {
	return makeKeyValue(&types.AttributeValueMemberN{Value: strconv.FormatInt(t.Unix(), 10)})
}

func isBetween(v, low, high keyValue) bool { return v.compare(low) > 0 && v.compare(high) < 0 }
