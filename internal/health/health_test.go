package health

import (
	"strings"
	"testing"
	"time"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// followed is a table that one process follows, with one record that waits.
func followed() Facts {
	return Facts{
		Now: now, LagMax: 5 * time.Minute,
		StateTable: Existence{Name: "app-dynamill", There: true, Created: now.Add(-time.Hour)},
		LeaseTable: Existence{Name: "app-leases", There: true}, Followed: true,
		Stream: Stream{On: true}, Owners: []Owner{{Name: "w1", Term: 10 * time.Second}},
		Shards:   []Shard{{ID: "s1", Records: 1, Oldest: now.Add(-2 * time.Second), Done: now.Add(-3 * time.Second)}},
		Remedies: Remedies{Run: "RUN", RunBeside: "BESIDE", EnableStream: "ENABLE", Replay: "REPLAY", StartOver: "OVER", Skipped: "ROW"},
	}
}

func TestJudge(t *testing.T) {
	silent := func(f *Facts) { f.Owners[0].Silent = true }
	function := func(state, result string) Functions {
		return Functions{List: []Function{{Name: "fn", State: state, LastResult: result, ReportsItemFailures: true, OfTemplate: true}}}
	}
	for name, c := range map[string]struct {
		change func(*Facts)
		want   State
		says   string // the whole line
	}{
		"followed": {func(*Facts) {}, Following, "following: lag 2s, 1 record waits, the oldest since 2026-01-02T03:04:03Z, 1 process"},
		"followed, nothing waits": {func(f *Facts) { f.Shards[0].Records, f.Shards[0].Oldest = 0, time.Time{} }, Following,
			"following: lag 0s, no record waits, 1 process"},
		"a clock behind": {func(f *Facts) { f.Shards[0].Oldest = now.Add(time.Minute) }, Following,
			"following: lag 0s, 1 record waits, the oldest since 2026-01-02T03:05:05Z, 1 process"},
		"at the bound": {func(f *Facts) { f.Shards[0].Oldest = now.Add(-5 * time.Minute) }, Following, ""},
		"beyond the bound": {func(f *Facts) { f.Shards[0].Oldest, f.Shards[0].AtLeast = now.Add(-10*time.Minute), true }, CatchingUp,
			"catching up: lag 10m0s, at least 1 record waits, the oldest since 2026-01-02T02:54:05Z, the rate is not known from one look " +
				"(--watch tells it), 1 process"},
		"beyond the bound, fast": {func(f *Facts) { f.Shards[0].Oldest, f.Shards[0].Rate = now.Add(-10*time.Minute), 6 }, CatchingUp,
			"catching up: lag 10m0s, 1 record waits, the oldest since 2026-01-02T02:54:05Z, applies 6.0 seconds of records in a second, about " +
				"2m0s left, 1 process"},
		"beyond the bound, too slow": {func(f *Facts) { f.Shards[0].Oldest, f.Shards[0].Rate = now.Add(-10*time.Minute), 0.5 }, CatchingUp,
			"catching up: lag 10m0s, 1 record waits, the oldest since 2026-01-02T02:54:05Z, applies 0.5 seconds of records in a second and so " +
				"falls further behind, 1 process"},
		"no bound": {func(f *Facts) { f.LagMax, f.Shards[0].Oldest = 0, now.Add(-time.Hour) }, Following, ""},
		"an owner of a long term": {func(f *Facts) { f.Owners[0].Unsure = true }, Following,
			"following: lag 2s, 1 record waits, the oldest since 2026-01-02T03:04:03Z, whether w1 still runs is not confirmed (lease term 10s)"},
		"the stream may not be read": {func(f *Facts) { f.Shards, f.Stream = nil, Stream{Unknown: "no permission"} }, Following,
			"following: the lag is not known (no permission), 1 process"},
		"a shard could not be read": {func(f *Facts) { f.Shards[0] = Shard{ID: "s1", Unknown: "refused", AtLeast: true} }, Following,
			"following: the lag is not known (s1: refused), 1 process"},
		"a shard that is far behind could not be read": {func(f *Facts) {
			f.Shards[0] = Shard{ID: "s1", Unknown: "refused", AtLeast: true, NoOlder: now.Add(-time.Hour)}
		}, CatchingUp, "catching up: the lag is not known (s1: refused), up to 1h0m0s in shards that could not be read, the rate of the " +
			"shard that may be furthest behind is not known, 1 process"},
		"one of two shards that is far behind could not be read": {func(f *Facts) {
			f.Shards = append(f.Shards, Shard{ID: "s2", Unknown: "refused", AtLeast: true, NoOlder: now.Add(-time.Hour)})
		}, CatchingUp, "catching up: lag 2s, at least 1 record waits, the oldest since 2026-01-02T03:04:03Z, up to 1h0m0s in shards that could " +
			"not be read, the rate of the shard that may be furthest behind is not known, 1 process"},
		"beside a function": {func(f *Facts) { f.BesideFunction, f.Functions = true, function("Enabled", "OK") }, Following,
			"following: lag 2s, 1 record waits, the oldest since 2026-01-02T03:04:03Z, 1 process"},
		"beside a function that is disabled": {func(f *Facts) { f.BesideFunction, f.Functions = true, function("Disabled", "") }, NothingRuns,
			"nothing runs: processes leave some rules to a function, and no function applies the stream, the event source " +
				"mapping of function fn is Disabled; enable the function's event source mapping; the stream keeps its records for 24 hours"},
		"beside a function that fails": {func(f *Facts) { f.BesideFunction, f.Functions = true, function("Enabled", "PROBLEM: x") }, Failing, ""},
		"beside a function, killed": {func(f *Facts) { silent(f); f.BesideFunction, f.Functions = true, function("Enabled", "OK") },
			NothingRuns, "nothing runs: no process keeps the rules that the function leaves out; BESIDE"},
		"beside functions that may not be listed": {func(f *Facts) { f.BesideFunction, f.Functions.Unknown = true, "no permission" },
			Unknown, "not known: whether a function applies the rules that the processes leave to it (no permission); of the processes: lag 2s, " +
				"1 record waits, the oldest since 2026-01-02T03:04:03Z, 1 process; allow lambda:ListEventSourceMappings, or look at the " +
				"function's IteratorAge"},
		"beside functions that may not be listed, killed": {func(f *Facts) {
			silent(f)
			f.BesideFunction, f.Functions.Unknown = true, "no permission"
		}, NothingRuns, ""},
		"killed": {silent, NothingRuns,
			"nothing runs: 1 record waits, the oldest since 2026-01-02T03:04:03Z (2s ago), the newest record applied is of 2026-01-02T03:04:02Z, " +
				"w1 has not renewed its lease for more than its term of 10s; RUN"},
		"stopped": {func(f *Facts) { f.Owners, f.Shards[0].Records, f.Shards[0].Oldest = nil, 0, time.Time{} }, NothingRuns,
			"nothing runs: no record waits, the newest record applied is of 2026-01-02T03:04:02Z; RUN"},
		"stopped, the stream may not be read": {func(f *Facts) { f.Owners, f.Shards, f.Stream = nil, nil, Stream{Unknown: "no permission"} },
			NothingRuns,
			"nothing runs: whether records wait is not known (no permission); RUN"},
		"one of two killed": {func(f *Facts) { silent(f); f.Owners = append(f.Owners, Owner{Name: "w2", Term: time.Second}) }, Following,
			"following: lag 2s, 1 record waits, the oldest since 2026-01-02T03:04:03Z, 1 process"},
		"never started": {func(f *Facts) { f.StateTable.There, f.LeaseTable.There, f.Owners = false, false, nil }, NotStarted,
			"not started: nothing was ever started on this table (there is no state table app-dynamill); RUN"},
		"the state table is deleted": {func(f *Facts) { f.StateTable.There = false }, RecordsLost,
			"records lost: the state table app-dynamill is missing, and the lease table app-leases is there; OVER"},
		"started a moment ago": {func(f *Facts) { f.StateTable.There, f.Followed, f.Owners = false, false, nil }, NotStarted, ""},
		"the lease table is deleted": {func(f *Facts) {
			f.LeaseTable.There, f.Owners, f.StateTable.Created = false, nil, now.Add(-25*time.Hour)
		}, RecordsLost,
			"records lost: there is no lease table app-leases, so how far the stream is applied is not known, and the state table is older than " +
				"the 24 hours of the stream; REPLAY"},
		"the lease table of a new table is not there": {func(f *Facts) { f.LeaseTable.There, f.Owners = false, nil }, NothingRuns,
			"nothing runs: there is no lease table app-leases, so how far the stream is applied is not known; RUN"},
		"the stream is disabled": {func(f *Facts) { f.Stream.On = false }, RecordsLost,
			"records lost: the table has no stream any more, so its changes are recorded nowhere; ENABLE"},
		"the stream is replaced": {func(f *Facts) { f.Stream.Former = "arn:old" }, RecordsLost,
			"records lost: the table has another stream than the one that was followed (arn:old); REPLAY"},
		"records were dropped": {func(f *Facts) { f.Shards[0].Lost = true }, RecordsLost,
			"records lost: the stream dropped records before they were applied, in s1; REPLAY"},
		"records were dropped, and another program's function reads the stream": {func(f *Facts) {
			silent(f)
			f.Shards[0].Lost, f.Functions = true, function("Enabled", "OK")
			f.Functions.List[0].OfTemplate = false
		}, RecordsLost, "records lost: the stream dropped records before they were applied, in s1, function fn reads the stream, too (if it is " +
			"dynamill's, delete the lease table app-leases); REPLAY"},
		"a shard is skipped": {func(f *Facts) { f.Shards[0].Skipped = true }, RecordsLost,
			"records lost: no worker reads an open shard, because its lease says SHARD_END: s1; ROW"},
		"a function follows": {func(f *Facts) {
			f.LeaseTable.There, f.Owners, f.Shards, f.Functions = false, nil, nil, function("Enabled", "OK")
		}, Following, "following: function fn, its event source mapping is Enabled, last result: OK; " + functionWaiting},
		"killed, and another program's function reads the stream": {func(f *Facts) {
			silent(f)
			f.Functions = function("Enabled", "OK")
			f.Functions.List[0].OfTemplate = false
		}, NothingRuns, "nothing runs: 1 record waits, the oldest since 2026-01-02T03:04:03Z (2s ago), the newest record applied is of " +
			"2026-01-02T03:04:02Z, w1 has not renewed its lease for more than its term of 10s, function fn reads the stream, too (if it is " +
			"dynamill's, delete the lease table app-leases); RUN"},
		"the function is disabled, and another program's reads the stream": {func(f *Facts) {
			f.LeaseTable.There, f.Owners, f.Shards, f.Functions = false, nil, nil, function("Disabled", "")
			f.Functions.List = append(f.Functions.List, Function{Name: "search", State: "Enabled"})
		}, NothingRuns, "nothing runs: there is no lease table app-leases, so how far the stream is applied is not known, the event source " +
			"mapping of function fn is Disabled, function search reads the stream, too; RUN"},
		"beside a function whose answers are not read": {func(f *Facts) {
			f.BesideFunction, f.Functions = true, function("Enabled", "OK")
			f.Functions.List[0].ReportsItemFailures = false
		}, Failing, ""},
		"a function of another name follows alone": {func(f *Facts) {
			f.LeaseTable.There, f.Owners, f.Shards, f.Functions = false, nil, nil, function("Enabled", "OK")
			f.Functions.List[0].OfTemplate = false
		}, Following, ""},
		"a function follows, and its answers are not read": {func(f *Facts) {
			f.LeaseTable.There, f.Owners, f.Shards, f.Functions = false, nil, nil, function("Enabled", "OK")
			f.Functions.List[0].ReportsItemFailures = false
		}, Failing, "failing: Lambda treats a partly done batch of function fn as done, because its event source mapping lacks " +
			"ReportBatchItemFailures; add it to the mapping's FunctionResponseTypes, then run `dynamill replay --restart`, " +
			"which makes up for what was lost"},
		"a function follows, rows of a worker are left": {func(f *Facts) {
			silent(f)
			f.Shards[0].Lost, f.Functions = true, function("Enabled", "No records processed")
		}, Following, "following: function fn, its event source mapping is Enabled, last result: No records processed; " + functionWaiting},
		"a function fails": {func(f *Facts) { silent(f); f.Functions = function("Enabled", "PROBLEM: Function call failed") }, Failing,
			"failing: the last invocation of function fn failed (PROBLEM: Function call failed); look at the function's log; the stream keeps " +
				"its records for 24 hours"},
		"a function is disabled": {func(f *Facts) { silent(f); f.Shards, f.Functions = nil, function("Disabled", "") }, NothingRuns,
			"nothing runs: no record waits, w1 has not renewed its lease for more than its term of 10s, the event source mapping of function fn " +
				"is Disabled; RUN"},
		"functions may not be listed, no worker ever ran": {func(f *Facts) {
			f.LeaseTable.There, f.Owners, f.Shards, f.Functions = false, nil, nil, Functions{Unknown: "no permission"}
		}, Unknown,
			"not known: there is no lease table app-leases, so no `dynamill run` has followed, and whether a Lambda function follows is not " +
				"known (no permission); " +
				"allow lambda:ListEventSourceMappings, or look at the function's IteratorAge"},
		"functions may not be listed, a worker ran": {func(f *Facts) {
			f.Owners, f.Shards, f.Functions = nil, nil,
				Functions{Unknown: "no permission"}
		}, NothingRuns,
			"nothing runs: no record waits, Lambda functions were not looked for (no permission); RUN"},
	} {
		t.Run(name, func(t *testing.T) {
			facts := followed()
			c.change(&facts)
			h := Judge(facts)
			if h.State != c.want || c.says != "" && h.Line() != c.says {
				t.Errorf("state %q, line\n%s\nwant %q,\n%s", h.State, h.Line(), c.want, c.says)
			}
			if h.Healthy() != (c.want == Following) || h.Decided() != (c.want != Unknown) || !strings.HasPrefix(h.Line(), string(c.want)+": ") {
				t.Errorf("healthy %v, decided %v: %s", h.Healthy(), h.Decided(), h.Line())
			}
		})
	}
}

func TestWatchTellsLivingOwnersFromSilentOnes(t *testing.T) {
	const term = 10 * time.Second
	row := func(shard, owner string, counter int64) Row {
		return Row{Shard: shard, Owner: owner, Run: "r", Term: term, Counter: counter}
	}
	var w Watch
	w.Look(now, []Row{row("s1", "w1", 7), row("s2", "w2", 3), row("s3", "", 9)})
	if owners := w.Owners(now); len(owners) != 2 || !owners[0].Unsure || !owners[1].Unsure || w.Next(now) != term/12 {
		t.Errorf("after one look: %+v, next in %s", owners, w.Next(now))
	}
	at := now.Add(4 * time.Second)
	w.Look(at, []Row{row("s1", "w1", 8), row("s2", "w2", 3), row("s3", "", 10)})
	owners := w.Owners(at)
	if owners[0].Unsure || owners[0].Silent || !owners[1].Unsure || w.Next(at) == 0 {
		t.Errorf("after a renewal by w1: %+v, next in %s", owners, w.Next(at))
	}
	at = now.Add(6 * time.Second)
	w.Look(at, []Row{row("s1", "w1", 8), row("s2", "w2", 3)})
	if w.Next(at) != 0 {
		t.Error("one is alive, and the other had half a term: the watch should end")
	}
	at = now.Add(15*time.Second + 1)
	w.Look(at, []Row{row("s1", "w1", 11), row("s2", "w2", 3)})
	if owners = w.Owners(at); owners[0].Silent || !owners[1].Silent || owners[1].Unsure {
		t.Errorf("after a term and a half: %+v, want w2 silent", owners)
	}
	at = at.Add(time.Second)
	w.Look(at, []Row{row("s1", "", 12), row("s2", "w3", 4)})
	if owners = w.Owners(at); len(owners) != 1 || owners[0].Name != "w3" || owners[0].Unsure || w.Next(at) != 0 {
		t.Errorf("after w3 took a row: %+v", owners)
	}
	at = at.Add(20 * time.Second)
	if owners = w.Owners(at); !owners[0].Silent {
		t.Errorf("w3 is not heard of for two terms: %+v", owners)
	}
}

func TestWatchRatesAShardByItsAppliedRecords(t *testing.T) {
	var w Watch
	look := func(after, newest time.Duration) {
		w.Look(now.Add(after), []Row{{Shard: "s1", Newest: now.Add(newest)}})
	}
	look(0, -10*time.Minute)
	if rate := w.Rate("s1"); rate != 0 {
		t.Errorf("rate %v from one look", rate)
	}
	look(500*time.Millisecond, -9*time.Minute)
	if rate := w.Rate("s1"); rate != 0 {
		t.Errorf("rate %v from half a second", rate)
	}
	look(2*time.Second, -10*time.Minute+8*time.Second)
	if rate := w.Rate("s1"); rate != 4 {
		t.Errorf("rate %v, want 4", rate)
	}
	look(2*time.Minute, -time.Minute)
	if rate := w.Rate("s1"); rate != 0 {
		t.Errorf("rate %v from looks that are too old", rate)
	}
}
