// Package health decides how a table is followed: a worker or a function applies its stream, it is behind, nothing applies
// it, or records are lost. It is pure: the caller hands over what it read as Facts, and Judge returns the state and the
// sentence that people read. It imports no other room.
package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// State is one word for how a table is followed.
type State string

// The states, from the best to the worst.
const (
	Following   State = "following"    // a worker or a function applies the stream
	CatchingUp  State = "catching up"  // the same, and the lag is greater than the bound
	Failing     State = "failing"      // a function's last invocation failed
	Unknown     State = "not known"    // functions could not be listed, and what the workers do does not decide
	NotStarted  State = "not started"  // neither of dynamill's tables is there
	NothingRuns State = "nothing runs" // no worker and no function applies the stream
	RecordsLost State = "records lost" // the stream alone cannot make derived data right
)

// retention is how long a stream holds records (DynamoDB developer guide, "Change data
// capture for DynamoDB Streams").
const retention = 24 * time.Hour

// Health is a state, and what is known about it.
type Health struct {
	State  State
	Reason string    // the part of the line behind the state; one sentence
	Remedy string    // what to do; "" if nothing is to be done
	Since  time.Time // the oldest record that waits while nothing runs; zero if it is not known

	Waiting Waiting
	// Lag is the age of the oldest record that waits; 0 if none does.
	Lag      time.Duration
	LagKnown bool
	lagMost  time.Duration // of shards that could not be read; 0 if nothing bounds it
}

// Waiting are the records that are not applied.
type Waiting struct {
	Records int
	AtLeast bool
	Oldest  time.Time // zero if none waits, or it is not known
	Unknown string    // the reason why they could not be counted; "" if they could
}

// Healthy reports whether no person needs to act.
func (h Health) Healthy() bool { return h.State == Following }

// Decided reports whether the facts were enough.
func (h Health) Decided() bool { return h.State != Unknown }

// Line is the sentence for people.
func (h Health) Line() string {
	line := string(h.State)
	if h.Reason != "" {
		line += ": " + h.Reason
	}
	if h.Remedy != "" {
		line += "; " + h.Remedy
	}
	return line
}

// Judge decides how a table is followed.
func Judge(f Facts) Health {
	f.Functions.List, f.otherFunctions = f.divideFunctions()
	h := Health{Waiting: f.waiting()}
	h.LagKnown = f.LeaseTable.There && h.Waiting.Unknown == ""
	if !h.Waiting.Oldest.IsZero() {
		h.Lag = max(0, f.Now.Sub(h.Waiting.Oldest))
	}
	for _, s := range f.Shards {
		if !s.NoOlder.IsZero() {
			h.lagMost = max(h.lagMost, f.Now.Sub(s.NoOlder))
		}
	}
	for _, decide := range []func(*Health) bool{f.judgeTables, f.judgeLosses, f.judgeFunctionBeside, f.judgeWorkers, f.judgeFunctions} {
		if decide(&h) {
			return h
		}
	}
	f.judgeNothing(&h)
	return h
}

// divideFunctions divides the functions that may be dynamill's from those of other programs, which may read the stream, too. Those of the
// template's name are dynamill's. If there is none, any may be, unless processes follow with leases.
func (f Facts) divideFunctions() (own, others []Function) {
	anyMayBe := !f.LeaseTable.There || f.BesideFunction
	if slices.ContainsFunc(f.Functions.List, func(fn Function) bool { return fn.OfTemplate }) {
		anyMayBe = false
	}
	for _, fn := range f.Functions.List {
		if anyMayBe || fn.OfTemplate {
			own = append(own, fn)
		} else {
			others = append(others, fn)
		}
	}
	return own, others
}

// judgeTables decides where one of dynamill's tables, or both, are missing.
func (f Facts) judgeTables(h *Health) bool {
	switch {
	case f.StateTable.There:
		return false
	case !f.LeaseTable.There || !f.Followed: // `run` makes the lease table before it writes to the state table
		h.State, h.Remedy = NotStarted, f.Remedies.Run
		h.Reason = fmt.Sprintf("nothing was ever started on this table (there is no state table %s)", f.StateTable.Name)
	default:
		h.State, h.Remedy = RecordsLost, f.Remedies.StartOver
		h.Reason = fmt.Sprintf("the state table %s is missing, and the lease table %s is there", f.StateTable.Name, f.LeaseTable.Name)
	}
	return true
}

