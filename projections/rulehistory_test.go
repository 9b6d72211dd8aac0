package projections

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/oracle"
	"github.com/dynamill/dynamill/rules"
)

// ruleHistory is a table whose rules change under way, while workers of older rules
// sleep, wake up amid what others do, and crash.
type ruleHistory struct {
	*world
	rnd      *rand.Rand
	files    []string
	base     map[change.Key]change.Item // what the application wrote last
	sleepers []*sleeper
	from     int // records before are done
	depth    int // of workers that wake up within others' calls
}

// sleeper is a worker that has read records and knows older rules, or will.
type sleeper struct {
	e       *Engine
	f       *faulty
	records []change.Record
}

func (h *ruleHistory) chance(n int) bool { return h.rnd.IntN(n) == 0 }

// act has the application do something.
func (h *ruleHistory) act() {
	user, group := fmt.Sprintf("u%d", h.rnd.IntN(3)), fmt.Sprintf("g%d", h.rnd.IntN(2))
	item := [...]change.Item{
		{"pk": s("USER#" + user), "sk": s("PROFILE"), "name": s(fmt.Sprint("n", h.rnd.IntN(3))), "nick": s(fmt.Sprint("k", h.rnd.IntN(3))), "avatar": s("a")},
		{"pk": s("USER#" + user), "sk": s("GROUP#" + group), "role": s([]string{"admin", "member", "banned"}[h.rnd.IntN(3)]), "joinedAt": s("2026"), "weight": change.Number("3")},
		{"pk": s("GROUP#" + group), "sk": s("METADATA"), "name": s(fmt.Sprint("g", h.rnd.IntN(3))), "nick": s("G")},
		{"pk": s("POST#p1"), "sk": s(fmt.Sprint("COMMENT#", h.rnd.IntN(3))), "userId": s(user), "score": change.Number(fmt.Sprint(h.rnd.IntN(3)))},
		{"pk": s("POST#p1"), "sk": s("METADATA")},
	}[h.rnd.IntN(5)]
	key := change.Key{Partition: item["pk"].Text(), Sort: item["sk"].Text()}
	if h.chance(4) {
		delete(h.base, key)
		h.delete(key)
		return
	}
	h.base[key] = maps.Clone(item)
	if was := h.get(key); was != nil && h.chance(2) { // saved whole, with what was derived, perhaps some time ago
		for name, v := range was {
			if _, own := item[name]; !own {
				item[name] = v
			}
		}
	}
	h.put(item)
}

// fall asleep: a worker opens with the file in force, and reads what there is.
func (h *ruleHistory) sleep() {
	f := &faulty{Client: h.sim, around: passAll}
	e, err := Open(h.ctx, Config{Client: f, Table: "app", Rules: loadRules(h.t, h.file)})
	if err != nil {
		h.t.Fatal(err)
	}
	all := h.records()
	h.sleepers = append(h.sleepers, &sleeper{e, f, slices.Clone(all[h.from-h.rnd.IntN(h.from+1)/4:])})
}

// wake has a sleeper go on, until it is done or crashes.
func (h *ruleHistory) wake() {
	if len(h.sleepers) == 0 {
		return
	}
	sl := h.sleepers[h.rnd.IntN(len(h.sleepers))]
	left := h.rnd.IntN(40)
	sl.f.around = func(_ string, pass func() error) error {
		if left--; left < 0 {
			return errCrash
		}
		return pass()
	}
	_, err := sl.e.Process(h.ctx, sl.records)
	if err != nil && !errors.Is(err, errCrash) && !errors.Is(err, ErrEpochMoved) {
		h.t.Error(err)
	}
	if h.chance(3) {
		_, err = sl.e.WorkTasks(h.ctx)
	} else if h.chance(3) {
		err = sl.e.Seed(h.ctx, nil)
	}
	if err != nil && !errors.Is(err, errCrash) && !errors.Is(err, ErrEpochMoved) {
		h.t.Error(err)
	}
}

