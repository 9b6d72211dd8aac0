package pace_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/pace"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/sim/dynamosim"
)

// Seeding, a replay and repairs keep to the budget, over any ten seconds but for a burst of one.
func TestBackgroundWorkKeepsToItsBudget(t *testing.T) {
	for _, c := range []struct{ budget, items, posts int }{
		{budget: 100, items: 500, posts: 20},
		{budget: 5, items: 60, posts: 1},
		{budget: 2000, items: 5_000, posts: 150},
	} {
		for name, work := range map[string]func(context.Context, *projections.Engine, []change.Key) error{
			"seeding": func(ctx context.Context, e *projections.Engine, _ []change.Key) error { return e.Seed(ctx, nil) },
			"replay": func(ctx context.Context, e *projections.Engine, keys []change.Key) error {
				for {
					pass, left, err := e.NextPass(ctx)
					if err != nil || left == 0 {
						return err
					}
					if e.TableOf(pass) == "app" {
						if err := e.Work(ctx, pass, keys); err != nil {
							return err
						}
					}
					if err := e.Complete(ctx, pass); err != nil {
						return err
					}
				}
			},
			"repairs": func(ctx context.Context, e *projections.Engine, keys []change.Key) error {
				return e.Rederive(ctx, keys)
			},
		} {
			t.Run(fmt.Sprintf("%s of %d items with %d units per second", name, c.items, c.budget), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					sim, engine := engineWithBudget(t, c.budget)
					var keys []change.Key
					for _, r := range comments(t, sim, c.items, c.posts) {
						keys = append(keys, r.Key)
					}
					before, began := sim.Usage().WriteUnits, time.Now()
					counting, stop := context.WithCancel(t.Context())
					var took []float64
					go unitsBySecond(counting, sim, &took)
					if err := work(t.Context(), engine, keys); err != nil {
						t.Fatal(err)
					}
					if waits := engine.Budget().Waits; len(waits) != 1 || waits[name].IsZero() {
						t.Errorf("%v waits, want %s", waits, name)
					}
					expectUsed(t, sim.Usage().WriteUnits-before, time.Since(began), c.budget)
					stop()
					synctest.Wait()
					expectPaced(t, took, float64(c.budget))
				})
			})
		}
	}
}

// engineWithBudget opens an engine on a simulated table that counts comments.
func engineWithBudget(t *testing.T, budget int) (*dynamosim.Sim, *projections.Engine) {
	t.Helper()
	sim, open := countingTable(t)
	engine, err := projections.Open(t.Context(), open(budget))
	if err != nil {
		t.Fatal(err)
	}
	return sim, engine
}

func unitsBySecond(ctx context.Context, sim *dynamosim.Sim, took *[]float64) {
	for {
		*took = append(*took, sim.Usage().WriteUnits)
		if pace.Sleep(ctx, time.Second) != nil {
			return
		}
	}
}

// expectUsed expects that work took the budget, and no more.
func expectUsed(t *testing.T, used float64, took time.Duration, budget int) {
	t.Helper()
	least := used/float64(budget) - 2 // a burst of a second, and the debt of the last piece
	t.Logf("%.0f write units in %s: %.1f per second", used, took, used/took.Seconds())
	if took.Seconds() < least || took.Seconds() > 1.3*used/float64(budget)+5 {
		t.Errorf("%.0f write units took %s, want about %.0f s", used, took, used/float64(budget))
	}
}

// expectPaced refuses more units in any ten seconds than those of eleven, and of a piece that is not paid for.
func expectPaced(t *testing.T, took []float64, budget float64) {
	t.Helper()
	for i := range took {
		if end := i + 10; end < len(took) && took[end]-took[i] > 11*budget+20 {
			t.Errorf("%.0f write units in the ten seconds from second %d on, want at most %.0f", took[end]-took[i], i, 11*budget+20)
		}
	}
}

// What the stream's records need takes no time, and background work waits for it.
func TestRecordsAreChargedAndDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const budget = 100
		sim, engine := engineWithBudget(t, budget)
		if err := engine.Seed(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		records := comments(t, sim, 250, 20)
		more := records[50:]
		before, began := sim.Usage().WriteUnits, time.Now()
		if done, err := engine.Process(t.Context(), more); err != nil || done != len(more) {
			t.Fatal(done, err)
		}
		used := sim.Usage().WriteUnits - before
		if time.Since(began) > 0 || used < 3*budget {
			t.Errorf("%.0f units of records took %s", used, time.Since(began))
		}
		var keys []change.Key
		for _, r := range records {
			keys = append(keys, r.Key)
		}
		if err := engine.Rederive(t.Context(), keys[:50]); err != nil {
			t.Fatal(err)
		}
		behind := sim.Usage().WriteUnits - before - used
		if waited := time.Since(began).Seconds(); waited < (used+behind)/budget-1.5 || behind < 50 {
			t.Errorf("background work of %.0f units took %.1f s behind records that took %.0f units", behind, waited, used)
		}
	})
}

