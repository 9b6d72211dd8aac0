package follow

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dynamill/dynamill"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/progress"
	"github.com/dynamill/dynamill/internal/printable"
)

const fanOutMin = time.Second

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
	return fmt.Sprintf("pass %d of %d, %s items", now.Seed.Pass, now.Seed.Passes, printable.Grouped(now.Seed.Items))
}

type followState struct {
	dynamill.Status
	drains bool
	items  int64 // of the table, as DynamoDB last counted them; 0: not known
	at     time.Time
}

func (f followState) shown() progress.State {
	records, lag, done := f.Stream.Records, f.Stream.Lag, f.Engine
	p := progress.State{
		Message: "following", Phase: "following", Done: records, Unit: "records", Behind: lag,
		Notes: []string{"lag " + lag.Round(time.Second).String(), "writes " + printable.Grouped(done.Writes)},
		Attributes: []any{
			"records", records, "lag_seconds", int64(lag / time.Second), "writes", done.Writes, "healed", done.Heals, "parked", done.Parked,
		},
	}
	if f.Seeding {
		p.Attributes = append(p.Attributes, "seeding", seedText(f.Status))
	}
	if done.Heals > 0 {
		p.Notes = append(p.Notes, "healed "+printable.Grouped(done.Heals))
	}
	if done.Parked > 0 {
		p.Notes = append(p.Notes, "parked "+printable.Grouped(done.Parked))
	}
	if waits := slices.Sorted(maps.Keys(f.Budget.Waits)); len(waits) > 0 {
		p.Notes = append(p.Notes, "the budget holds back "+strings.Join(waits, " and "))
		p.Attributes = append(p.Attributes, "waits_for_budget", waits)
	}
	if f.drains {
		p.Phase = "draining"
	}
	first, slow, fanOut := "records "+printable.Grouped(records), f.FanOut != nil && f.at.Sub(f.FanOutSince) >= fanOutMin, ""
	if slow {
		p.Attributes = append(p.Attributes, "fan_out_rule", f.FanOut.Rule, "fan_out_parent", f.FanOut.Parent.String(), "fan_out_children",
			f.FanOut.Children)
		fanOut = fmt.Sprintf("fan-out of rule %s from %s", f.FanOut.Rule, f.FanOut.Parent)
	}
	switch {
	case f.SeedWaits:
		p.Phase = "applying the stream's backlog before seeding"
		return p
	case f.Seeding:
		p.Phase = fmt.Sprintf("seeding, pass %d of %d", f.Seed.Pass, cmp.Or(f.Seed.Passes, 1))
		p.Done, p.Unit, p.Total, p.About, p.Behind = f.Seed.Items, "items", f.items, true, 0
	case slow && lag == 0:
		p.Phase, p.Done, p.Unit, p.Behind = fanOut, int64(f.FanOut.Children), "children", 0
	case slow:
		first = fmt.Sprintf("%s: %s children", fanOut, printable.Grouped(f.FanOut.Children))
	default:
		return p
	}
	p.Notes = append([]string{first}, p.Notes...)
	return p
}

// news is what a log line about a run is written for. The lag alone is none.
type news struct {
	records, writes, heals, parked int64
	seeding                        string
	children                       int
}

func newsOf(now dynamill.Status) news {
	n := news{now.Stream.Records, now.Engine.Writes, now.Engine.Heals, now.Engine.Parked, seedText(now), 0}
	if now.FanOut != nil {
		n.children = now.FanOut.Children
	}
	return n
}

// watchProgress returns the states of what is followed, one after the other.
func watchProgress(r *dynamill.Running, drains bool) func() progress.State {
	var last news
	return func() progress.State {
		s := followState{Status: r.Status(), drains: drains, items: r.Items, at: time.Now()}
		shown, now := s.shown(), newsOf(s.Status)
		shown.Unchanged = now == last
		last = now
		return shown
	}
}