// judgeLosses decides where the stream cannot make derived data right any more.
func (f Facts) judgeLosses(h *Health) bool {
	lost, skipped := f.shardsThat(func(s Shard) bool { return s.Lost }), f.shardsThat(func(s Shard) bool { return s.Skipped })
	switch {
	case f.Stream.Unknown != "":
		return false
	case !f.Stream.On:
		h.Reason, h.Remedy = "the table has no stream any more, so its changes are recorded nowhere", f.Remedies.EnableStream
	case f.followedByFunction(): // rows of a former worker do not count
		return false
	case f.Stream.Former != "":
		h.Reason, h.Remedy = "the table has another stream than the one that was followed ("+f.Stream.Former+")", f.Remedies.Replay
	case len(lost) > 0:
		h.Reason = "the stream dropped records before they were applied, in " + strings.Join(lost, ", ")
		h.Remedy = f.Remedies.Replay
	case len(skipped) > 0:
		h.Reason = "no worker reads an open shard, because its lease says SHARD_END: " + strings.Join(skipped, ", ")
		h.Remedy = f.Remedies.Skipped
	default:
		return false
	}
	h.State = RecordsLost
	if f.Stream.On { // so the lease rows decided
		h.Reason += f.otherFunctionsText()
	}
	return true
}

func (f Facts) shardsThat(hold func(Shard) bool) (ids []string) {
	for _, s := range f.Shards {
		if hold(s) {
			ids = append(ids, s.ID)
		}
	}
	return ids
}

// followedByFunction reports whether Lambda reads the stream, and no worker does.
func (f Facts) followedByFunction() bool {
	return slices.ContainsFunc(f.Functions.List, Function.enabled) && !slices.ContainsFunc(f.Owners, func(o Owner) bool { return !o.Silent })
}

// judgeWorkers decides where a process renews its leases.
func (f Facts) judgeWorkers(h *Health) bool {
	alive := 0
	var unsure []string
	for _, o := range f.Owners {
		switch {
		case o.Unsure:
			unsure = append(unsure, fmt.Sprintf("whether %s still runs is not confirmed (lease term %s)", o.Name, o.Term))
		case !o.Silent:
			alive++
		}
	}
	if alive == 0 && len(unsure) == 0 {
		return false
	}
	h.State = Following
	if f.LagMax > 0 && max(h.Lag, h.lagMost) > f.LagMax {
		h.State = CatchingUp
	}
	parts := []string{h.Waiting.lagText(h.Lag)}
	if h.lagMost > h.Lag {
		parts = append(parts, fmt.Sprintf("up to %s in shards that could not be read", short(h.lagMost)))
	}
	if h.State == CatchingUp {
		parts = append(parts, f.rateText())
	}
	if alive > 0 {
		parts = append(parts, plural(alive, "process", "processes"))
	}
	h.Reason = strings.Join(append(parts, unsure...), ", ")
	return true
}

// judgeFunctionBeside decides where processes leave some rules to a function, and either no function or no process applies the stream.
func (f Facts) judgeFunctionBeside(h *Health) bool {
	if !f.BesideFunction {
		return false
	}
	if f.Functions.Unknown != "" {
		return f.judgeUnknownFunctionBeside(h)
	}
	noneReportsItemFailures := slices.ContainsFunc(f.Functions.List, Function.enabled) &&
		!slices.ContainsFunc(f.Functions.List, Function.reportsItemFailures)
	if noneReportsItemFailures || slices.ContainsFunc(f.Functions.List, Function.fails) {
		return f.judgeFunctions(h)
	}
	if !slices.ContainsFunc(f.Functions.List, Function.enabled) {
		h.State, h.LagKnown, h.Lag, h.Waiting = NothingRuns, false, 0, Waiting{Unknown: functionWaiting}
		h.Reason = "processes leave some rules to a function, and no function applies the stream" + f.functionsText()
		h.Remedy = "enable the function's event source mapping; the stream keeps its records for 24 hours"
		return true
	}
	if f.followedByFunction() {
		h.State, h.Since = NothingRuns, h.Waiting.Oldest
		h.Reason, h.Remedy = "no process keeps the rules that the function leaves out", f.Remedies.RunBeside
		return true
	}
	return false
}

