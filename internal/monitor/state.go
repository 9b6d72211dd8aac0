// Package monitor says how a running dynamill is, to people and to machines: a named state with its remedy, metrics in
// Prometheus' format, and whether it is alive and ready. It reads neither engine nor reader: their owner hands over a Sample
// whenever one is asked for. It imports projections, streamreader and Prometheus' client library, which is why the Lambda
// function must not import it.
package monitor

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"
)

// State is the name of how things are.
type State string

// The states. The first group is work, the second waits for something that
// passes or that a person brings about, the third has ended.
const (
	Starting   State = "starting"    // table, rules and shards are being looked at; nothing is read yet
	Seeding    State = "seeding"     // rules that are new to the table are derived from what it holds
	CatchingUp State = "catching up" // the stream holds much that is not applied yet
	Following  State = "following"   // changes are applied as they come

	Throttled          State = "throttled"           // DynamoDB refuses writes for lack of capacity, or work waits for --budget
	CredentialsExpired State = "credentials expired" // AWS refuses every call until they are renewed
	ShardSkipped       State = "shard skipped"       // the lease table says of an open shard that it is done

	StreamDisabled State = "stream disabled" // the table has no stream any more
	StreamReplaced State = "stream replaced" // the table has another stream than the one that was followed
	TableDeleted   State = "table deleted"   // the table, or the state table, is not there any more
	RecordsLost    State = "records lost"    // the stream dropped records that were not applied
	Stopped        State = "stopped"         // by a signal, or by --drain-timeout
)

// States are all of them, in the order in which metrics and documents list them.
func States() []State {
	return []State{
		Starting, Seeding, CatchingUp, Following, Throttled, CredentialsExpired, ShardSkipped,
		StreamDisabled, StreamReplaced, TableDeleted, RecordsLost, Stopped,
	}
}

// Ended reports whether nothing is read any more, and will not be before a new start.
func (s State) Ended() bool {
	return slices.Contains([]State{StreamDisabled, StreamReplaced, TableDeleted, RecordsLost, Stopped}, s)
}

// Urgent reports whether a part of the changes is not applied before a person acts.
func (s State) Urgent() bool {
	return s == CredentialsExpired || s == ShardSkipped || s.Ended() && s != Stopped
}

// remedies say what to do about a state in general. A caller that knows the table's
// name says it better, with Holder.End.
var remedies = map[State]string{
	Throttled:          "raise the capacity of the table and of the state table; nothing is lost meanwhile",
	CredentialsExpired: "renew the AWS credentials (for example with `aws sso login`); the work resumes by itself",
	ShardSkipped: "delete the row of the shard that the log names from the lease table, within 24 hours of the first record that was " +
		"skipped: " +
		"the shard is then read from its beginning, and nothing is applied twice; later run `dynamill replay --restart`",
	StreamDisabled: "enable the stream again with NEW_AND_OLD_IMAGES, delete the lease table, start again, and run `dynamill replay " +
		"--restart`: what changed meanwhile was recorded nowhere",
	StreamReplaced: "delete the lease table, start again, and run `dynamill replay --restart`: no process has seen what changed " +
		"between the two streams",
	TableDeleted: "check the table's name, its region and its state table, and start again",
	RecordsLost:  "delete the lease table, start again, and run `dynamill replay --restart`, which derives everything from the table's items",
}

// Remedy is what to do about a state; "" where nothing is to be done.
func (s State) Remedy() string { return remedies[s] }

// Facts are what a state follows from, as far as the work itself shows them.
type Facts struct {
	Started   bool // shards were listed
	Skipped   bool // shards are open, and their leases say that they are done
	Seeding   bool
	CaughtUp  bool
	Throttled bool     // by DynamoDB
	Waits     []string // background work that waits for the budget
}

// state of work that goes on.
func (f Facts) state() State {
	switch {
	case !f.Started:
		return Starting
	case f.Skipped:
		return ShardSkipped
	case f.Throttled, len(f.Waits) > 0:
		return Throttled
	case f.Seeding:
		return Seeding
	case !f.CaughtUp:
		return CatchingUp
	}
	return Following
}

// remedy is what to do about the state of work that goes on.
func (f Facts) remedy() string {
	if state := f.state(); state != Throttled || f.Throttled {
		return state.Remedy()
	}
	return "--budget holds back " + strings.Join(f.Waits, " and ") + ": raise it if that takes too long; records are applied meanwhile"
}

// Status is a state, since when, and what to do about it.
type Status struct {
	State  State
	Remedy string    // a sentence; "" where nothing is to be done
	Since  time.Time // of the state
}

// Holder keeps what is known of the state. Its zero value is starting. It is
// safe for concurrent use.
type Holder struct {
	mu      sync.Mutex
	ended   Status // State "" while work goes on
	expired bool
	last    Status
}

// End notes that the work has ended in a state, and what to do about it: ""
// for what is said in general. The first end counts: what follows from it is no news.
func (h *Holder) End(state State, remedy string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended.State == "" {
		h.ended = Status{State: state, Remedy: cmp.Or(remedy, state.Remedy())}
	}
}

// SetExpired notes whether AWS refuses the credentials as expired.
func (h *Holder) SetExpired(expired bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.expired = expired
}

// Note is Status, and remembers the state. changed reports whether the last
// call found another; the first is compared with starting.
func (h *Holder) Note(facts Facts, now time.Time) (status Status, changed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	status = h.status(facts, now)
	changed = status.State != cmp.Or(h.last.State, Starting)
	h.last = status
	return status, changed
}

// Status is the state that follows from the facts at a moment.
func (h *Holder) Status(facts Facts, now time.Time) Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.status(facts, now)
}

func (h *Holder) status(facts Facts, now time.Time) (status Status) {
	switch {
	case h.ended.State != "":
		status = h.ended
	case h.expired:
		status = Status{State: CredentialsExpired, Remedy: CredentialsExpired.Remedy()}
	default:
		status = Status{State: facts.state(), Remedy: facts.remedy()}
	}
	if status.Since = h.last.Since; status.State != h.last.State {
		status.Since = now
	}
	return status
}
