package projections

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
)

const socialRules = `
version: 1
table: { keys: [pk, sk] }
entities:
  User:       { key: { pk: "USER#${userId}",   sk: "PROFILE" } }
  Post:       { key: { pk: "POST#${postId}",   sk: "METADATA" } }
  Comment:    { key: { pk: "POST#${postId}",   sk: "COMMENT#${commentId}" } }
  Group:      { key: { pk: "GROUP#${groupId}", sk: "METADATA" } }
  Membership: { key: { pk: "USER#${userId}",   sk: "GROUP#${groupId}" } }
  Member:     { key: { pk: "GROUP#${groupId}", sk: "USER#${userId}" } }
rules:
  comment-author: { copy: [name as userName, avatar as userAvatar], from: User, to: Comment, by: userId, if_missing: { userName: "[deleted]" } }
  member-list:    { mirror: Membership, as: Member, attributes: [role, joinedAt] }
  member-name:    { copy: name as userName,  from: User,  to: Member }
  group-name:     { copy: name as groupName, from: Group, to: Membership }
  group-title:    { copy: name as groupTitle, from: Group, to: Member }
  member-count:   { count: Membership, as: Group.memberCount, where: role != "banned", write_shards: 3 }
  admin-count:    { count: Member, as: Group.adminCount, where: role == "admin" }
  comment-count:  { count: Comment, as: Post.commentCount }
  comment-score:  { sum: score, of: Comment, as: Post.score }
`

const shopRules = `
version: 1
table: { keys: [PK, SK], type: EntityType }
entities:
  Post:     { key: { PK: "USER#${authorId}", SK: "POST#${postId}" }, unique: slug }
  Like:     { key: { PK: "USER#${userId}",   SK: "LIKE#${likeId}" } }
  User:     { key: { PK: "USER#${userId}",   SK: "PROFILE" } }
  PostById: { key: { PK: "POST#${postId}",   SK: "METADATA" } }
rules:
  like-count: { count: Like, as: Post.LikeCount, by: { slug: target } }
  post-count: { count: Post, as: User.PostCount, by: { userId: authorId } }
  by-id:      { mirror: Post, as: PostById, attributes: [title] }
`

// oddRules have no sort key, tell entities of one key apart by match, and find a target by a
// unique value that may be a number.
const oddRules = `
version: 1
table: { keys: [pk] }
entities:
  Doc:    { key: { pk: "DOC#${docId}" }, match: { kind: doc } }
  Note:   { key: { pk: "DOC#${docId}" }, match: { kind: note } }
  Owner:  { key: { pk: "OWNER#${ownerId}" } }
  ByCode: { key: { pk: "CODE#${code}" } }
  Folder: { key: { pk: "FOLDER#${folderId}" }, unique: slug }
rules:
  owner-name:  { copy: name as ownerName, from: Owner, to: Doc, by: ownerId, if_missing: { ownerName: "?" } }
  author-name: { copy: name as authorName, from: Owner, to: Note, by: ownerId }
  docs:        { count: Doc, as: Owner.docs, by: ownerId }
  notes:       { count: Note, as: Owner.notes, by: ownerId }
  size:        { sum: size, of: Doc, as: Owner.size, by: ownerId, write_shards: 2 }
  by-code:     { mirror: Doc, as: ByCode, by: code, attributes: [title, ownerId] }
  code-owner:  { copy: name as ownerName, from: Owner, to: ByCode, by: ownerId }
  codes:       { count: ByCode, as: Owner.codes, by: ownerId }
  in-folder:   { count: Doc, as: Folder.docs, by: { slug: folder } }
  notes-in:    { count: Note, as: Folder.notes, by: { slug: folder } }
  folder-docs: { copy: docs as folderDocs, from: Folder, to: Note, by: { folderId: folderId } }
`

func s(text string) change.Value { return change.String(text) }

