package shardread

import "github.com/dynamill/dynamill/internal/stream/streamapi"

// frontier knows how far one shard is done: the last record of which it and
// all before it are done, whatever comes after. It is pure and has no clock.
type frontier struct {
	pending []streamapi.Mark // handed to the processor, not done yet; in the shard's order
	reached streamapi.Mark   // the last record done; zero if none
	saved   streamapi.Mark   // the last record that a checkpoint names
}

func (f *frontier) resumeAt(m streamapi.Mark) { f.reached, f.saved = m, m }

// hand notes records that are about to be given to the processor.
func (f *frontier) hand(marks ...streamapi.Mark) { f.pending = append(f.pending, marks...) }

// forget takes back what was handed and is not done, and returns the sequence
// number of the first of it.
func (f *frontier) forget() string {
	first := f.pending[0].Sequence
	f.pending = nil
	return first
}

// advance notes that of the first given pending records, the first done are done.
func (f *frontier) advance(done, given int) error {
	if done < 0 || done > min(given, len(f.pending)) {
		return streamapi.Permanentf("processor reports %d records done of %d", done, given)
	}
	for _, m := range f.pending[:done] {
		// A record that comes a second time never moves the frontier back.
		if m.Position.Compare(f.reached.Position) > 0 {
			f.reached = m
		}
	}
	f.pending = f.pending[done:]
	return nil
}

// unsaved returns the mark that a checkpoint should name now; false
// if the last one names it already.
func (f *frontier) unsaved() (streamapi.Mark, bool) {
	return f.reached, f.reached.Position.Compare(f.saved.Position) > 0
}

// save notes that a checkpoint names m.
func (f *frontier) save(m streamapi.Mark) { f.saved = m }
