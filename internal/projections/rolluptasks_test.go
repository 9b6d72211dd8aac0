package projections

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// TestFailedRollupIsToldBesideHotDisplay has one roll-up fail, and another be put off again whenever it is done. WorkTasks always finds
// more to do, but it must tell of the failure: only its next call tries again.
func TestFailedRollupIsToldBesideHotDisplay(t *testing.T) {
	w := newWorld(t, recentRule())
	w.put(w.keyItem(thePost))
	e := w.seeded()
	read := w.drain(e, 0)
	for _, id := range []string{"a", "b"} {
		w.remark(id, change.Item{"at": s(id)})
	}
	w.drain(e, read)
	putOff := func(key change.Key) {
		g := plan.GroupRef{Binding: e.planner.InForce[0], Group: key.String()}
		c := table.NewExpression()
		update := state.PutOffRollup(c, g, time.Now())
		if _, err := e.host.Tables.UpdateState(w.ctx, g.ID, "putting off", state.DueRollupKey(g), update, "", c); err != nil {
			t.Error(err)
		}
	}
	cold := change.Key{Partition: "POST#cold", Sort: "METADATA"}
	putOff(cold)
	putOff(thePost)
	hot := 0
	worker := w.engine(&groupReads{Client: w.sim, before: func(group string) error {
		switch {
		case !strings.HasPrefix(group, "sum/"):
		case strings.Contains(group, "POST#cold"):
			return errCrash
		default:
			hot++
			putOff(thePost)
		}
		return nil
	}})
	ctx, stop := context.WithTimeout(w.ctx, 5*time.Second)
	defer stop()
	if _, err := worker.WorkTasks(ctx); !errors.Is(err, errCrash) || hot > 3 || ctx.Err() != nil {
		t.Errorf("after %d other roll-ups it says %v", hot, err)
	}
	if rows := w.under("tasks"); len(rows) != 2 {
		t.Errorf("left are %v, want both roll-ups", rows)
	}
}

// TestRollupsAreDoneSideBySide puts off the roll-ups of many targets. Each takes several requests.
func TestRollupsAreDoneSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const posts, took = 100, 10 * time.Millisecond
		w := newWorld(t, recentRule())
		pass := func(_ string, pass func() error) error { return pass() }
		slow := &faulty{Client: w.sim, around: func(op string, do func() error) error { return pass(op, do) }}
		e, err := Open(w.ctx, Config{Client: slow, Table: "app", Rules: loadRules(t, w.file), DisplayEvery: time.Minute})
		if err == nil {
			err = e.Seed(w.ctx, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		comment := func(id string) {
			for i := range posts {
				w.put(change.Item{"pk": s(fmt.Sprintf("POST#%d", i)), "sk": s("COMMENT#" + id), "text": s("text " + id), "at": s(id)})
			}
		}
		for i := range posts {
			w.put(change.Item{"pk": s(fmt.Sprintf("POST#%d", i)), "sk": s("METADATA")})
		}
		read := w.drain(e, 0)
		for _, id := range []string{"a", "b"} {
			comment(id)
			read = w.drain(e, read)
		}
		if rows := w.under("tasks"); len(rows) != posts {
			t.Fatalf("%d roll-ups were put off, want %d", len(rows), posts)
		}
		time.Sleep(time.Hour)
		pass = func(_ string, pass func() error) error {
			time.Sleep(took)
			return pass()
		}
		began := time.Now()
		if did, err := e.WorkTasks(w.ctx); err != nil || did.Pieces != posts {
			t.Errorf("%d roll-ups were done, %v", did.Pieces, err)
		}
		if spent := time.Since(began); spent > posts*took {
			t.Errorf("%d roll-ups took %s", posts, spent)
		}
		for i := range posts {
			got := w.get(change.Key{Partition: fmt.Sprintf("POST#%d", i), Sort: "METADATA"})["recent"]
			if want := shownComments("b", "a"); !got.Equal(want) {
				t.Fatalf("post %d shows %v, want %v", i, got, want)
			}
		}
	})
}

