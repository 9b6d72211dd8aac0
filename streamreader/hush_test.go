package streamreader

import "testing"

// looker is a worker that drains, beside another which has a shard that was always empty.
type looker struct {
	f    *follower
	rows []Lease // the other worker's shard, and one that a third has
}

func newLooker(t *testing.T) *looker {
	r := newTestReader(t, newFakeStream(), NewMemoryCheckpoints(), &collector{}, func(cfg *Config) { cfg.WorkerID, cfg.Alone = "me", false })
	arn := r.cfg.StreamARN
	l := &looker{newFollower(r, true), []Lease{
		{Shard: "quiet", Stream: arn, Owner: "other", Counter: 1, Checkpoint: "5", EmptyPolls: 40},
		{Shard: "third", Stream: arn, Owner: "third", Counter: 1, Checkpoint: "5", EmptyPolls: 40},
	}}
	l.f.running["own"] = &shardReader{cfg: &r.cfg, progress: progress{emptyPolls: 40}}
	l.look()
	return l
}

func (l *looker) look() { l.f.see(l.rows, l.f.r.done()) }

// time has everybody poll so often without a record, and the others write their rows.
func (l *looker) time(polls int) {
	l.f.running["own"].progress.emptyPolls += polls
	for i := range l.rows {
		l.rows[i].Counter++
		l.rows[i].EmptyPolls += int64(polls)
	}
	l.look()
}

// rest has so much time go by that nothing can be under way.
func (l *looker) rest() {
	l.time(1)
	l.time(l.f.r.cfg.DrainPolls)
}

func TestWhoDrainsCountsPollsFromWhenAnybodyAppliedSomething(t *testing.T) {
	for name, happens := range map[string]func(*looker){
		"it has begun":                 nil,
		"it applied something":         func(l *looker) { l.f.r.countDone(1); l.look() },
		"somebody saved a checkpoint":  func(l *looker) { l.rows[1].Checkpoint = "6"; l.look() },
		"somebody gave a shard up":     func(l *looker) { l.rows[1].Checkpoint, l.rows[1].Owner = "6", ""; l.look(); l.rows[1].Owner = "third" },
		"a claim showed that first":    func(l *looker) { l.rows[1].Checkpoint = "6"; l.f.note(l.rows[1]); l.look() },
		"somebody was at work":         func(l *looker) { l.rows[1].EmptyPolls = 0; l.look() },
		"it applied more than it knew": func(l *looker) { l.f.r.countDone(1); l.f.see(l.rows, 0); l.look() },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLooker(t)
			if happens != nil {
				if l.rest(); !l.f.allIdle() {
					t.Fatal("not all shards are idle")
				}
				happens(l)
			}
			if l.f.allIdle() {
				t.Error("all shards are idle at once")
			}
			if l.time(l.f.r.cfg.DrainPolls); happens != nil && name != "somebody was at work" && l.f.allIdle() {
				t.Error("polls are counted that were made before the rows were read")
			}
			if l.rest(); !l.f.allIdle() {
				t.Error("not all shards are idle in the end")
			}
		})
	}
}

func TestWhoDrainsKnowsRowsFromBeforeItAppliedSomething(t *testing.T) {
	l := newLooker(t)
	if l.rest(); !l.f.allIdle() {
		t.Fatal("not all shards are idle")
	}
	l.f.r.countDone(1)
	if l.f.allIdle() {
		t.Error("the rows that were read before are believed")
	}
}

func TestWhoDrainsCountsItsOwnPollsToo(t *testing.T) {
	l := newLooker(t)
	l.rest()
	own := l.f.running["own"]
	l.rows[1].Checkpoint = "6"
	l.look()
	polls := own.progress.emptyPolls
	if l.rest(); !l.f.allIdle() {
		t.Fatal("not all shards are idle")
	}
	if own.progress.emptyPolls = polls + l.f.r.cfg.DrainPolls - 1; l.f.allIdle() {
		t.Error("polls that it made before are counted")
	}
	if own.progress.emptyPolls = l.f.r.cfg.DrainPolls; !l.f.allIdle() { // it was not empty in between
		t.Error("polls since it was last busy are not counted")
	}
}
