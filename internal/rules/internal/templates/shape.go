package templates

import (
	"sync"

	"github.com/dynamill/dynamill/change"
)

// Bounds of keys (DynamoDB developer guide, "Quotas": partition and sort key length).
const (
	PartitionBytesMax = 2048
	SortBytesMax      = 1024
)

// KeyTypes holds the table's real key types, once CheckKeys has told them.
type KeyTypes struct {
	Partition, Sort change.Kind

	told bool       // they do not change any more
	mu   sync.Mutex // held while they are told
}

// Tell keeps the types and calls first, once. It returns false if other types were told before.
func (k *KeyTypes) Tell(partition, sort change.Kind, first func()) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.told {
		return k.Partition == partition && k.Sort == sort
	}
	k.Partition, k.Sort, k.told = partition, sort, true
	first()
	return true
}

// Shape is what an entity's keys look like.
type Shape struct {
	Partition, Sort Template
	HasSort         bool
	Variables       []string // by slot
	Formats         []Format // of the variables, by slot
	Kinds           *KeyTypes
}

// Match reports whether the key is one of the shape, and gives the values of its variables.
func (sh *Shape) Match(key change.Key, vars *[VariablesMax]string) bool {
	if !sh.Partition.Match(key.Partition, vars) {
		return false
	}
	if !sh.HasSort {
		return key.Sort == ""
	}
	return sh.Sort.Match(key.Sort, vars)
}

// Rests reports whether every place of the variable takes the rest of its key.
func (sh *Shape) Rests(slot int) bool {
	return sh.Partition.Rests(slot) && sh.Sort.Rests(slot)
}

// Text is the templates as the file has them, with " / " between.
func (sh *Shape) Text() string {
	if !sh.HasSort {
		return sh.Partition.Text
	}
	return sh.Partition.Text + " / " + sh.Sort.Text
}

// Numbers yields the slots of the variables that are whole number keys.
func (sh *Shape) Numbers(yield func(slot int) bool) {
	if sh.Kinds == nil {
		return
	}
	slot, single := sh.Partition.Single()
	if sh.Kinds.Partition == change.KindNumber && single && !yield(slot) {
		return
	}
	if slot, single = sh.Sort.Single(); sh.Kinds.Sort == change.KindNumber && single {
		yield(slot)
	}
}

// OverlapStepsMax bounds the work of comparing all entities of a file.
const OverlapStepsMax = 20_000_000

// Overlapping decides whether some key fits both shapes, and gives one. It takes a key's two templates apart, so it may find
// an overlap that is none, never miss one. The example is "" where the key it would give does not fit.
func Overlapping(a, b *Shape, budget *int) (example string, overlap bool) {
	partition, ok := CommonText(&a.Partition, &b.Partition, budget)
	if !ok {
		return "", false
	}
	key := change.Key{Partition: partition}
	if a.HasSort {
		if key.Sort, ok = CommonText(&a.Sort, &b.Sort, budget); !ok {
			return "", false
		}
	}
	var va, vb [VariablesMax]string
	if !a.Match(key, &va) || !b.Match(key, &vb) {
		return "", true
	}
	if key.Sort == "" {
		return key.Partition, true
	}
	return key.Partition + " / " + key.Sort, true
}
