package projections

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/lanes"
	"github.com/dynamill/dynamill/internal/projections/inspect"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/sim/worldsize"
	"github.com/dynamill/dynamill/internal/tally"
)

// hotRule has likes counted and their weights summed on posts.
const hotRule = `
version: 1
table: { keys: [pk, sk] }
entities:
  Post: { key: { pk: "POST#${postId}", sk: "METADATA" } }
  Like: { key: { pk: "LIKE#${likeId}", sk: "LIKE" } }
rules:
  likes:  { count: Like, as: Post.likes, by: postId, hot: true }
` + weightRule

const weightRule = "  weight: { sum: weight, of: Like, as: Post.weight, by: postId, where: weight > 0, hot: true }\n"

// plainCount counts a table that stays as it is meanwhile, without its stream.
func (w *world) plainCount(ctx context.Context, g *Generation, report func(int64)) error {
	if err := g.MarkBegun(ctx, ""); err != nil {
		return err
	}
	want := map[string]tally.Amount{}
	items := w.items()
	for _, it := range items {
		amounts, err := g.Amounts(w.set.Table.KeyOf(it), it)
		if err != nil {
			w.t.Fatal(err)
		}
		for group, a := range amounts {
			want[group] = want[group].Add(a)
		}
	}
	report(int64(len(items)))
	if err := g.Groups(ctx, func(group string) error { want[group] = want[group].Add(tally.Amount{}); return nil }); err != nil {
		return err
	}
	for group, a := range want {
		have, err := g.Group(ctx, group)
		if err != nil {
			return err
		}
		if done, err := g.Mend(ctx, group, a.Lacks(have.Total), have.Base); err != nil || !done {
			return fmt.Errorf("mending %s: %t, %w", group, done, err)
		}
	}
	return nil
}

// counting opens an engine that can count, and seeds it.
func (w *world) counting() *Engine {
	w.t.Helper()
	e, err := Open(w.ctx, Config{Client: w.sim, Table: "app", Rules: loadRules(w.t, w.file), Count: w.plainCount})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := e.Seed(w.ctx, nil); err != nil {
		w.t.Fatal(err)
	}
	return e
}

// whole says that the stream has dropped nothing.
func whole(context.Context) (string, error) { return "", nil }

func (w *world) open(e *Engine, shard, parent string) *Shard {
	w.t.Helper()
	s, err := e.OpenShard(w.ctx, ShardClaim{Shard: shard, Parent: parent, Trimmed: whole})
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func (w *world) like(id, post string, weight int) {
	w.t.Helper()
	key := change.Key{Partition: "LIKE#" + id, Sort: "LIKE"}
	if post == "" {
		w.delete(key)
		return
	}
	w.update(key, change.Item{"postId": change.String(post), "weight": change.Number(fmt.Sprint(weight))})
}

func likedPost(id string) change.Key { return change.Key{Partition: "POST#" + id, Sort: "METADATA"} }

// expectLikes compares what posts show with what the items say.
func (w *world) expectLikes(posts ...string) {
	w.t.Helper()
	for _, id := range posts {
		likes, weight := 0, 0
		for _, it := range w.items() {
			if it["postId"].Text() == id {
				n := 0
				_, _ = fmt.Sscan(it["weight"].Text(), &n)
				likes, weight = likes+1, weight+max(n, 0)
			}
		}
		shown := w.get(likedPost(id))
		if got := shown["likes"].Text() + " " + shown["weight"].Text(); got != fmt.Sprint(likes, " ", weight) {
			w.t.Errorf("%s shows %s likes and weight, want %d %d", id, got, likes, weight)
		}
	}
}

func TestRecordsAreCountedOnceHoweverTheyCome(t *testing.T) {
	for seed := range uint64(worldsize.Of(20, 5)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			w := newWorld(t, hotRule)
			for _, id := range []string{"a", "b"} {
				w.put(w.keyItem(likedPost(id)))
			}
			for i := range r.IntN(4) {
				w.like(fmt.Sprint(i), []string{"a", "b"}[r.IntN(2)], r.IntN(3))
			}
			before := len(w.records())
			e := w.counting()
			w.expectLikes("a", "b")
			checkpoint := ""
			if before > 0 { // what the count has found is not the generation's
				checkpoint = w.records()[before-1].Position.SequenceNumber()
			}
			shards := []*Shard{}
			for range 2 { // a worker, and a zombie
				s, err := e.OpenShard(w.ctx, ShardClaim{Shard: "s", Checkpoint: checkpoint, Trimmed: whole})
				if err != nil {
					t.Fatal(err)
				}
				shards = append(shards, s)
			}
			for range 30 {
				w.like(fmt.Sprint(r.IntN(6)), []string{"", "a", "b"}[r.IntN(3)], r.IntN(3))
			}
			at := []int{before, before}
			crashes := 5
			for all := w.records(); at[0] < len(all) || at[1] < len(all); {
				i := r.IntN(2)
				n := min(len(all), at[i]+1+r.IntN(5))
				if _, err := shards[i].Process(w.ctx, all[at[i]:n]); err != nil {
					t.Fatal(err)
				}
				if at[i] = n; crashes > 0 && r.IntN(3) == 0 {
					at[i], crashes = before+r.IntN(n-before), crashes-1 // it crashed before its checkpoint
				}
				all = w.records()
			}
			w.expectLikes("a", "b")
		})
	}
}

