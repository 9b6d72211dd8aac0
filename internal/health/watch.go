package health

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Row is one lease row, as it was read at one look.
type Row struct {
	Shard   string
	Owner   string // "" if no process has it
	Run     string // tells processes of one name apart
	Term    time.Duration
	Counter int64     // raised by every write of the owner
	Newest  time.Time // creation of the newest record that was applied; zero if none was
}

// Watch tells from several looks at the lease rows which processes still renew them. A row holds
// no time, and clocks of two machines need not agree: only the counter's moves between two looks count.
type Watch struct {
	rows   map[string]Row
	owners map[string]*ownerWatch
	places map[string][]place // of each shard, the oldest first
	looks  int
}

type ownerWatch struct {
	owner Owner
	first time.Time // the look that found it
	moved time.Time // the last look that found a row of it raised; zero if none did
}

// place is how far a shard was applied at a look.
type place struct{ at, newest time.Time }

const (
	// termUnknown is the term of an owner that tells none: the default of `dynamill run`.
	termUnknown = 10 * time.Second
	// placesAge is how old a look may be that the rate is taken from.
	placesAge = time.Minute
)

// silence is how long an owner may write nothing. An owner renews its rows three times in a term. After a
// term any process may take its leases, and half a term more allows for a busy machine.
func silence(term time.Duration) time.Duration { return term + term/2 }

// Look takes over the rows that were read at a time.
func (w *Watch) Look(now time.Time, rows []Row) {
	if w.places == nil {
		w.places = map[string][]place{}
	}
	seen, owners := map[string]Row{}, map[string]*ownerWatch{}
	for _, r := range rows {
		seen[r.Shard] = r
		w.notePlace(now, r)
		if r.Owner == "" {
			continue
		}
		key := r.Owner + "\x00" + r.Run
		if owners[key] == nil {
			owners[key] = cmp.Or(w.owners[key], &ownerWatch{owner: Owner{Name: r.Owner}, first: now})
		}
		o := owners[key]
		o.owner.Term = cmp.Or(max(0, r.Term), o.owner.Term, termUnknown)
		was, known := w.rows[r.Shard]
		if w.looks > 0 && (!known || was.Counter != r.Counter || was.Owner != r.Owner || was.Run != r.Run) {
			o.moved = now
		}
	}
	w.rows, w.owners = seen, owners
	w.looks++
}

func (w *Watch) notePlace(now time.Time, r Row) {
	if r.Newest.IsZero() {
		return
	}
	kept := slices.DeleteFunc(w.places[r.Shard], func(p place) bool { return now.Sub(p.at) > placesAge })
	w.places[r.Shard] = append(kept, place{now, r.Newest})
}

// Owners are the processes that the rows name, by name. One that has not been watched for long enough is Unsure.
func (w *Watch) Owners(now time.Time) []Owner {
	owners := make([]Owner, 0, len(w.owners))
	for _, o := range w.owners {
		one := o.owner
		one.Silent = o.silent(now)
		one.Unsure = !one.Silent && o.moved.IsZero()
		owners = append(owners, one)
	}
	slices.SortFunc(owners, func(a, b Owner) int { return strings.Compare(a.Name, b.Name) })
	return owners
}

func (o *ownerWatch) silent(now time.Time) bool {
	last := o.first
	if o.moved.After(last) {
		last = o.moved
	}
	return now.Sub(last) > silence(o.owner.Term)
}

// Next is how long to wait before the next look; 0 if no other look is needed: each owner is known to
// be alive or silent, or one is alive and the others had half a term to show it.
func (w *Watch) Next(now time.Time) time.Duration {
	next, alive, patient := time.Duration(0), false, false
	for _, o := range w.owners {
		switch {
		case o.silent(now):
		case !o.moved.IsZero():
			alive = true
		default:
			patient = patient || now.Sub(o.first) < o.owner.Term/2
			wait := max(waitLeast, min(o.owner.Term/observationsPerTerm, waitMost))
			if next == 0 || wait < next {
				next = wait
			}
		}
	}
	if alive && !patient {
		return 0
	}
	return next
}

// The time between two looks is a part of a term.
const (
	observationsPerTerm = 12
	waitLeast           = 50 * time.Millisecond
	waitMost            = time.Second
)

// Rate is how many seconds of records a shard's owner applied in a second; 0 if that is not known.
func (w *Watch) Rate(shard string) float64 {
	places := w.places[shard]
	if len(places) < 2 {
		return 0
	}
	first, last := places[0], places[len(places)-1]
	took, came := last.at.Sub(first.at), last.newest.Sub(first.newest)
	if took < time.Second || came < time.Second { // records tell their time in whole seconds
		return 0
	}
	return came.Seconds() / took.Seconds()
}
