// Package lanes has what the engine and the count of hot rules tell each other of shards, groups and positions
// (docs/adr/0036-hot-counters-count-by-position.md). A lane is a chain of shards along which sequence numbers rise.
package lanes

import (
	"strings"
	"time"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/tally"
)

// Pad makes a sequence number comparable as a text with others of its lane; "" stays "", which is before every number.
func Pad(sequence string) string {
	if sequence == "" {
		return ""
	}
	return strings.Repeat("0", max(0, change.SequenceDigitsMax-len(sequence))) + sequence
}

// Unpad is the sequence number that Pad was given; "" for "".
func Unpad(position string) string {
	if sequence := strings.TrimLeft(position, "0"); sequence != "" || position == "" {
		return sequence
	}
	return "0"
}

// Start is where a generation begins in a shard.
type Start struct {
	Shard, Parent string // Parent is "" if the shard has none any more
	From          string // records up to this padded position are not the generation's; "": all of the shard are
}

// Shard is a shard in a generation.
type Shard struct {
	Shard string
	Lane  string // the shard with which its lane began
	From  string // as in Start
}

// Group is what the rows of a group hold.
type Group struct {
	Base      int64             // operations on the base row
	Total     tally.Amount      // of all rows
	HighWater map[string]string // by lane: padded sequence number of the last record added
}

// WrongDisplay is a target that shows something else than what the rows of its group hold.
type WrongDisplay struct {
	Item       change.Key
	Attribute  string
	Want, Have string    // as people read them; "" for nothing
	Stamp      string    // another one once a worker has written the display
	StampLater bool      // than the rows, as after these were restored from a backup: no worker writes over it
	Parked     bool      // the item is parked under the rule: no worker writes it
	PutOff     time.Time // until when the roll-up is put off; zero: it is not
}

// CountExtent says how far a count has read.
type CountExtent struct {
	ID    string
	Until time.Time         // a record whose time is later was surely written after the count's scan
	Read  map[string]string // by shard: the padded position of the last record read; "" for none
}