func TestOneChildInheritsTheLane(t *testing.T) {
	w := newWorld(t, hotRule)
	e := w.counting()
	w.open(e, "parent", "")
	w.open(e, "second", "parent")
	w.open(e, "first", "parent")
	w.open(e, "grandchild", "second")
	lane := map[string]string{}
	for range 2 { // asked again, the rows are as they were
		for _, id := range []string{"parent", "first", "second", "grandchild"} {
			lane[id] += w.open(e, id, map[string]string{"first": "parent", "second": "parent", "grandchild": "second"}[id]).shard.Lanes[e.planner.InForce[0]][0].Lane + " "
		}
	}
	want := map[string]string{"parent": "parent parent ", "second": "parent parent ", "first": "first first ", "grandchild": "parent parent "}
	for id, lanes := range want {
		if lane[id] != lanes {
			t.Errorf("%s has the lanes %s, want %s", id, lane[id], lanes)
		}
	}
}

// paged has queries find one item a page. after is told how many pages were read.
type paged struct {
	table.Client
	pages int
	after func(pages int)
}

func (p *paged) Query(ctx context.Context, in *dynamodb.QueryInput, o ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	if p.after == nil {
		return p.Client.Query(ctx, in, o...)
	}
	one := *in
	one.Limit = new(int32(1))
	out, err := p.Client.Query(ctx, &one, o...)
	p.pages++
	p.after(p.pages)
	return out, err
}

