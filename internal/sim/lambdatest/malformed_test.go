package lambdatest

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/dynamill/dynamill/change"
)

// malformed spoils some records of a stream, each in the same way whenever it
// comes. Its keys can still be read: without them nothing could be expected but
// that it is parked. What else is to come of it is what comes of every record.
type malformed struct {
	seed  uint64
	share float64

	mu      sync.Mutex
	texts   map[string]string // of the spoilt records, by the id under which they are parked
	ids     map[string]string // by sequence number
	settled map[string]bool   // ids of those that the function said to be done
}

func newMalformed(random *rand.Rand) *malformed {
	return &malformed{
		seed: random.Uint64(), share: pick(random, 0, 0, 0.03, 0.15),
		texts: map[string]string{}, ids: map[string]string{}, settled: map[string]bool{},
	}
}

func (m *malformed) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.texts)
}

// document is JSON of which only parts are known.
type document = map[string]any

// corrupt is the Mapping's.
func (m *malformed) corrupt(r types.Record, text []byte) []byte {
	sequence := aws.ToString(r.Dynamodb.SequenceNumber)
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(sequence)) // a hash takes everything
	random := rand.New(rand.NewPCG(m.seed, hash.Sum64()))
	if random.Float64() >= m.share {
		return text
	}
	var record document
	if err := json.Unmarshal(text, &record); err != nil {
		panic(err) // Event makes JSON
	}
	spoil(random, record)
	spoilt, err := encode(record)
	if err != nil {
		panic(err)
	}
	_, label, _ := strings.Cut(record["eventSourceARN"].(string), "/stream/")
	position, err := change.NewPosition(label, sequence)
	if err != nil {
		panic(err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	id := "record/" + position.String()
	m.texts[id], m.ids[sequence] = string(spoilt), id
	return spoilt
}

// spoil makes a record malformed, but for its keys.
func spoil(random *rand.Rand, record document) {
	parts := record["dynamodb"].(document)
	var there []string
	for _, name := range []string{"OldImage", "NewImage"} {
		if parts[name] != nil {
			there = append(there, name)
		}
	}
	name := pick(random, there...)
	image := parts[name].(document)
	attribute := pick(random, slices.Sorted(maps.Keys(image))...)
	switch random.IntN(5) {
	case 0:
		image[attribute] = document{"X": "1"}
	case 1:
		image[attribute] = document{"N": "one"}
	case 2:
		image[attribute] = document{"S": "a", "N": "1"}
	case 3:
		delete(parts, name)
	case 4:
		record["eventName"] = "UPSERT"
	}
}

// attempted is the Mapping's. What is done with need not come again: a malformed
// record is parked by then.
func (m *malformed) attempted(a Attempt) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range a.Records[:a.Done] {
		if id := m.ids[aws.ToString(r.Dynamodb.SequenceNumber)]; id != "" {
			m.settled[id] = true
		}
	}
}

// problems says how what is parked of records that cannot be read differs from
// what was spoilt. A record that came late only, in a batch that was given up, need
// not be parked: of such a batch only the keys count.
func (m *malformed) problems(parked []change.Item) (found []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	there := map[string]bool{}
	for _, row := range parked {
		id := row["sk"].Text()
		there[id] = true
		switch text, spoilt := m.texts[id]; {
		case !spoilt:
			found = append(found, fmt.Sprintf("parked %s: nobody spoilt that record: %s", id, row["reason"].Text()))
		case row["raw"].Text() != text:
			found = append(found, fmt.Sprintf("parked %s: want its JSON %s, got %s", id, text, row["raw"].Text()))
		case row["id"].Text() != id || row["code"].Text() == "" || row["reason"].Text() == "":
			found = append(found, fmt.Sprintf("parked %s: it says %v", id, row))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(m.settled)) {
		if !there[id] {
			found = append(found, fmt.Sprintf("%s is malformed and done, but not parked: %s", id, m.texts[id]))
		}
	}
	return found
}