// judgeUnknownFunctionBeside decides where processes follow, and it is not known whether the function does that applies the other rules.
func (f Facts) judgeUnknownFunctionBeside(h *Health) bool {
	if !f.judgeWorkers(h) {
		return false
	}
	h.State = Unknown
	h.Reason = fmt.Sprintf("whether a function applies the rules that the processes leave to it (%s); of the processes: %s",
		f.Functions.Unknown, h.Reason)
	h.Remedy = allowListing
	return true
}

// allowListing is the remedy where Lambda's mappings could not be listed.
const allowListing = "allow lambda:ListEventSourceMappings, or look at the function's IteratorAge"

// judgeFunctions decides where a Lambda function applies the stream, or may.
func (f Facts) judgeFunctions(h *Health) bool {
	failing := slices.IndexFunc(f.Functions.List, Function.fails)
	enabled := slices.IndexFunc(f.Functions.List, Function.enabled)
	if partial := slices.IndexFunc(f.Functions.List, Function.reportsItemFailures); partial >= 0 {
		enabled = partial
	}
	switch {
	case failing >= 0:
		fn := f.Functions.List[failing]
		h.State, h.Reason = Failing, fmt.Sprintf("the last invocation of function %s failed (%s)", fn.Name, fn.LastResult)
		h.Remedy = "look at the function's log; the stream keeps its records for 24 hours"
		return true
	case enabled >= 0 && !f.Functions.List[enabled].ReportsItemFailures:
		h.State, h.Reason = Failing, fmt.Sprintf("Lambda treats a partly done batch of function %s as done, because its event source mapping "+
			"lacks ReportBatchItemFailures", f.Functions.List[enabled].Name)
		if len(f.Functions.List) > 1 {
			h.Reason += " (if it is dynamill's)" + f.functionsText()
		}
		h.Remedy = "add it to the mapping's FunctionResponseTypes, then run `dynamill replay --restart`, which makes up for what was lost"
		return true
	case enabled >= 0:
		fn := f.Functions.List[enabled]
		h.State, h.LagKnown, h.Lag, h.Waiting = Following, false, 0, Waiting{Unknown: functionWaiting}
		h.Reason = fmt.Sprintf("function %s, its event source mapping is %s, last result: %s; %s",
			fn.Name, fn.State, cmp.Or(fn.LastResult, "none yet"), functionWaiting)
		return true
	case f.Functions.Unknown != "" && !f.LeaseTable.There:
		h.State = Unknown
		h.Reason = fmt.Sprintf("there is no lease table %s, so no `dynamill run` has followed, and whether a Lambda function follows is not "+
			"known (%s)",
			f.LeaseTable.Name, f.Functions.Unknown)
		h.Remedy = allowListing
		return true
	}
	return false
}

// functionWaiting is why the lag of a function is not known: Lambda keeps its checkpoints to itself, and the
// state table notes no time.
const functionWaiting = "Lambda keeps its checkpoints to itself: the metric IteratorAge has the lag"

func (f Facts) judgeNothing(h *Health) {
	h.State, h.Remedy, h.Since = NothingRuns, f.Remedies.Run, h.Waiting.Oldest
	if !f.LeaseTable.There {
		h.Reason = fmt.Sprintf("there is no lease table %s, so how far the stream is applied is not known", f.LeaseTable.Name)
		if f.StateTable.Created.IsZero() || f.Now.Sub(f.StateTable.Created) > retention {
			h.State, h.Remedy = RecordsLost, f.Remedies.Replay
			h.Reason += ", and the state table is older than the 24 hours of the stream"
		}
		h.Reason += f.functionsText()
		return
	}
	parts := []string{}
	switch w := h.Waiting; {
	case w.Unknown != "":
		parts = append(parts, "whether records wait is not known ("+w.Unknown+")")
	case w.Records == 0:
		parts = append(parts, "no record waits")
	default:
		parts = append(parts, fmt.Sprintf("%s, the oldest since %s (%s ago)", w.countText(), w.Oldest.UTC().Format(time.RFC3339), short(h.Lag)))
	}
	if done := f.newestDone(); !done.IsZero() {
		parts = append(parts, "the newest record applied is of "+done.UTC().Format(time.RFC3339))
	}
	for _, o := range f.Owners {
		parts = append(parts, fmt.Sprintf("%s has not renewed its lease for more than its term of %s", o.Name, o.Term))
	}
	h.Reason = strings.Join(parts, ", ") + f.functionsText()
}

