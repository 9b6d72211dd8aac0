// Package verify finds out whether what is derived is what it should be, for tables of any size within bounded memory. It
// scans both tables, sorts on disk to bring together what is said of the same thing, and reads every difference again: a
// scan is no snapshot, so its differences are only suspect. A suspect counts as drift if two fresh readings show the same,
// and no record that could be the cause is still to be applied (promise 1 holds once the stream is drained).
//
// It imports change, internal/drift, the sorter, pace, and streamapi, which says which errors of the stream end a verification.
// The Auditor knows the rules and the state table; the Pending knows the stream.
package verify

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"log/slog"
	"maps"
	"time"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/drift"
)

// Auditor knows the rules and the state table; *audits.Audit is one.
type Auditor interface {
	Facts(item change.Item, emit func(drift.Fact))
	RowFacts(row change.Item, emit func(drift.Fact))
	Combine(about string, tag byte, x, y string) (string, bool)
	Judge(emit func(drift.Suspect)) (add func(drift.Fact), end func())
	Concerns(rec *change.Record, emit func(token string))

	// Read judges suspects by what is there now: all but sums and what displays them.
	Read(ctx context.Context, suspects []drift.Suspect) ([]drift.Reading, error)
	ReadSums(ctx context.Context, suspects []drift.Suspect, want map[string]string, before map[string]int64) ([]drift.Reading, error)
	Operations(ctx context.Context, suspects []drift.Suspect) ([]int64, error)
	Contributions(row change.Item, emit func(drift.Amount))
	AddAmounts(sum string, more []string) string // in time for the length of all of them
}

// Mender mends, under the guards of the engine.
type Mender interface {
	// Mend mends what rederiving cannot; false if another writer has changed meanwhile what was read.
	Mend(ctx context.Context, r drift.Reading) (bool, error)
	Rederive(ctx context.Context, keys []change.Key) error
}

// Remover takes away items that no rule asks for any more, where that is no drift. A Mender is one.
type Remover interface {
	Mend(ctx context.Context, r drift.Reading) (bool, error)
}

// Table gives every item to f, which several may call at once. It may leave out what comes or goes meanwhile.
type Table interface {
	Each(ctx context.Context, f func(change.Item) error) error
}

// Pending finds the records that are not applied yet.
type Pending interface {
	// Applied says how far the stream is applied by now.
	Applied(ctx context.Context) (Applied, error)
	// Unapplied gives f every record of the stream that was not known to be applied then, in no particular order.
	Unapplied(ctx context.Context, then Applied, f func(*change.Record) error) error
}

// Applied is how far a stream was applied at a moment.
type Applied struct {
	At     time.Time
	Shards map[string]Checkpoint // one that is missing is not applied at all
	Blind  bool                  // it is never known: waiting is in vain
}

// Checkpoint is how far a shard is applied.
type Checkpoint struct {
	After string // the sequence number of the last record that is; "" for none
	Done  bool   // all of it is
}

// Config says what is verified, and how.
type Config struct {
	Auditor Auditor
	Items   Table
	Rows    Table   // the state table; nil if there is none yet
	Pending Pending // nil: the table has no stream
	Mender  Mender  // nil: nothing is mended
	Remover Remover // takes away what is listed and is no drift; nil: it stays
	Logger  *slog.Logger

	MemoryBytes int           // for sorting; default 128 MB
	TempDir     string        // for what does not fit into memory; "" is the system's
	Settle      time.Duration // between the two readings that prove drift
	Wait        time.Duration // for suspects that move or wait, in all
	Sample      float64       // share of things to judge, by a hash of what they are; 0 or 1: all
	SampleSeed  uint64        // the same seed draws the same sample
	Ahead       bool          // report what the first reading shows, without proof: what rules would change

	Found    func(Result) error // called for everything that is found, one at a time
	Progress func(Progress)     // may be nil; called from one goroutine at a time
}

// Status is what became of a finding.
type Status string

// What becomes of findings.
const (
	Drifted    Status = "drift"
	Repaired   Status = "repaired"
	Unrepaired Status = "not repaired"
	Listed     Status = "listed"  // no drift
	Deleted    Status = "deleted" // what was listed, as asked for
)

