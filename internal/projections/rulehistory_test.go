package projections

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/registry"
	"github.com/dynamill/dynamill/internal/proof/oracle"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/internal/sim/worldsize"
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
	tale     tale
}

// tale is what a history is about.
type tale struct {
	file    string
	changes [][2]string // a rule, and its line instead; "" removes it
	item    func(*rand.Rand) change.Item
}

// drawn is one of some texts.
func drawn(rnd *rand.Rand, from ...string) change.Value { return s(from[rnd.IntN(len(from))]) }

// sleeper is a worker that has read records and knows older rules, or will.
type sleeper struct {
	e       *Engine
	f       *faulty
	records []change.Record
}

func (h *ruleHistory) chance(n int) bool { return h.rnd.IntN(n) == 0 }

// act has the application do something.
func (h *ruleHistory) act() {
	item := h.tale.item(h.rnd)
	key := change.Key{Partition: item.Lookup(h.set.Table.PartitionKey).Text(), Sort: item.Lookup(h.set.Table.SortKey).Text()}
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
	if errors.As(err, new(*RulesChangedError)) {
		return // the new ones are not registered yet
	}
	if err != nil {
		h.t.Fatal(err)
	}
	all := h.records()
	h.sleepers = append(h.sleepers, &sleeper{e, f, slices.Clone(all[h.from-h.rnd.IntN(h.from+1)/4:])})
}

// oneByOne has a worker's calls, which it makes several at a time, decided about one after the other.
func oneByOne(decide func() error) func(string, func() error) error {
	var mu sync.Mutex
	return func(_ string, pass func() error) error {
		mu.Lock()
		err := decide()
		mu.Unlock()
		if err != nil {
			return err
		}
		return pass()
	}
}

// wake has a sleeper go on, until it is done or crashes.
func (h *ruleHistory) wake() {
	if len(h.sleepers) == 0 {
		return
	}
	sl := h.sleepers[h.rnd.IntN(len(h.sleepers))]
	left := h.rnd.IntN(40)
	sl.f.around = oneByOne(func() error {
		if left--; left < 0 {
			return errCrash
		}
		return nil
	})
	_, err := sl.e.Process(h.ctx, sl.records)
	if err != nil && !errors.Is(err, errCrash) && !errors.Is(err, registry.ErrEpochMoved) {
		h.t.Error(err)
	}
	if h.chance(3) {
		_, err = sl.e.WorkTasks(h.ctx)
	} else if h.chance(3) {
		err = sl.e.Seed(h.ctx, nil)
	}
	if err != nil && !errors.Is(err, errCrash) && !errors.Is(err, registry.ErrEpochMoved) {
		h.t.Error(err)
	}
}

