package main

import (
	"cmp"
	"fmt"
	"time"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/progress"
	"github.com/dynamill/dynamill/projections"
)

// grouped writes a number with its thousands parted: 12,345.
func grouped(n int64) string { return progress.Grouped(n) }

// seedState is how far seeding is.
type seedState struct {
	text         string // for logs
	waits        bool   // until the stream's backlog is applied
	pass, passes int
	items        int64
}

// fanOutMin is how long a fan-out works before it is shown.
const fanOutMin = time.Second

// fanOutState is the fan-out at hand.
type fanOutState struct {
	projections.TaskProgress
	began time.Time // the first piece that was seen
}

// since is the state behind another one.
func (s *fanOutState) since(last *fanOutState) *fanOutState {
	if last != nil && last.Rule == s.Rule && last.Parent == s.Parent {
		s.began = last.began
	}
	return s
}

// snapshot is how far `run` has come since it started.
type snapshot struct {
	Records int64         // of the stream, done
	Lag     time.Duration // between the last record's change and now; 0 when nothing waits
	Writes  int64         // requests that wrote
	Healed  int64         // attributes and mirrors that another program had overwritten
	Parked  int64
	Seeding string // what is being seeded and how far; "" when nothing is
}

// attributes are the snapshot for logs.
func (s snapshot) attributes() []any {
	found := []any{"records", s.Records, "lag_seconds", int64(s.Lag / time.Second), "writes", s.Writes, "healed", s.Healed, "parked", s.Parked}
	if s.Seeding != "" {
		found = append(found, "seeding", s.Seeding)
	}
	return found
}

// followState is the state of `run` as it is shown.
type followState struct {
	snapshot
	drains bool
	seed   *seedState   // nil: nothing is seeded
	items  int64        // of the table, as DynamoDB last counted them; 0: not known
	fanOut *fanOutState // nil: none is worked off
	at     time.Time
}

// shown is the state for the terminal and the log.
func (s followState) shown() progress.State {
	p := progress.State{
		Message: "following", Phase: "following", Done: s.Records, Unit: "records", Behind: s.Lag, Attributes: s.attributes(),
	}
	records := "records " + grouped(s.Records)
	p.Notes = []string{"lag " + s.Lag.Round(time.Second).String(), "writes " + grouped(s.Writes)}
	if s.Healed > 0 {
		p.Notes = append(p.Notes, "healed "+grouped(s.Healed))
	}
	if s.Parked > 0 {
		p.Notes = append(p.Notes, "parked "+grouped(s.Parked))
	}
	if s.drains {
		p.Phase = "draining"
	}
	slow := s.fanOut != nil && s.at.Sub(s.fanOut.began) >= fanOutMin
	if slow {
		p.Attributes = append(p.Attributes, "fan_out_rule", s.fanOut.Rule, "fan_out_parent", s.fanOut.Parent.String(), "fan_out_children", s.fanOut.Children)
	}
	switch {
	case s.seed != nil && s.seed.waits:
		p.Phase = "applying the stream's backlog before seeding"
	case s.seed != nil:
		p.Phase = fmt.Sprintf("seeding, pass %d of %d", s.seed.pass, cmp.Or(s.seed.passes, 1))
		p.Done, p.Unit, p.Total, p.About, p.Behind = s.seed.items, "items", s.items, true, 0
		p.Notes = append([]string{records}, p.Notes...)
	case slow && s.Lag == 0:
		p.Phase = fmt.Sprintf("fan-out of rule %s from %s", s.fanOut.Rule, s.fanOut.Parent)
		p.Done, p.Unit, p.Behind = int64(s.fanOut.Children), "children", 0
		p.Notes = append([]string{records}, p.Notes...)
	case slow:
		p.Notes = append([]string{fmt.Sprintf("fan-out of rule %s from %s: %s children", s.fanOut.Rule, s.fanOut.Parent, grouped(int64(s.fanOut.Children)))}, p.Notes...)
	}
	return p
}

// watchProgress returns the states of a follower, one after the other. A state in
// which only the lag has changed is no news for the log.
func (f *follower) watchProgress(drains bool) func() progress.State {
	var last snapshot
	var lastChildren int
	return func() progress.State {
		s := followState{snapshot: f.snapshot(), drains: drains, seed: f.seeding.Load(), items: f.items, fanOut: f.fanOut.Load(), at: time.Now()}
		shown := s.shown()
		moved, children := s.snapshot, 0
		if moved.Lag = 0; s.fanOut != nil {
			children = s.fanOut.Children
		}
		shown.Unchanged = moved == last && children == lastChildren
		last, lastChildren = moved, children
		return shown
	}
}
