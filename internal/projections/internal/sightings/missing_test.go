package sightings

import (
	"math"
	"strconv"
	"testing"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/rules"
)

// TestTargetSampleIsExactUntilItIsFull adds more targets than are held: those that stay have all their
// sources, and the sample tells about how many targets there are.
func TestTargetSampleIsExactUntilItIsFull(t *testing.T) {
	const most, sources = 1000, 3
	for _, targets := range []int{10, most, 50 * most} {
		s := newTargetSample(most)
		for range sources {
			for i := range targets {
				s.add("POST#" + strconv.Itoa(i) + "/META")
			}
		}
		for target, n := range s.held {
			if n != sources {
				t.Fatalf("%s of %d has %d sources, want %d", target, targets, n, sources)
			}
		}
		told := float64(len(s.held)) * s.scale()
		if s.partial != (targets > most) || math.Abs(told-float64(targets)) > 0.15*float64(targets) || !s.partial && told != float64(targets) {
			t.Errorf("of %d targets the sample tells %v", targets, told)
		}
	}
}

// counted returns the missing targets of a rule that counts comments of posts. So many are held.
func counted(most int) *MissingTracker {
	b := &plan.Binding{Rule: &rules.Rule{Name: "comments", Target: &rules.Entity{Name: "Post"}}}
	return &MissingTracker{Rule: b, most: most, held: map[string]*TargetSources{}}
}

// TestMissingTargetsAreBounded lets a rule miss more targets than are held.
func TestMissingTargetsAreBounded(t *testing.T) {
	m := counted(2)
	for i := range 5 {
		m.NoteMissing("POST#"+strconv.Itoa(i), func(p *TargetSources) { p.Add(change.Key{Partition: "COMMENT#" + strconv.Itoa(i)}) })
	}
	if got, lacking := m.report(); !lacking || got.Targets != 2 || !got.About || len(got.Examples) != 2 {
		t.Errorf("missing %+v, want two that are held, and that there are more", got)
	}
}

// TestSampleOfTargetsIsScaled looks at the targets of a pass of which a tenth is held, and half are missing.
func TestSampleOfTargetsIsScaled(t *testing.T) {
	const targets, most = 2000, 200
	m, sample, there := counted(most), newTargetSample(most), map[string]bool{}
	for i := range targets {
		key := "POST#" + strconv.Itoa(i)
		sample.add(key)
		there[key] = i%2 == 0
	}
	m.applyLook(m.toLookAt(sample), there, sample)
	got, _ := m.report()
	if !got.About || got.All || math.Abs(float64(got.Targets-targets/2)) > targets/8 || got.Sources != got.Targets {
		t.Errorf("half of %d targets are missing, and it tells %+v", targets, got)
	}
}
