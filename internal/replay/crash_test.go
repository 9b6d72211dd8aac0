package replay_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/replay"
)

// killAt kills the process at its n-th call of anything.
func (p *process) killAt(n int) {
	calls := 0
	p.hook = func(string) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if calls++; calls == n {
			p.kill()
		}
	}
}

// TestKilledAnywhereItLosesAtMostThePagesInHand kills a replay at each of its
// calls in turn: before and after each page's work, each write of its place and
// each read. The next one, later by a term, must come to the end.
func TestKilledAnywhereItLosesAtMostThePagesInHand(t *testing.T) {
	const pieces, pages, parallel = 5, 4, 3
	for n := 1; n < 400; n++ {
		ended := false
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			r.slow = time.Millisecond
			source := newBook(pieces, pages)
			p := r.process()
			p.killAt(n)
			cfg := p.config(source)
			cfg.Parallel = parallel
			_, err := replay.Run(t.Context(), cfg)
			ended = err == nil
			if err != nil && !errors.Is(err, errKilled) {
				t.Fatalf("killed at call %d: %v", n, err)
			}
			if len(r.completed) > 0 && len(r.times("rederive")) == 0 {
				t.Fatalf("killed at call %d: completed before anything was done", n)
			}
			lost := r.begun
			if err != nil {
				cfg = r.process().config(source)
				if _, err := replay.Run(t.Context(), cfg); err != nil {
					t.Fatalf("after a kill at call %d: %v", n, err)
				}
			}
			worked, again := 0, 0
			for times, keys := range r.times("rederive") {
				worked += keys
				again += (times - 1) * keys
			}
			if worked != pieces*pages || len(r.completed) == 0 {
				t.Fatalf("killed at call %d: %d pages worked off, %v completed", n, worked, r.completed)
			}
			// Killed between the completion and its note, all is done and begun anew.
			if again > parallel && lost < pieces*pages {
				t.Fatalf("killed at call %d: %d pages were lost", n, again)
			}
		})
		if ended {
			if n < 3*pieces*pages {
				t.Fatalf("a replay ended within %d calls", n)
			}
			return
		}
	}
	t.Fatal("no replay ended without being killed")
}

func TestKilledAgainAndAgainItComesToTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pieces, pages, parallel = 8, 20, 3
		r := newRig(t)
		r.slow = 100 * time.Millisecond
		source := newBook(pieces, pages)
		random := rand.New(rand.NewPCG(1, 2))
		kills := 0
		for {
			p := r.process()
			p.killAt(1 + random.IntN(80))
			cfg := p.config(source)
			cfg.Parallel = parallel
			_, err := replay.Run(t.Context(), cfg)
			if err == nil {
				break
			}
			if kills++; kills > 200 {
				t.Fatal("it never ends")
			}
		}
		again := 0
		for times, keys := range r.times("rederive") {
			again += (times - 1) * keys
		}
		if again > kills*parallel || kills < 5 {
			t.Errorf("%d kills lost %d pages", kills, again)
		}
	})
}

func TestPieceOfADeadProcessIsTakenAfterATerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.slow = time.Second
		source := newBook(4, 30)
		victim := r.process()
		var died, ended time.Time
		victim.hook = func(string) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if died.IsZero() && r.begun > 20 {
				died = time.Now()
				victim.kill()
			}
		}
		r.both(func(i int) error {
			if i == 0 {
				if _, err := replay.Run(t.Context(), victim.config(source)); !errors.Is(err, errKilled) {
					return fmt.Errorf("the one that was killed ended with %w", err)
				}
				return nil
			}
			time.Sleep(2 * time.Second) // the other has everything by then
			_, err := replay.Run(t.Context(), r.process().config(source))
			ended = time.Now()
			return err
		})
		got := r.times("rederive")
		if got[1]+got[2] != 120 || got[2] > 4 {
			t.Errorf("pages were worked off %v times", got)
		}
		if took := ended.Sub(died); took < term || took > term+40*time.Second {
			t.Errorf("the rest took %s after the kill", took)
		}
	})
}