// step works as a worker of the newest rules, which may crash at any call.
func (h *ruleHistory) step(may int) {
	left := h.rnd.IntN(may)
	f := &faulty{Client: h.sim}
	f.around = func(_ string, pass func() error) error {
		if left--; left < 0 {
			return errCrash
		}
		if h.depth == 0 && h.chance(30) {
			h.depth++
			if h.chance(2) {
				h.wake()
			} else {
				h.act()
			}
			h.depth--
		}
		return pass()
	}
	e, err := Open(h.ctx, Config{Client: f, Table: "app", Rules: loadRules(h.t, h.file), ChangeRules: true})
	for err == nil {
		all := h.records()
		done, failure := e.Process(h.ctx, all[h.from:])
		if err = failure; err != nil {
			break
		}
		h.from += done
		var pass string
		var n int
		if h.chance(2) {
			if err = e.Seed(h.ctx, nil); err == nil {
				break
			}
		} else if pass, n, err = e.Aim(h.ctx); err == nil && n > 0 {
			err = errors.Join(h.workOff(e, pass), e.Complete(h.ctx, pass))
		} else if err == nil {
			break
		}
	}
	if err != nil && !errors.Is(err, errCrash) {
		h.t.Error(err)
	}
}

// workOff is work, but for a crash, after which nothing is completed.
func (h *ruleHistory) workOff(e *Engine, pass string) error { return h.work(e, pass) }

func (h *ruleHistory) live() {
	for range 4 {
		for range 10 {
			h.act()
		}
		h.step(300)
		if h.chance(2) {
			h.sleep()
		}
		var names []string
		for name := range ruleChanges {
			names = append(names, name)
		}
		slices.Sort(names)
		next := socialRules
		for range h.rnd.IntN(3) {
			if to := ruleChanges[names[h.rnd.IntN(len(names))]]; true {
				next = h.changed(next, to.rule, to.line)
			}
		}
		h.files = append(h.files, next)
		h.use(next)
		for range 1 + h.rnd.IntN(3) {
			h.step(200)
			if h.chance(2) {
				h.wake()
			}
		}
	}
}

// changed is a file with a rule changed, unless it is gone already.
func (h *ruleHistory) changed(file, rule, line string) string {
	for _, r := range loadRules(h.t, file).Rules {
		if r.Name == rule {
			return withRule(h.t, file, rule, line)
		}
	}
	return file
}

// judge lets the newest rules finish, wakes every sleeper once more, and looks at both tables.
func (h *ruleHistory) judge() {
	e := h.changing(h.file, nil)
	h.from = h.drain(e, h.from)
	h.replay(e)
	h.from = h.drain(e, h.from)
	for range 2 * len(h.sleepers) {
		h.wake()
	}
	h.from = h.drain(h.engine(nil), h.from)
	if pieces, err := e.WorkTasks(h.ctx); err != nil || pieces > 100 {
		h.t.Errorf("%d pieces of tasks, %v", pieces, err)
	}
	h.expectTrue(oracle.FormerRows, oracle.SeededDueMarks)
	var former []*rules.Set
	for _, file := range h.files {
		former = append(former, loadRules(h.t, file))
	}
	for _, d := range oracle.Foreign(h.set, slices.Collect(maps.Values(h.base)), h.items(), former...) {
		h.t.Errorf("not the engine's: %s", d)
	}
	if err := errors.Join(h.work(e, "sweep"), h.work(e, "sweep")); err != nil {
		h.t.Error(err)
	}
	h.expectTrue(oracle.SeededDueMarks)
}

func TestRulesChangeWhileOlderWorkersSleepAndCrash(t *testing.T) {
	histories := 60
	if testing.Short() {
		histories = 20
	}
	for seed := range histories {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			started := time.Now()
			h := &ruleHistory{world: newWorld(t, socialRules), rnd: rand.New(rand.NewPCG(uint64(seed), 14)), files: []string{socialRules}, base: map[change.Key]change.Item{}}
			h.live()
			h.judge()
			if took := time.Since(started); took > 20*time.Second {
				t.Errorf("took %s", took)
			}
		})
	}
}