// step works as a worker of the newest rules, which may crash at any call.
func (h *ruleHistory) step(may int) {
	left := h.rnd.IntN(may)
	f := &faulty{Client: h.sim}
	f.around = oneByOne(func() error {
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
		return nil
	})
	e, err := OpenChanging(h.ctx, Config{Client: f, Table: "app", Rules: loadRules(h.t, h.file)}, AnyEpoch)
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
		} else if pass, n, err = e.NextPass(h.ctx); err == nil && n > 0 {
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

// live has the table live through four rule files.
func (h *ruleHistory) live(nextFile func() string) {
	for range 4 {
		for range 10 {
			h.act()
		}
		h.step(300)
		if h.chance(2) {
			h.sleep()
		}
		next := nextFile()
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

// someChanged is the tale's file with up to three rules changed.
func (h *ruleHistory) someChanged() string {
	next := h.tale.file
	for range h.rnd.IntN(4) {
		to := h.tale.changes[h.rnd.IntN(len(h.tale.changes))]
		next = h.changed(next, to[0], to[1])
	}
	return next
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
	if did, err := e.WorkTasks(h.ctx); err != nil || did.Pieces > 100 {
		h.t.Errorf("%d pieces of tasks, %v", did.Pieces, err)
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

// socialTale has all kinds of rules, and mirror items that feed others.
func socialTale() tale {
	var changes [][2]string
	for _, to := range ruleChanges {
		changes = append(changes, [2]string{to.rule, to.line})
	}
	slices.SortFunc(changes, func(a, b [2]string) int { return strings.Compare(a[0]+a[1], b[0]+b[1]) })
	return tale{socialRules, changes, func(rnd *rand.Rand) change.Item {
		user, group := drawn(rnd, "u0", "u1", "u2").Text(), drawn(rnd, "g0", "g1").Text()
		return [...]change.Item{
			{"pk": s("USER#" + user), "sk": s("PROFILE"), "name": drawn(rnd, "a", "b", "c"), "nick": drawn(rnd, "d", "e"), "avatar": s("x")},
			{"pk": s("USER#" + user), "sk": s("GROUP#" + group), "role": drawn(rnd, "admin", "member", "banned"), "joinedAt": s("2026"),
				"weight": change.Number("3")},
			{"pk": s("GROUP#" + group), "sk": s("METADATA"), "name": drawn(rnd, "f", "g"), "nick": s("G")},
			{"pk": s("POST#p1"), "sk": drawn(rnd, "COMMENT#1", "COMMENT#2"), "userId": s(user),
				"score": change.Number(drawn(rnd, "1", "2", "3").Text())},
			{"pk": s("POST#p1"), "sk": s("METADATA")},
		}[rnd.IntN(5)]
	}}
}

// oddTale has no sort key, entities of one key shape, contested mirror items, locators, and items that no rule can read.
func oddTale() tale {
	changes := [][2]string{
		{"owner-name", ""}, {"owner-name", `owner-name: { copy: nick as ownerName, from: Owner, to: Doc, by: ownerId }`},
		{"author-name", `author-name: { copy: name as ownerName, from: Owner, to: Note, by: ownerId }`},
		{"docs", ""}, {"docs", `docs: { count: Note, as: Owner.docs, by: ownerId }`},
		{"size", `size: { sum: size * 3, of: Doc, as: Owner.size, by: ownerId }`},
		{"by-code", ""}, {"by-code", `by-code: { mirror: Doc, as: ByCode, by: code, attributes: [title, size] }`},
		{"by-code", `by-code: { mirror: Note, as: ByCode, by: code, attributes: [title, ownerId] }`},
		{"code-owner", ""}, {"codes", `codes: { count: ByCode, as: Owner.titles, by: ownerId, where: has(title) }`},
		{"in-folder", ""}, {"notes-in", ""}, {"in-folder", `in-folder: { count: Doc, as: Folder.docs, by: { slug: folder }, where: has(size) }`},
		{"in-folder", `in-folder: { sum: size, of: Doc, as: Folder.docs, by: { slug: folder } }`}, {"folder-docs", ""},
		{"folder-docs", `folder-docs: { copy: notes as folderDocs, from: Folder, to: Note, by: { folderId: folderId } }`},
	}
	return tale{oddRules, changes, func(rnd *rand.Rand) change.Item {
		doc := change.Item{"pk": drawn(rnd, "DOC#1", "DOC#2", "DOC#3"), "kind": drawn(rnd, "doc", "doc", "note", "other"),
			"ownerId": drawn(rnd, "o1", "o2", "a#b"),
			"code":    drawn(rnd, "c1", "c2"), "title": drawn(rnd, "t1", "t2"), "folder": drawn(rnd, "s1", "s2"), "folderId": drawn(rnd, "f1", "f2"),
			"size": change.Number(drawn(rnd, "1", "2").Text())}
		return [...]change.Item{
			doc, doc,
			{"pk": drawn(rnd, "OWNER#o1", "OWNER#o2"), "name": drawn(rnd, "n1", "n2"), "nick": drawn(rnd, "k1", "k2")},
			{"pk": drawn(rnd, "FOLDER#f1", "FOLDER#f2"), "slug": drawn(rnd, "s1", "s2")},
		}[rnd.IntN(4)]
	}}
}

// histories is how many to try: n, or what DYNAMILL_SEEDS says.
func histories(n int) int {
	if asked, err := strconv.Atoi(os.Getenv("DYNAMILL_SEEDS")); err == nil {
		return asked
	}
	return n
}

func TestRulesChangeWhileOlderWorkersSleepAndCrash(t *testing.T) {
	for seed := range histories(worldsize.Of(60, 12)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			about := []tale{socialTale(), oddTale()}[seed%2]
			h := &ruleHistory{
				world: newWorld(t, about.file), rnd: rand.New(rand.NewPCG(uint64(seed), 14)), files: []string{about.file},
				base: map[change.Key]change.Item{}, tale: about,
			}
			h.live(h.someChanged)
			h.judge()
		})
	}
}