func (f Facts) functionsText() string {
	if f.Functions.Unknown != "" {
		return ", Lambda functions were not looked for (" + f.Functions.Unknown + ")"
	}
	var parts []string
	for _, fn := range f.Functions.List {
		parts = append(parts, fmt.Sprintf(", the event source mapping of function %s is %s", fn.Name, fn.State))
	}
	return strings.Join(parts, "") + f.otherFunctionsText()
}

func (f Facts) otherFunctionsText() string {
	var parts []string
	for _, fn := range f.otherFunctions {
		parts = append(parts, fmt.Sprintf(", function %s reads the stream, too", fn.Name))
	}
	if len(f.otherFunctions) > 0 && f.LeaseTable.There {
		parts = append(parts, fmt.Sprintf(" (if it is dynamill's, delete the lease table %s)", f.LeaseTable.Name))
	}
	return strings.Join(parts, "")
}

// newestDone is the creation of the newest record that was applied in any shard.
func (f Facts) newestDone() (newest time.Time) {
	for _, s := range f.Shards {
		if s.Done.After(newest) {
			newest = s.Done
		}
	}
	return newest
}

func (f Facts) waiting() (w Waiting) {
	w.Unknown = f.Stream.Unknown
	for _, s := range f.Shards {
		w.Records += s.Records
		w.AtLeast = w.AtLeast || s.AtLeast
		if !s.Oldest.IsZero() && (w.Oldest.IsZero() || s.Oldest.Before(w.Oldest)) {
			w.Oldest = s.Oldest
		}
		if s.Unknown != "" && s.Records == 0 && w.Unknown == "" {
			w.Unknown = s.ID + ": " + s.Unknown
		}
	}
	if w.Records > 0 { // what was counted is known
		w.AtLeast = w.AtLeast || w.Unknown != ""
		w.Unknown = ""
	}
	return w
}

// rateText says how fast the shard that is furthest behind catches up.
func (f Facts) rateText() string {
	furthest, oldest := Shard{}, time.Time{}
	for _, s := range f.Shards {
		of := s.Oldest
		if of.IsZero() {
			of = s.NoOlder
		}
		if !of.IsZero() && (oldest.IsZero() || of.Before(oldest)) {
			furthest, oldest = s, of
		}
	}
	switch rate := furthest.Rate; {
	case !furthest.NoOlder.IsZero():
		return "the rate of the shard that may be furthest behind is not known"
	case rate == 0:
		return "the rate is not known from one look (--watch tells it)"
	case rate <= 1:
		return fmt.Sprintf("applies %.1f seconds of records in a second and so falls further behind", rate)
	default:
		left := time.Duration(float64(f.Now.Sub(furthest.Oldest)) / (rate - 1))
		return fmt.Sprintf("applies %.1f seconds of records in a second, about %s left", rate, short(left))
	}
}

func (w Waiting) lagText(lag time.Duration) string {
	switch {
	case w.Unknown != "":
		return "the lag is not known (" + w.Unknown + ")"
	case w.Records == 0:
		return "lag 0s, no record waits"
	}
	return fmt.Sprintf("lag %s, %s, the oldest since %s", short(lag), w.countText(), w.Oldest.UTC().Format(time.RFC3339))
}

func (w Waiting) countText() string {
	text := plural(w.Records, "record waits", "records wait")
	if w.AtLeast {
		return "at least " + text
	}
	return text
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func short(d time.Duration) string { return d.Round(time.Second).String() }
