package status

import (
	"slices"
	"time"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/parked"
	"github.com/dynamill/dynamill/internal/health"
)

// healthStatus says as JSON how the table is followed.
type healthStatus struct {
	State     string `json:"state"`
	Healthy   bool   `json:"healthy"`
	Line      string `json:"line"` // the first line's sentence, for people
	Since     string `json:"since"`
	Lag       *int64 `json:"lagSeconds"`      // null if it is not known
	Oldest    string `json:"oldestUnapplied"` // "" if no record waits, or it is not known
	Waiting   *int   `json:"waiting"`         // null if it is not known
	AtLeast   bool   `json:"waitingAtLeast"`
	Unknown   string `json:"waitingUnknown"`
	Processes int    `json:"processes"`

	Functions        []health.Function    `json:"functions"`
	FunctionsUnknown string               `json:"functionsUnknown"`
	Shards           []shardBacklogStatus `json:"shards"`
}

// shardBacklogStatus is what waits in one shard.
type shardBacklogStatus struct {
	Shard   string `json:"shard"`
	Waiting int    `json:"waiting"`
	AtLeast bool   `json:"waitingAtLeast"`
	Oldest  string `json:"oldestUnapplied"`
	Lag     *int64 `json:"lagSeconds"`
	Lost    bool   `json:"lost"`
	Skipped bool   `json:"skipped"`
	Unknown string `json:"unknown"`
}

func newHealthStatus(h health.Health, f health.Facts) healthStatus {
	s := healthStatus{
		State: string(h.State), Healthy: h.Healthy(), Line: h.Line(), Since: timeText(h.Since), Oldest: timeText(h.Waiting.Oldest),
		AtLeast: h.Waiting.AtLeast, Unknown: h.Waiting.Unknown,
		Functions: append([]health.Function{}, f.Functions.List...), FunctionsUnknown: f.Functions.Unknown, Shards: []shardBacklogStatus{},
	}
	if h.LagKnown {
		s.Lag, s.Waiting = wholeSeconds(h.Lag), &h.Waiting.Records
	}
	for _, o := range f.Owners {
		if !o.Silent && !o.Unsure {
			s.Processes++
		}
	}
	for _, shard := range f.Shards {
		one := shardBacklogStatus{
			Shard: shard.ID, Waiting: shard.Records, AtLeast: shard.AtLeast, Oldest: timeText(shard.Oldest),
			Lost: shard.Lost, Skipped: shard.Skipped, Unknown: shard.Unknown,
		}
		switch {
		case !shard.Oldest.IsZero():
			one.Lag = wholeSeconds(max(0, f.Now.Sub(shard.Oldest)))
		case shard.Unknown == "" && !shard.Lost && !shard.Skipped:
			one.Lag = new(int64)
		}
		s.Shards = append(s.Shards, one)
	}
	return s
}

// correct sets right what the rows say with what was seen of the stream and of the owners: a row
// keeps its owner, and the lag at the owner's last write, when that process is dead.
func (s *LeasesStatus) correct(shards []shardBacklogStatus, owners []health.Owner) {
	for i := range s.Shards {
		row := &s.Shards[i]
		for _, shard := range shards {
			if shard.Shard == row.Shard && shard.Lag != nil {
				row.Lag, row.looked = shard.Lag, true
			}
		}
		row.Silent = slices.ContainsFunc(owners, func(o health.Owner) bool { return o.Silent && o.Name == row.Owner })
	}
}

func wholeSeconds(d time.Duration) *int64 {
	seconds := int64(d / time.Second)
	return &seconds
}

// timeText is a time as JSON has it; "" of the zero time.
func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(parked.TimeForm)
}