// app is the application: it does random things to a small population.
type app struct {
	*world
	r     *rand.Rand
	stale map[change.Key]change.Item
}

func pick(r *rand.Rand, texts ...string) string { return texts[r.IntN(len(texts))] }

func (a *app) socialItem() change.Item {
	user, group, post := pick(a.r, "u1", "u2"), pick(a.r, "g1", "g2"), pick(a.r, "p1", "p2")
	switch a.r.IntN(6) {
	case 0:
		it := change.Item{"pk": s("USER#" + user), "sk": s("PROFILE"), "name": s(pick(a.r, "Ann", "Bob", "Cid"))}
		if a.r.IntN(2) == 0 {
			it["avatar"] = s(pick(a.r, "a.png", "b.png"))
		}
		return it
	case 1:
		return change.Item{"pk": s("POST#" + post), "sk": s("METADATA"), "title": s(strconv.Itoa(a.r.IntN(3)))}
	case 2:
		return change.Item{"pk": s("GROUP#" + group), "sk": s("METADATA"), "name": s(pick(a.r, "Dev", "Ops", "Lab"))}
	case 3:
		it := change.Item{"pk": s("POST#" + post), "sk": s("COMMENT#c" + strconv.Itoa(a.r.IntN(2)))}
		switch a.r.IntN(6) {
		case 0:
		case 1:
			it["userId"] = s("x#y")
		default:
			it["userId"] = s(user)
		}
		switch a.r.IntN(4) {
		case 0:
		case 1:
			it["score"] = s("high")
		default:
			it["score"] = change.Number(pick(a.r, "0.1", "0.2", "5"))
		}
		return it
	default:
		return change.Item{"pk": s("USER#" + user), "sk": s("GROUP#" + group), "role": s(pick(a.r, "admin", "member", "banned"))}
	}
}

func (a *app) shopItem() change.Item {
	user := pick(a.r, "u1", "u2")
	switch a.r.IntN(4) {
	case 0:
		return change.Item{"PK": s("USER#" + user), "SK": s("PROFILE"), "EntityType": s("User")}
	case 1:
		it := change.Item{"PK": s("USER#" + user), "SK": s("POST#" + pick(a.r, "p1", "p2")), "EntityType": s("Post"), "title": s(pick(a.r, "A", "B", "C"))}
		if a.r.IntN(5) > 0 {
			it["slug"] = s(pick(a.r, "s1", "s2"))
		}
		return it
	default:
		return change.Item{"PK": s("USER#" + user), "SK": s("LIKE#" + pick(a.r, "l1", "l2", "l3")), "EntityType": s("Like"), "target": s(pick(a.r, "s1", "s2"))}
	}
}

func (a *app) oddItem() change.Item {
	owner := pick(a.r, "o1", "o2")
	switch a.r.IntN(6) {
	case 0:
		return change.Item{"pk": s("OWNER#" + owner), "name": s(pick(a.r, "Ann", "Bob", "Cid"))}
	case 1:
		it := change.Item{"pk": s("FOLDER#" + pick(a.r, "f1", "f2"))}
		switch a.r.IntN(4) {
		case 0:
		case 1:
			it["slug"] = change.Number("5")
		default:
			it["slug"] = s(pick(a.r, "s1", "5"))
		}
		return it
	default:
		it := change.Item{"pk": s("DOC#" + pick(a.r, "d1", "d2", "d3")), "kind": s(pick(a.r, "doc", "doc", "note", "other")), "title": s(pick(a.r, "A", "B"))}
		for _, one := range []struct {
			name  string
			value change.Value
		}{
			{"ownerId", s(owner)}, {"code", s(pick(a.r, "c1", "c2"))}, {"folder", s(pick(a.r, "s1", "5"))},
			{"folderId", s(pick(a.r, "f1", "f2"))}, {"size", change.Number(pick(a.r, "1", "2.5"))},
		} {
			if a.r.IntN(5) > 0 {
				it[one.name] = one.value
			}
		}
		return it
	}
}

