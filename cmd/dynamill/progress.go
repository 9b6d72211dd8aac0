package main

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/dynamill/dynamill"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/progress"
	"github.com/dynamill/dynamill/internal/printable"
)

// grouped writes a number with its thousands parted: 12,345.
func grouped(n int64) string { return printable.Grouped(n) }

// fanOutMin is how long a fan-out works before it is shown.
const fanOutMin = time.Second

// snapshot is how far `run` has come since it started.
type snapshot struct {
	Records int64         // of the stream, done
	Lag     time.Duration // between the last record's change and now; 0 when nothing waits
	Writes  int64         // requests that wrote
	Healed  int64         // attributes and mirrors that another program had overwritten
	Parked  int64
	Seeding string // what is being seeded and how far; "" when nothing is
}

func snapshotOf(now dynamill.Status) snapshot {
	return snapshot{
		Records: now.Stream.Records, Lag: now.Stream.Lag, Writes: now.Engine.Writes, Healed: now.Engine.Heals, Parked: now.Engine.Parked, Seeding: seedText(now),
	}
}

// seedText is how far seeding is, for logs; "" if nothing is seeded.
func seedText(now dynamill.Status) string {
	switch {
	case !now.Seeding:
		return ""
	case now.SeedWaits:
		return "new rules once the stream's backlog is applied"
	case now.Seed.Passes == 0:
		return strings.Join(now.Seed.Rules, ", ")
	}
	return fmt.Sprintf("pass %d of %d, %s items", now.Seed.Pass, now.Seed.Passes, grouped(now.Seed.Items))
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
	dynamill.Status
	drains bool
	items  int64 // of the table, as DynamoDB last counted them; 0: not known
	at     time.Time
}

// shown is the state for the terminal and the log.
func (f followState) shown() progress.State {
	s := snapshotOf(f.Status)
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
	if f.drains {
		p.Phase = "draining"
	}
	slow := f.FanOut != nil && f.at.Sub(f.FanOutSince) >= fanOutMin
	if slow {
		p.Attributes = append(p.Attributes, "fan_out_rule", f.FanOut.Rule, "fan_out_parent", f.FanOut.Parent.String(), "fan_out_children", f.FanOut.Children)
	}
	switch {
	case f.SeedWaits:
		p.Phase = "applying the stream's backlog before seeding"
	case f.Seeding:
		p.Phase = fmt.Sprintf("seeding, pass %d of %d", f.Seed.Pass, cmp.Or(f.Seed.Passes, 1))
		p.Done, p.Unit, p.Total, p.About, p.Behind = f.Seed.Items, "items", f.items, true, 0
		p.Notes = append([]string{records}, p.Notes...)
	case slow && s.Lag == 0:
		p.Phase = fmt.Sprintf("fan-out of rule %s from %s", f.FanOut.Rule, f.FanOut.Parent)
		p.Done, p.Unit, p.Behind = int64(f.FanOut.Children), "children", 0
		p.Notes = append([]string{records}, p.Notes...)
	case slow:
		p.Notes = append([]string{fmt.Sprintf("fan-out of rule %s from %s: %s children", f.FanOut.Rule, f.FanOut.Parent, grouped(int64(f.FanOut.Children)))}, p.Notes...)
	}
	return p
}

// watchProgress returns the states of what is followed, one after the other. A state in
// which only the lag has changed is no news for the log.
func watchProgress(r *dynamill.Running, drains bool) func() progress.State {
	var last snapshot
	var lastChildren int
	return func() progress.State {
		s := followState{Status: r.Status(), drains: drains, items: r.Items, at: time.Now()}
		shown := s.shown()
		moved, children := snapshotOf(s.Status), 0
		if moved.Lag = 0; s.FanOut != nil {
			children = s.FanOut.Children
		}
		shown.Unchanged = moved == last && children == lastChildren
		last, lastChildren = moved, children
		return shown
	}
}
