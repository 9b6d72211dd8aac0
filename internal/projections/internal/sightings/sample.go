package sightings

import (
	"cmp"
	"hash/fnv"
	"maps"
	"math"
	"slices"
)

const (
	targetsMax    = 1000   // of one rule that are held
	targetsMin    = 20     // however many rules there are
	targetsAllMax = 20_000 // of all rules together
)

// TargetsHeld is how many targets are held for each of so many rules.
func TargetsHeld(ruleCount int) int {
	return min(targetsMax, max(targetsMin, targetsAllMax/max(1, ruleCount)))
}

// targetSample holds the targets of one rule at which sources point, and counts those sources. If
// there are more targets than it holds, it keeps those with the lowest hashes: an even sample. Such a
// target was held since the first source that pointed at it, so that its sources are all counted.
type targetSample struct {
	most    int
	held    map[string]int64 // how many sources point at each
	last    string           // of those held the one with the highest hash, once there is no more room
	partial bool             // there are more targets than are held
}

func newTargetSample(most int) *targetSample {
	return &targetSample{most: most, held: map[string]int64{}}
}

// add notes that one more source points at a target.
func (s *targetSample) add(target string) {
	if _, known := s.held[target]; !known && len(s.held) >= s.most {
		s.partial = true
		if byHash(target, s.last) > 0 {
			return
		}
		delete(s.held, s.last)
	}
	if s.held[target]++; s.held[target] == 1 && len(s.held) >= s.most {
		s.last = slices.MaxFunc(slices.Collect(maps.Keys(s.held)), byHash)
	}
}

func byHash(a, b string) int { return cmp.Compare(hashOf(a), hashOf(b)) }

// scale is by how much the sample is to be multiplied; 1 if it holds all targets.
func (s *targetSample) scale() float64 {
	if !s.partial {
		return 1
	}
	share := (float64(hashOf(s.last)) + 1) / math.MaxUint64 // of all hashes up to the highest one held
	return 1 / share * float64(s.most-1) / float64(s.most)
}

// hashOf spreads targets evenly, in the same way in every process.
func hashOf(text string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(text))
	x := h.Sum64() // its high bits are alike for short texts
	x = (x ^ x>>32) * 0x9e3779b97f4a7c15
	return x ^ x>>29
}