func TestBudgetGivesBackgroundWorkATenth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const perSecond, seconds = 100, 200
		b := pace.NewBudget(perSecond)
		busy, stop := context.WithCancel(t.Context())
		go func() {
			for busy.Err() == nil {
				b.Spend(perSecond, false)
				time.Sleep(time.Second / 10)
			}
		}()
		time.Sleep(time.Second)
		began, units := time.Now(), 0
		for time.Since(began) < seconds*time.Second {
			n, end, err := b.Begin(t.Context(), "work", 1000, 1)
			if err != nil {
				t.Fatal(err)
			}
			b.Spend(float64(n), true)
			end()
			units += n
		}
		if want := perSecond / 10 * seconds; units < want*9/10 || units > want*11/10 {
			t.Errorf("background work got %d units beside busy records, want about %d", units, want)
		}
		stop()
		time.Sleep(11 * time.Second) // more than is remembered of what was overdrawn
		if left := b.Left(1000); left < perSecond/2 {
			t.Errorf("%d units are left long after the records", left)
		}
	})
}

func TestWorkWaitsSinceItsFirstWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := pace.NewBudget(10)
		began := time.Now()
		piece := func(work string) {
			_, end, err := b.Begin(t.Context(), work, 1, 1)
			if err != nil {
				t.Fatal(err)
			}
			b.Spend(20, true)
			end()
		}
		for range 5 {
			piece("a")
		}
		if spending, waits := b.Use(); len(waits) != 1 || waits["a"].Before(began) || waits["a"].After(began.Add(time.Second)) || spending < 5 {
			t.Errorf("spending %.1f, waits %v, want a since %s", spending, waits, began)
		}
		if !b.ReportDue(time.Minute) || b.ReportDue(time.Minute) {
			t.Error("a report is due never, or twice")
		}
		piece("b")
		if _, waits := b.Use(); len(waits) != 2 {
			t.Errorf("waits %v, want a and b", waits)
		}
		time.Sleep(time.Minute)
		if _, waits := b.Use(); len(waits) != 0 || b.ReportDue(0) {
			t.Errorf("waits %v long after the work", waits)
		}
		piece("a") // there are units left, and there is the share
		piece("a")
		piece("a")
		if _, waits := b.Use(); len(waits) != 1 || time.Since(waits["a"]) > 10*time.Second {
			t.Errorf("waits %v, want a since it waited anew", waits)
		}
	})
}

func TestWaitForBudgetEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := pace.NewBudget(1)
		_, end, err := b.Begin(t.Context(), "first", 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errTimeUp)
		defer cancel()
		if _, _, err := b.Begin(ctx, "second", 1, 1); !errors.Is(err, errTimeUp) {
			t.Errorf("beside another piece: %v, want the context's cause", err)
		}
		b.Spend(1, true)
		b.Spend(1000, true) // beyond what is left and beyond the share
		end()
		ctx, cancel = context.WithTimeoutCause(t.Context(), 5*time.Second, errTimeUp)
		defer cancel()
		began := time.Now()
		if _, _, err := b.Begin(ctx, "third", 1, 1); !errors.Is(err, errTimeUp) || time.Since(began) != 5*time.Second {
			t.Errorf("%v after %s, want the context's cause after 5 s", err, time.Since(began))
		}
		if _, end, err = b.Begin(t.Context(), "fourth", 1, 1); err != nil { // the third has left its turn
			t.Fatal(err)
		}
		end()
	})
}

func TestNoBudgetHoldsNothingBack(t *testing.T) {
	b := pace.NewBudget(0)
	n, end, err := b.Begin(t.Context(), "work", 7, 10)
	end()
	b.Spend(1000, true)
	spending, waits := b.Use()
	if n != 7 || err != nil || b.Left(9) != 9 || b.PerSecond() != 0 || spending != 0 || waits != nil || b.ReportDue(0) {
		t.Errorf("%d things, %v; %d left, spending %.1f, waits %v", n, err, b.Left(9), spending, waits)
	}
}
