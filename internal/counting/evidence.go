package counting

import (
	"encoding/binary"
	"errors"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/extsort"
	"github.com/dynamill/dynamill/internal/tally"
)

// evidence is what the scan and the stream tell. It is sorted on disk: by items first, as the last record of an item stands for what
// the scan has found of it, and then by groups.
type evidence struct {
	items  *extsort.Sorter // by item: what it adds, and when that was read
	groups *extsort.Sorter // by group: what its items add, then what records changed, by shard and position
	order  atomic.Uint64   // of the records: those of one item are read in their order

	mu      sync.Mutex
	sealed  bool               // what comes now goes into further
	further map[string][]entry // by group
}

// entry is what one record changes of a group.
type entry struct {
	shard, position string
	difference      tally.Amount
}

// group is what the evidence says of one group.
type group struct {
	name    string
	items   []tally.Amount // what the items add: as one amount, unless no number holds what only some of them add up to
	entries []entry
	targets []target // in the scan
}

// target is what a target showed in the scan, and how many operations its stamp counted.
type target struct {
	shown      string
	operations int64
}

func newEvidence(dir string) (*evidence, error) {
	e := &evidence{further: map[string][]entry{}}
	var err error
	if e.items, err = extsort.New(dir, sortBytes, latest); err != nil {
		return nil, err
	}
	if e.groups, err = extsort.New(dir, sortBytes, sum); err != nil {
		return nil, errors.Join(err, e.items.Close())
	}
	return e, nil
}

func (e *evidence) close() {
	_ = e.items.Close() // temporary files: nothing is lost
	_ = e.groups.Close()
}

// latest keeps what was read last of an item.
func latest(_, a, b []byte) ([]byte, bool) {
	if binary.BigEndian.Uint64(b) > binary.BigEndian.Uint64(a) {
		return b, true
	}
	return a, true
}

// The kinds of data of a group.
const (
	ofItems  = 0
	ofRecord = 1
	ofTarget = 2
)

// sum adds up what the items of a group add.
func sum(key, a, b []byte) ([]byte, bool) {
	if _, rest, ok := extsort.CutText(key); !ok || rest[0] != ofItems {
		return nil, false
	}
	both := tally.Sum(tally.Parse(string(a)), tally.Parse(string(b)))
	return []byte(both.String()), !both.Overflow
}

// addItem keeps what the scan has found of an item.
func (e *evidence) addItem(key change.Key, amounts map[string]tally.Amount, order uint64) error {
	if order == 0 && len(amounts) == 0 {
		return nil
	}
	data := binary.BigEndian.AppendUint64(nil, order)
	for g, a := range amounts {
		data = extsort.AppendText(extsort.AppendText(data, g), a.String())
	}
	return e.items.Add([]byte(key.String()), data)
}

// addRecord keeps what a record says: what its item adds from then on, and what it changes.
func (e *evidence) addRecord(key change.Key, after map[string]tally.Amount, shard, position string, changes map[string]tally.Amount) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for g, difference := range changes {
		if e.sealed {
			g = strings.Clone(g) // it is a part of an item, which must not stay in memory
			e.further[g] = append(e.further[g], entry{shard, position, difference})
			continue
		}
		k := extsort.AppendText(append(extsort.AppendText(nil, g), ofRecord), shard)
		if err := e.groups.Add(append(k, position...), []byte(difference.String())); err != nil {
			return err
		}
	}
	if e.sealed {
		return nil
	}
	return e.addItem(key, after, e.order.Add(1))
}

// addGroup has a group looked at even if no item of it is left.
func (e *evidence) addGroup(name string) error {
	return e.groups.Add(append(extsort.AppendText(nil, name), ofItems), []byte(tally.Amount{}.String()))
}

// addTarget keeps what an item shows of a group, which is looked at even if no item adds to it.
func (e *evidence) addTarget(group string, key change.Key, t target) error {
	k := append(extsort.AppendText(nil, group), ofTarget)
	return e.groups.Add(append(k, key.String()...), append(binary.BigEndian.AppendUint64(nil, uint64(t.operations)), t.shown...))
}

// seal turns what items add into what groups have. What records say from now on is kept in memory.
func (e *evidence) seal() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sealed = true
	err := e.items.Each(func(_, data []byte) error {
		for rest := data[8:]; len(rest) > 0; {
			name, after, ok := extsort.CutText(rest)
			amount, end, whole := extsort.CutText(after)
			if !ok || !whole {
				return errors.New("a temporary file is torn")
			}
			rest = end
			if err := e.groups.Add(append(extsort.AppendText(nil, name), ofItems), []byte(amount)); err != nil {
				return err
			}
		}
		return nil
	})
	return errors.Join(err, e.items.Close())
}

// entriesKept is how many records of a group are kept in memory before those are dropped that workers have added.
const entriesKept = 50_000

// each calls f with each group. A group with many records goes through thin before: it may drop those that tell nothing any more.
func (e *evidence) each(f, thin func(*group) error) error {
	var g *group
	most := entriesKept
	err := e.groups.Each(func(key, data []byte) error {
		name, rest, ok := extsort.CutText(key)
		if !ok {
			return errors.New("a temporary file is torn")
		}
		if g == nil || g.name != name {
			if g != nil {
				if err := f(g); err != nil {
					return err
				}
			}
			g, most = &group{name: name}, entriesKept
		}
		if rest[0] == ofTarget {
			g.targets = append(g.targets, target{string(data[8:]), int64(binary.BigEndian.Uint64(data))})
			return nil
		}
		amount := tally.Parse(string(data))
		if rest[0] == ofItems {
			g.items = append(g.items, amount)
			return nil
		}
		shard, position, _ := extsort.CutText(rest[1:])
		g.entries = append(g.entries, entry{shard, string(position), amount})
		if len(g.entries) < most {
			return nil
		}
		err := thin(g)
		most = len(g.entries) + entriesKept
		return err
	})
	if err == nil && g != nil {
		err = f(g)
	}
	return err
}

// since returns what records say of a group that were read after the evidence was sealed.
func (e *evidence) since(name string) []entry {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.further[name][:len(e.further[name]):len(e.further[name])]
}