// act does one thing: puts an item whole, changes one attribute, deletes, or
// puts back an item as it once was, stamps included.
func (a *app) act(random func() change.Item) {
	it := random()
	key := change.Key{Partition: it[a.set.Table.PartitionKey].Text(), Sort: it[a.set.Table.SortKey].Text()}
	switch x := a.r.IntN(20); {
	case x < 8:
		a.put(it)
	case x < 11:
		if was := a.get(key); was != nil {
			a.update(key, it)
		}
	case x < 14:
		a.delete(key)
	case x < 16:
		if all := a.items(); len(all) > 0 { // anything, derived items too
			it := all[a.r.IntN(len(all))]
			a.stale[change.Key{Partition: it[a.set.Table.PartitionKey].Text(), Sort: it[a.set.Table.SortKey].Text()}] = it
		}
	case x < 18:
		for _, it := range a.stale {
			a.put(it)
			break
		}
	default:
		a.vandalize()
	}
}

// vandalize changes or deletes what the engine derived.
func (a *app) vandalize() {
	all := a.items()
	if len(all) == 0 {
		return
	}
	it := all[a.r.IntN(len(all))]
	key := change.Key{Partition: it[a.set.Table.PartitionKey].Text(), Sort: it[a.set.Table.SortKey].Text()}
	if a.r.IntN(4) == 0 {
		a.delete(key)
		return
	}
	for name := range it {
		if name != a.set.Table.PartitionKey && name != a.set.Table.SortKey && name != "EntityType" && a.r.IntN(2) == 0 {
			if a.r.IntN(2) == 0 {
				a.update(key, change.Item{name: {}})
			} else if it[name].Kind() == change.KindNumber {
				a.update(key, change.Item{name: change.Number("77")})
			}
			return
		}
	}
}

// TestDerivedDataConvergesAfterRandomHistories keeps promises 1, 2, 3, 4, 5 and 9: whatever the
// application does, and however workers crash, sleep, and see records again,
// the derived data is in the end what a computation from scratch gives.
func TestDerivedDataConvergesAfterRandomHistories(t *testing.T) {
	histories, first := 150, 0
	if n, err := strconv.Atoi(os.Getenv("DYNAMILL_SOAK")); err == nil {
		histories *= n
	}
	if n, err := strconv.Atoi(os.Getenv("DYNAMILL_SEED")); err == nil {
		first = n
	}
	for name, file := range map[string]string{"social": socialRules, "shop": shopRules, "odd": oddRules} {
		for seed := first; seed < first+histories; seed++ {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { runHistory(t, name, file, uint64(seed)) })
			})
		}
	}
}

func runHistory(t *testing.T, name, file string, seed uint64) {
	w := newWorld(t, file)
	a := &app{world: w, r: rand.New(rand.NewPCG(seed, 7)), stale: map[change.Key]change.Item{}}
	random := map[string]func() change.Item{"social": a.socialItem, "shop": a.shopItem, "odd": a.oddItem}[name]
	from := 0
	for range a.r.IntN(12) {
		a.act(random)
	}
	if a.r.IntN(2) == 0 { // older than the stream
		from = len(w.records())
	}
	gate := &sleepers{fell: make(chan struct{}, 1)}
	seeded := false
	seedingAt := a.r.IntN(10)
	worker := func() *Engine {
		f := &faulty{Client: w.sim, around: func(_ string, pass func() error) error { return pass() }}
		e := w.engine(f)
		f.around = gate.client(w.sim, rand.New(rand.NewPCG(seed, a.r.Uint64()))).(*faulty).around
		return e
	}
	e := worker()
	for step := range 10 + a.r.IntN(40) {
		for range a.r.IntN(4) {
			a.act(random)
		}
		if step >= seedingAt && !seeded {
			_, crashed := gate.run(func() (int, error) { return 0, e.Seed(w.ctx, nil) })
			seeded = !crashed
			if crashed {
				e = worker()
			}
		}
		all := w.records()
		if a.r.IntN(6) == 0 && from > 0 {
			from -= a.r.IntN(min(from, 9)) + 1 // an older checkpoint
		}
		n := min(len(all)-from, 1+a.r.IntN(9))
		if n <= 0 {
			continue
		}
		done, crashed := gate.run(func() (int, error) { return e.Process(context.Background(), all[from:from+n]) })
		if crashed {
			e, seeded = worker(), false
		} else {
			from += done
		}
		if a.r.IntN(5) == 0 {
			gate.wakeOne()
		}
	}
	gate.wakeAll()
	last := w.engine(nil)
	if err := last.Seed(w.ctx, nil); err != nil {
		t.Fatal(err)
	}
	w.drain(last, max(0, from-3))
	w.expectNoDrift()
	if t.Failed() {
		w.tell()
	}
}