// TestWaitingDisplayKeepsNoFunction puts off the roll-up of a target. A function must not wait for it: the process that put it off does
// it. The function does it if it is overdue.
func TestWaitingDisplayKeepsNoFunction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, recentRule())
		open := func(cfg Config) *Engine {
			cfg.Client, cfg.Table, cfg.Rules = w.sim, "app", loadRules(t, w.file)
			e, err := Open(w.ctx, cfg)
			if err == nil {
				err = e.Seed(w.ctx, nil)
			}
			if err != nil {
				t.Fatal(err)
			}
			return e
		}
		process, function := open(Config{DisplayEvery: time.Minute}), open(Config{DueOnly: true})
		w.put(w.keyItem(thePost))
		read := w.drain(process, 0)
		for _, id := range []string{"a", "b"} {
			w.remark(id, change.Item{"at": s(id)})
			read = w.drain(process, read)
		}
		for _, want := range []int{0, 1} {
			began := time.Now()
			if did, err := function.WorkTasks(w.ctx); err != nil || did.Pieces != want || time.Since(began) > 0 {
				t.Errorf("did %d of %d roll-ups in %s: %v", did.Pieces, want, time.Since(began), err)
			}
			time.Sleep(time.Hour)
		}
		if rows := w.under("tasks"); len(rows) != 0 {
			t.Errorf("left are %v", rows)
		}
	})
}

// groupReads calls before with the partition keys of each batch of state rows that is read, and fails the read if before fails.
type groupReads struct {
	table.Client
	before func(partitions string) error
}

func (g *groupReads) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput,
	options ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	partitions := ""
	for _, key := range in.RequestItems["app-dynamill"].Keys {
		partitions += table.KeyOf(key).Partition
	}
	if err := g.before(partitions); err != nil {
		return nil, err
	}
	return g.Client.BatchGetItem(ctx, in, options...)
}

// TestARollUpDoesNotWaitBehindManyFanOuts puts off a roll-up while a worker works off many tasks, each of which takes some seconds.
func TestARollUpDoesNotWaitBehindManyFanOuts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const users, notes = 40, 12
		w := newWorld(t, strings.Replace(recentRule(), "rules:", `  User: { key: { pk: "USER#${userId}", sk: "METADATA" } }
  Note: { key: { pk: "NOTE#${noteId}", sk: "METADATA" } }
rules:
  author: { copy: name as userName, from: User, to: Note, by: userId }`, 1))
		var slow atomic.Bool
		client := &faulty{Client: w.sim, around: func(op string, pass func() error) error {
			if slow.Load() && (op == "UpdateItem" || op == "BatchExecuteStatement") {
				time.Sleep(time.Second)
			}
			return pass()
		}}
		e, err := Open(w.ctx, Config{Client: client, Table: "app", Rules: loadRules(t, w.file), FanOutMax: 5})
		if err == nil {
			err = e.Seed(w.ctx, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		user := func(i int, name string) {
			w.put(change.Item{"pk": s(fmt.Sprint("USER#", i)), "sk": s("METADATA"), "name": s(name)})
		}
		w.put(w.keyItem(thePost))
		w.remark("1", change.Item{"at": s("1")})
		for i := range users {
			user(i, "first")
			for n := range notes {
				w.put(change.Item{"pk": s(fmt.Sprint("NOTE#", i, "-", n)), "sk": s("METADATA"), "userId": s(fmt.Sprint(i))})
			}
		}
		read := w.drain(e, 0)
		for i := range users {
			user(i, "second")
		}
		w.drain(e, read)
		slow.Store(true)
		ended := make(chan error, 1)
		go func() {
			_, err := e.WorkTasks(w.ctx)
			ended <- err
		}()
		time.Sleep(time.Second)
		var recent *plan.Binding
		for _, b := range e.planner.InForce {
			if b.Rule.Name == "recent" {
				recent = b
			}
		}
		g, c := plan.GroupRef{Binding: recent, Group: thePost.String()}, table.NewExpression()
		put := w.engine(nil).host.Tables
		update := state.PutOffRollup(c, g, time.Now())
		if _, err := put.UpdateState(w.ctx, g.ID, "putting off", state.DueRollupKey(g), update, "", c); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		left := slices.ContainsFunc(w.under("tasks"), func(row change.Item) bool { return row["asked"].Text() != "" })
		select {
		case err := <-ended:
			t.Fatalf("the tasks have ended: %v", err)
		default:
		}
		if left {
			t.Error("the roll-up waits")
		}
		<-ended
	})
}