// Result is one finding.
type Result struct {
	drift.Finding
	Status Status `json:"status"`
	Why    string `json:"why,omitempty"` // not repaired, because
}

// Progress is how far it has come.
type Progress struct {
	Phase          string // "scanning", "sorting", "looking again", "repairing", PhaseWaiting
	Items, Rows    int64  // scanned
	Suspects, Open int64  // found, and not decided yet
	Found          int64
	Reasons        map[string]int64 // waiting: how many suspects of those at hand wait, by the reason
	WaitLeft       time.Duration    // waiting: of Config.Wait
}

// PhaseWaiting is the phase in which suspects are waited for.
const PhaseWaiting = "waiting"

// Undecided is a suspect that could not be judged, as it was last seen.
type Undecided struct {
	drift.Finding
	Why string
}

// undecidedExamplesMax is how many undecided suspects of each reason a summary names.
const undecidedExamplesMax = 5

// Summary is the outcome.
type Summary struct {
	Items      int64                `json:"items"` // looked at
	Rows       int64                `json:"stateRows"`
	Suspects   int64                `json:"suspects"` // what the scan found to be different
	Cleared    int64                `json:"cleared"`  // of those, right by now
	Parked     int64                `json:"parked"`   // of those, parked: not judged
	All        int64                `json:"differences"`
	Found      map[drift.Kind]int64 `json:"byKind"`
	Repaired   int64                `json:"repaired"`
	Unrepaired int64                `json:"notRepaired"`
	Listed     int64                `json:"orphans"`            // no drift: items that a rule would have deleted with others that are gone
	Deleted    int64                `json:"orphansDeleted"`     // of those
	Undecided  map[string]int64     `json:"undecided"`          // suspects that could not be judged, by the reason
	Examples   []Undecided          `json:"-"`                  // some of them of each reason
	WriteUnits float64              `json:"writeUnitsToRepair"` // about what mending all of it costs
	TempBytes  int64                `json:"temporaryBytes"`     // written to temporary files
	Blind      bool                 `json:"-"`                  // how far the stream is applied is never known
}

// Drift is how many findings there are that were not repaired.
func (s *Summary) Drift() int64 { return s.All - s.Repaired }

const memoryDefault = 128 << 20

// run is one verification under way.
type run struct {
	Config
	summary  Summary
	progress Progress
	drifted  *spool[wrongEntry] // ledger entries that are wrong, and so make sums of the ledger wrong
	sums     map[string]expect  // by aggregate
	scans    int                // of the ledger, for the suspects at hand
	waitEnds time.Time          // zero until the first suspects are at hand
}

// Run verifies once.
func Run(ctx context.Context, cfg Config) (_ *Summary, err error) {
	cfg.MemoryBytes = cmp.Or(max(cfg.MemoryBytes, 0), memoryDefault)
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	v := &run{Config: cfg, sums: map[string]expect{}}
	v.summary.Found, v.summary.Undecided = map[drift.Kind]int64{}, map[string]int64{}
	if v.drifted, err = newSpool[wrongEntry](v.TempDir, "dynamill-entries-"); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, v.drifted.close()) }()
	suspects, err := v.gather(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, suspects.close()) }()
	v.summary.Suspects, v.progress.Suspects, v.progress.Open = suspects.count, suspects.count, suspects.count
	for {
		chunk, err := suspects.next(chunkMax)
		if err != nil {
			return nil, err
		}
		if len(chunk) == 0 {
			return &v.summary, nil
		}
		if err := v.judge(ctx, chunk); err != nil {
			return nil, err
		}
	}
}