// tell prints the stream and the state table, for finding out what went wrong.
func (w *world) tell() {
	for _, r := range w.records() {
		w.t.Logf("%s %s\n\told %v\n\tnew %v", r.Position.SequenceNumber(), r.Key, told(r.Old), told(r.New))
	}
	for _, it := range w.scan("app-dynamill") {
		w.t.Log(told(it))
	}
}

// told writes an image in one line.
func told(img change.Image) string {
	if img == nil {
		return "none"
	}
	var words []string
	for name, v := range img.All() {
		text := v.Text()
		for id, f := range v.Map() {
			text += " " + id + ":" + f.Text()
		}
		for _, m := range v.List() {
			text += " " + m.Text()
		}
		words = append(words, name+"="+text)
	}
	slices.Sort(words)
	return strings.Join(words, ", ")
}

// sleepers makes workers crash before or after a call, or fall asleep in one
// and go on much later.
type sleepers struct {
	mu     sync.Mutex
	asleep []chan struct{}
	fell   chan struct{}
	calm   bool
}

func (g *sleepers) client(c Client, r *rand.Rand) Client {
	return &faulty{Client: c, around: func(_ string, pass func() error) error {
		g.mu.Lock()
		x, calm := r.IntN(100), g.calm
		g.mu.Unlock()
		switch {
		case calm:
		case x < 2:
			return errCrash
		case x < 4:
			if err := pass(); err != nil {
				return err
			}
			return errCrash
		case x < 6:
			return &ddb.ProvisionedThroughputExceededException{}
		case x < 7:
			wake := make(chan struct{})
			g.mu.Lock()
			g.asleep = append(g.asleep, wake)
			g.mu.Unlock()
			select {
			case g.fell <- struct{}{}:
			default:
			}
			<-wake
		}
		return pass()
	}}
}

// run processes a batch. It returns when the worker is done, crashed, or asleep, which for others is a crash.
func (g *sleepers) run(work func() (int, error)) (done int, crashed bool) {
	type result struct {
		done int
		err  error
	}
	select {
	case <-g.fell:
	default:
	}
	ended := make(chan result, 1)
	go func() {
		n, err := work()
		ended <- result{n, err}
	}()
	select {
	case r := <-ended:
		return r.done, r.err != nil
	case <-g.fell:
		return 0, true
	}
}

func (g *sleepers) wakeOne() {
	g.mu.Lock()
	if len(g.asleep) > 0 {
		close(g.asleep[0])
		g.asleep = g.asleep[1:]
	}
	g.mu.Unlock()
	synctest.Wait()
}

// wakeAll wakes everybody; nobody falls asleep or crashes any more.
func (g *sleepers) wakeAll() {
	g.mu.Lock()
	g.calm = true
	g.mu.Unlock()
	for g.sleeping() {
		g.wakeOne()
	}
	time.Sleep(10 * time.Minute) // whoever backs off has come to an end
}

func (g *sleepers) sleeping() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.asleep) > 0
}
