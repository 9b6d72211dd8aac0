package histories

import (
	"slices"
	"time"
)

// Shrink looks for a shorter history that still fails, until the time is over.
// fails runs a history. The result fails, or is h itself.
func Shrink(h *History, fails func(*History) bool, atMost time.Duration) *History {
	s := shrinking{best: h, fails: fails, until: time.Now().Add(atMost)}
	for again := true; again && !s.late(); {
		again = s.faults()
		again = s.steps() || again
		again = s.turns() || again
		again = s.setting() || again
	}
	return s.best
}

type shrinking struct {
	best  *History
	fails func(*History) bool
	until time.Time
}

func (s *shrinking) late() bool { return time.Now().After(s.until) }

// try keeps a variant if it fails.
func (s *shrinking) try(change func(h *History)) bool {
	h := *s.best
	h.Steps = slices.Clone(h.Steps)
	change(&h)
	if s.late() || !s.fails(&h) {
		return false
	}
	s.best = &h
	return true
}

// faults leaves out one kind of fault after the other.
func (s *shrinking) faults() bool {
	any := false
	for _, f := range s.best.Faults.List() {
		any = s.try(func(h *History) { h.Faults = h.Faults.Without(f) }) || any
	}
	return any
}

// steps leaves out runs of steps, long ones first.
func (s *shrinking) steps() bool {
	any := false
	for size := len(s.best.Steps) / 2; size > 0; size /= 2 {
		for from := len(s.best.Steps) - size; from >= 0; from -= size {
			if from+size > len(s.best.Steps) {
				continue
			}
			any = s.try(func(h *History) {
				old := min(size, max(0, h.Old-from))
				h.Steps = slices.Delete(h.Steps, from, from+size)
				h.Old -= old
			}) || any
		}
	}
	return any
}

// turns lets steps follow each other more closely.
func (s *shrinking) turns() bool {
	any := false
	for i := range s.best.Steps {
		if s.best.Steps[i].Turns > 0 {
			any = s.try(func(h *History) { h.Steps[i].Turns = 0 }) || any
		}
	}
	return any
}

// setting makes the surroundings plainer.
func (s *shrinking) setting() bool {
	any := false
	for _, plainer := range []struct {
		can  bool
		make func(*History)
	}{
		{s.best.Again, func(h *History) { h.Again = false }},
		{s.best.Shards > 1, func(h *History) { h.Shards = 1 }},
		{s.best.Workers > 1, func(h *History) { h.Workers = 1 }},
		{s.best.Workers > 2, func(h *History) { h.Workers = 2 }},
		{s.best.Company, func(h *History) { h.Company = false }},
		{len(s.best.Skews) > 0, func(h *History) { h.Skews = nil }},
		{s.best.Namesakes, func(h *History) { h.Namesakes = false }},
		{s.best.Verifies, func(h *History) { h.Verifies = false }},
		{s.best.PageMax > 0, func(h *History) { h.PageMax = 0 }},
		{s.best.FirstRules != "", func(h *History) { h.FirstRules, h.Changing = "", false }},
		{s.best.Scatter, func(h *History) { h.Scatter = false }},
		{s.best.HealsMax > 0, func(h *History) { h.HealsMax = 0 }},
		{s.best.RangesMin > 0, func(h *History) { h.RangesMin = 0 }},
		{s.best.DisplayEvery > 0, func(h *History) { h.DisplayEvery = 0 }},
		{s.best.FanOutMax > 0, func(h *History) { h.FanOutMax = 0 }},
		{s.best.Old > 0, func(h *History) { h.Old = 0 }},
	} {
		if plainer.can {
			any = s.try(plainer.make) || any
		}
	}
	return any
}