// judge decides some suspects: sums last, because wrong ledger entries must be known first.
func (v *run) judge(ctx context.Context, chunk []drift.Suspect) error {
	last := chunk[len(chunk)-1].GroupID() // more of what displays it may be in the next chunk
	defer maps.DeleteFunc(v.sums, func(id string, _ expect) bool { return id != last })
	sums, single := partition(chunk, func(s drift.Suspect) bool { return s.Kind == drift.Sum || s.Kind == drift.Display })
	if v.Ahead {
		return v.foresee(ctx, single, sums)
	}
	forSingles, forSums := v.waits(len(single) > 0, len(sums) > 0)
	proven, err := v.rounds(ctx, single, forSingles, v.Auditor.Read)
	if err != nil {
		return err
	}
	proven, optional := partition(proven, func(r drift.Reading) bool { return !r.Optional })
	if err := v.judgeOptional(ctx, optional); err != nil {
		return err
	}
	touched, err := v.noteEntries(proven)
	if err != nil {
		return err
	}
	if v.Mender == nil {
		if err := v.report(Drifted, "", proven...); err != nil {
			return err
		}
	}
	fix := &repair{run: v, failed: map[string]string{}, unreported: map[string]bool{}}
	if err := fix.mendSingles(ctx, proven); err != nil {
		return err
	}
	sums = append(sums, fix.alsoTouched(touched, sums)...)
	for _, s := range sums {
		if s.Kind == drift.Sum { // its accumulators are suspect
			v.sums[s.GroupID()] = expect{ledger: true}
		}
	}
	v.scans = 0
	proven, err = v.rounds(ctx, sums, forSums, v.readSums)
	if err != nil {
		return err
	}
	if v.Mender == nil {
		return v.report(Drifted, "", proven...)
	}
	if err := fix.mendSumsAndDisplays(ctx, proven); err != nil {
		return err
	}
	return fix.finish(ctx)
}

// partition divides a list into the elements that match and the others.
func partition[T any](all []T, matches func(T) bool) (matching, others []T) {
	for _, one := range all {
		if matches(one) {
			matching = append(matching, one)
		} else {
			others = append(others, one)
		}
	}
	return matching, others
}

// foresee reports what a single reading shows.
func (v *run) foresee(ctx context.Context, single, sums []drift.Suspect) error {
	readings, err := v.Auditor.Read(ctx, single)
	if err != nil {
		return err
	}
	want := map[string]string{}
	for _, s := range sums {
		if s.Want != "" || want[s.GroupID()] == "" {
			want[s.GroupID()] = cmp.Or(s.Want, "0")
		}
	}
	more, err := v.Auditor.ReadSums(ctx, sums, want, nil)
	if err != nil {
		return err
	}
	for i, r := range append(readings, more...) {
		v.progress.Open--
		switch {
		case len(r.Findings) == 0:
			v.summary.Cleared++
		case r.Final:
			v.summary.Parked++
		case r.Optional:
			if err := v.reportOptional(Listed, "", r); err != nil {
				return err
			}
		default:
			if err := v.report(Drifted, "", r); err != nil {
				return err
			}
		}
		if i%1000 == 0 {
			v.showProgress("looking again")
		}
	}
	return nil
}

// report reports what was found.
func (v *run) report(status Status, why string, readings ...drift.Reading) error {
	for _, r := range readings {
		if status == Drifted && r.Excused {
			v.summary.Parked++
		}
		for _, f := range r.Findings {
			v.summary.Found[f.Kind]++
			v.summary.All++
			v.progress.Found++
			v.summary.WriteUnits += f.WriteUnits
			switch status {
			case Repaired:
				v.summary.Repaired++
			case Unrepaired:
				v.summary.Unrepaired++
			}
			if err := v.Found(Result{Finding: f, Status: status, Why: why}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (v *run) showProgress(phase string) {
	if v.progress.Phase = phase; v.Progress != nil {
		v.Progress(v.progress)
	}
}

// sampled reports whether something belongs to the sample.
func (v *run) sampled(about string) bool {
	if v.Sample <= 0 || v.Sample >= 1 {
		return true
	}
	h := fnv.New64a()
	h.Write(binary.LittleEndian.AppendUint64(nil, v.SampleSeed))
	h.Write([]byte(about))
	const mixed = 0x9e3779b97f4a7c15 // FNV alone leaves the high bits of short texts alike
	x := h.Sum64()
	x = (x ^ x>>32) * mixed
	return float64(x>>11)/(1<<53) < v.Sample
}