// TestACountThatSeesAShardSeesItsParent has a shard and its child opened while a count reads the rows of shards, between two pages. A count
// that knew the child's lane but not that the parent's records are added to it, too, would take these off once more.
func TestACountThatSeesAShardSeesItsParent(t *testing.T) {
	for meanwhile := 1; ; meanwhile++ {
		w := newWorld(t, hotRule)
		client, known := &paged{Client: w.sim}, []*Generation{}
		e, err := Open(w.ctx, Config{Client: client, Table: "app", Rules: loadRules(t, w.file),
			Count: func(ctx context.Context, g *Generation, report func(int64)) error {
				known = append(known, g)
				return w.plainCount(ctx, g, report)
			}})
		if err == nil {
			err = e.Seed(w.ctx, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		w.open(e, "1", "")
		w.open(e, "3", "")
		client.after = func(pages int) {
			if pages == meanwhile {
				client.after = nil
				w.open(e, "2", "1")
				w.open(e, "4", "2")
				client.after = func(int) {}
			}
		}
		rows, err := known[0].Shards(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		_, parent := rows["2"]
		if _, child := rows["4"]; child && !parent {
			t.Errorf("after %d pages, shards 2 and 4 come: the count sees only 4", meanwhile)
		}
		if client.pages < meanwhile {
			return
		}
	}
}

func TestWorkersThatDoNotReadTheStreamSayThatTheyCannotCount(t *testing.T) {
	w := newWorld(t, hotRule)
	e := w.engine(nil)
	for doing, err := range map[string]error{
		"seeding": e.Seed(w.ctx, nil), "a replay": func() error { _, _, err := e.NextPass(w.ctx); return err }(),
	} {
		if setup, ok := errors.AsType[*SetupError](err); !ok || setup.Remedy == "" {
			t.Errorf("%s says %v", doing, err)
		}
	}
}

// TestFormerValueIsShownUntilTheNewGenerationIsCounted has a rule counted anew: records go to both generations, and the display moves on
// although the new one has had fewer operations. The former rows go when the new ones are shown.
func TestFormerValueIsShownUntilTheNewGenerationIsCounted(t *testing.T) {
	w := newWorld(t, hotRule)
	w.put(w.keyItem(likedPost("a")))
	e := w.counting()
	s, read := w.open(e, "s", ""), len(w.records())
	next := func() {
		t.Helper()
		all := w.records()
		for _, rec := range all[read:] {
			if _, err := s.Process(w.ctx, []change.Record{rec}); err != nil {
				t.Fatal(err)
			}
		}
		read = len(all)
	}
	for i := range 5 {
		w.like(fmt.Sprint(i), "a", 1)
	}
	next()
	w.expectLikes("a")
	if err := e.Recount(w.ctx, []string{"likes", "weight"}); !errors.Is(err, ErrEpochMoved) {
		t.Fatalf("a new generation begins with %v", err)
	}
	if _, err := s.Process(w.ctx, w.records()[read-1:]); !errors.Is(err, ErrEpochMoved) {
		t.Fatalf("a worker that does not know it ends with %v", err)
	}
	dropped := false
	watched := &faulty{Client: w.sim, around: passAll, before: func(_ string, in any) {
		gone, is := in.(*dynamodb.DeleteItemInput)
		if is && strings.HasPrefix(attributes.ItemFromTable(gone.Key)["pk"].Text(), state.FoldedRows) {
			w.expectLikes("a")
			dropped = true
		}
	}}
	fresh, err := Open(w.ctx, Config{Client: watched, Table: "app", Rules: loadRules(t, w.file), Count: w.plainCount})
	if err != nil {
		t.Fatal(err)
	}
	checkpoint := w.records()[len(w.records())-1].Position.SequenceNumber()
	if s, err = fresh.OpenShard(w.ctx, ShardClaim{Shard: "s", Checkpoint: checkpoint, Trimmed: whole}); err != nil {
		t.Fatal(err)
	}
	read = len(w.records())
	w.like("5", "a", 2)
	next()
	w.expectLikes("a") // by the former generation
	w.update(likedPost("a"), change.Item{"likes": change.Number("99")})
	if err := fresh.Seed(w.ctx, nil); err != nil {
		t.Fatal(err)
	}
	w.like("6", "a", 2)
	next()
	w.expectLikes("a")
	for _, row := range w.scan("app-dynamill") {
		if generation, is := strings.CutPrefix(row["pk"].Text(), state.FoldedRows+"/"); is && row["ops"].Text() != "" {
			var id string
			var n int
			_, _ = fmt.Sscanf(generation, "%2s/%d/", &id, &n)
			if n != int(fresh.planner.InForce[0].Generation.Load()) || !dropped {
				t.Errorf("the former generation still has the row %s", generation)
			}
		}
	}
}

// TestStatusSaysHowFarACountIs has two rules counted, one after the other.
func TestStatusSaysHowFarACountIs(t *testing.T) {
	w := newWorld(t, hotRule)
	w.put(w.keyItem(likedPost("a")))
	w.like("1", "a", 1)
	var seen []int64
	look := func(report func(int64), items int64) {
		t.Helper()
		report(items)
		found, err := inspect.Read(w.ctx, w.sim, "app-dynamill")
		if err != nil || found.Seeding == nil || found.Seeding.Phase != string(state.PhaseCount) {
			t.Fatalf("seeding is %+v, %v", found.Seeding, err)
		}
		seen = append(seen, found.Seeding.Items)
	}
	now := time.Now()
	e, err := Open(w.ctx, Config{Client: w.sim, Table: "app", Rules: loadRules(t, w.file), Now: func() time.Time { return now },
		Count: func(ctx context.Context, g *Generation, report func(int64)) error {
			look(report, 1000)
			look(report, 2000) // at once
			now = now.Add(countNoted)
			look(report, 3000)
			now = now.Add(countNoted)
			return w.plainCount(ctx, g, func(int64) {})
		}})
	if err == nil {
		err = e.Seed(w.ctx, nil)
	}
	if want := []int64{1000, 1000, 3000, 4000, 4000, 6000}; err != nil || !slices.Equal(seen, want) {
		t.Fatalf("the count is at %d items, want %d; %v", seen, want, err)
	}
	w.expectLikes("a")
}

// TestLateRecordsBeginANewGeneration has a record come that a count must have known, and one that was surely written after it.
func TestLateRecordsBeginANewGeneration(t *testing.T) {
	w := newWorld(t, hotRule)
	w.put(w.keyItem(likedPost("a")))
	e := w.counting()
	s := w.open(e, "s", "")
	end := time.Now().Truncate(time.Second)
	mark := lanes.CountExtent{ID: "c", Until: end, Read: map[string]string{"s": ""}}
	if err := e.Generations()[0].NoteCount(w.ctx, mark); err != nil {
		t.Fatal(err)
	}
	w.like("1", "a", 1)
	all := w.records()
	later := all[len(all)-1:]
	later[0].Created = end.Add(time.Second)
	if _, err := s.Process(w.ctx, later); err != nil {
		t.Fatalf("a record that was written after the scan: %v", err)
	}
	later[0].Created = end
	if _, err := s.Process(w.ctx, later); !errors.Is(err, ErrEpochMoved) {
		t.Errorf("a record that may have been written before the scan's end: %v", err)
	}
}

// TestLostRecordsBeginANewGeneration has a worker come back to a place that the stream has dropped.
func TestLostRecordsBeginANewGeneration(t *testing.T) {
	w := newWorld(t, hotRule)
	e := w.counting()
	dropped := func(upTo string) func(context.Context) (string, error) {
		return func(context.Context) (string, error) { return upTo, nil }
	}
	if _, err := e.OpenShard(w.ctx, ShardClaim{Shard: "new", Checkpoint: "5", Trimmed: dropped("9")}); !errors.Is(err, ErrEpochMoved) {
		t.Errorf("the start of a shard that a count did not see was dropped: %v", err)
	}
	e = w.engine(nil) // a generation that has not begun: the count comes after the loss
	for range 2 {
		if _, err := e.OpenShard(w.ctx, ShardClaim{Shard: "s", Checkpoint: "5", Trimmed: dropped("9")}); err != nil {
			t.Errorf("no count has looked yet: %v", err)
		}
	}
	if _, err := e.OpenShard(w.ctx, ShardClaim{Shard: "s", Checkpoint: "9", Trimmed: dropped("12")}); !errors.Is(err, ErrEpochMoved) {
		t.Errorf("records up to 12 were dropped, and those up to 9 are not the generation's: %v", err)
	}
}

// TestAShardBehindAForgottenOneBeginsANewGenerationThoughAWorkerCrashes has a worker find a shard whose parent the stream has dropped, and
// crash behind some writes. The next worker must see the loss, of both rules, as the first one did.
func TestAShardBehindAForgottenOneBeginsANewGenerationThoughAWorkerCrashes(t *testing.T) {
	for done := range 4 {
		w := newWorld(t, hotRule)
		e := w.counting()
		claim := ShardClaim{Shard: "child", Orphan: true, Trimmed: whole}
		writes, f := 0, &faulty{Client: w.sim}
		f.around = func(op string, pass func() error) error {
			if strings.Contains(op, "Get") || op == "DescribeTable" || op == "Query" || op == "Scan" {
				return pass()
			}
			if writes++; writes > done {
				return errCrash
			}
			return pass()
		}
		if _, err := w.engine(f).OpenShard(w.ctx, claim); err == nil {
			t.Fatal("whether the records of the shard's parent were applied, no row tells, and the shard is opened")
		} else if errors.Is(err, errCrash) {
			if _, err := e.OpenShard(w.ctx, claim); !errors.Is(err, ErrEpochMoved) {
				t.Errorf("behind a worker that crashed behind %d writes: %v", done, err)
			}
		}
		for i, g := range w.counting().Generations() {
			if g.Number <= e.Generations()[i].Number {
				t.Errorf("behind a worker that crashed behind %d writes, rule %s is in its former generation", done, g.Rule())
			}
		}
	}
}

// TestSumThatNoNumberHoldsParksItsTarget has two likes of the greatest weight: the stream goes on, and other groups are right.
func TestSumThatNoNumberHoldsParksItsTarget(t *testing.T) {
	w := newWorld(t, hotRule)
	w.put(w.keyItem(likedPost("a")))
	w.put(w.keyItem(likedPost("b")))
	e := w.counting()
	s, read := w.open(e, "s", ""), len(w.records())
	for _, id := range []string{"1", "2"} {
		w.update(change.Key{Partition: "LIKE#" + id, Sort: "LIKE"}, change.Item{"postId": change.String("a"), "weight": change.Number("9e125")})
	}
	w.like("3", "b", 2)
	for _, rec := range w.records()[read:] {
		if _, err := s.Process(w.ctx, []change.Record{rec}); err != nil {
			t.Fatal(err)
		}
	}
	w.expectLikes("b")
	if got := w.get(likedPost("a"))["likes"].Text(); got != "2" {
		t.Errorf("the count beside the sum shows %s", got)
	}
	parked := false
	for _, row := range w.scan("app-dynamill") {
		parked = parked || row["pk"].Text() == "parked" && row["code"].Text() == "number.overflow"
	}
	if !parked {
		t.Error("nothing is parked")
	}
}