// TestAPageMayTakeLongerThanATerm is that a worker renews its piece while it works on a page.
func TestAPageMayTakeLongerThanATerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.slow = 5 * term
		source := newBook(3, 3)
		r.both(func(int) error {
			_, err := replay.Run(t.Context(), r.process().config(source))
			return err
		})
		if got := r.times("rederive"); !maps.Equal(got, map[int]int{1: 9}) {
			t.Errorf("pages were worked off %v times", got)
		}
	})
}

// TestAZombieCannotMoveAPlace freezes a process within a page, lets another take
// its pieces and stop halfway, and wakes it: nothing that it had may be written.
func TestAZombieCannotMoveAPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		source := newBook(1, 9)
		zombie := r.process()
		zombie.hook = func(call string) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if call == "worked" && r.begun == 2 && zombie.frozen == nil {
				zombie.frozen = make(chan struct{})
			}
		}
		woken := make(chan error, 1)
		go func() {
			_, err := replay.Run(t.Context(), zombie.config(source))
			woken <- err
		}()
		synctest.Wait()
		if err := r.stopAfter(4, r.process().config(source)); !errors.Is(err, errKilled) {
			t.Fatalf("the second ended with %v", err)
		}
		before := r.place()
		close(zombie.frozen)
		synctest.Wait()
		select {
		case err := <-woken:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(time.Hour):
			t.Fatal("the zombie never ended")
		}
		// It lost the piece, saw that no process works on it, and went on from the other's place.
		if got := r.times("rederive"); before != "5" || got[1] != 8 || got[2] != 1 || len(got) != 2 {
			t.Errorf("at %s when it woke; pages were worked off %v times", before, got)
		}
	})
}

// TestAnAnswerThatIsLostIsNoLostPiece loses every fifth answer to a write of
// progress that has taken effect: the writer finds its own name on the row.
func TestAnAnswerThatIsLostIsNoLostPiece(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.slow = 5 * time.Second // so that renewals are lost, too
		source := newBook(3, 6)
		p := r.process()
		writes := 0
		p.lose = func() error {
			r.mu.Lock()
			defer r.mu.Unlock()
			if writes++; writes%5 == 0 {
				return &types.InternalServerError{}
			}
			return nil
		}
		if _, err := replay.Run(t.Context(), p.config(source)); err != nil {
			t.Fatal(err)
		}
		if got := r.times("rederive"); !maps.Equal(got, map[int]int{1: 18}) || len(r.completed) != 1 || writes < 40 {
			t.Errorf("%d writes; pages were worked off %v times, %v completed", writes, got, r.completed)
		}
	})
}

// place is the cursor of the only piece.
func (r *rig) place() string {
	r.t.Helper()
	rows := r.rows("piece/")
	if len(rows) != 1 {
		r.t.Fatalf("%d rows of pieces", len(rows))
	}
	cursor, _ := rows[0]["cursor"].(*types.AttributeValueMemberS)
	if cursor == nil {
		return ""
	}
	return cursor.Value
}

// expiring takes a run's row from the table as soon as it has been read once.
type expiring struct {
	replay.StateClient
	r    *rig
	done bool
}

func (e *expiring) GetItem(ctx context.Context, in *dynamodb.GetItemInput, o ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	out, err := e.StateClient.GetItem(ctx, in, o...)
	if !e.done && err == nil && len(out.Item) > 0 {
		e.done = true
		if _, err := e.r.sim.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: in.TableName, Key: in.Key}); err != nil {
			e.r.t.Error(err)
		}
	}
	return out, err
}

func TestRowThatExpiresWhileReadHoldsUpNoReplay(t *testing.T) {
	r := newRig(t)
	source := newBook(3, 2)
	if _, err := replay.Run(t.Context(), r.process().config(source)); err != nil {
		t.Fatal(err)
	}
	cfg := r.process().config(source)
	client := &expiring{StateClient: cfg.State, r: r}
	cfg.State = client
	if totals, err := replay.Run(t.Context(), cfg); err != nil || totals.Items != 6 || !client.done {
		t.Errorf("a replay whose former row expired: %+v, %v", totals, err)
	}
}
