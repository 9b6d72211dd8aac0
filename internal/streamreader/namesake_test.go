package streamreader

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynamill/dynamill/internal/sim/dynamosim"
	"github.com/dynamill/dynamill/internal/sim/worldsize"
)

// A process that was cut off, or frozen, wakes up when another has taken its place under its name.
func TestAProcessThatWakesUpBesideItsSuccessorEnds(t *testing.T) {
	for what, asleep := range map[string]struct{ sleep, wake func(*line) }{
		"cut off": {
			func(l *line) { l.mu.Lock(); l.cut = true; l.mu.Unlock() },
			func(l *line) { l.mu.Lock(); l.cut = false; l.mu.Unlock() },
		},
		"frozen": {(*line).freeze, (*line).thaw},
	} {
		for i := range worldsize.Of(6, 2) {
			t.Run(fmt.Sprintf("%s, %d", what, i), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := newCrew(t, dynamosim.Options{Shards: 4})
					stop := c.keepWriting(50*time.Millisecond, 20)
					first := c.join("same")
					time.Sleep(20*time.Second + time.Duration(i)*700*time.Millisecond)
					asleep.sleep(first.line)
					time.Sleep(time.Minute)
					second := c.join("same")
					time.Sleep(30 * time.Second)
					before := c.rows()
					asleep.wake(first.line)
					select {
					case err := <-first.ended:
						if !errors.Is(err, ErrNamesake) {
							t.Errorf("the first one ended with %v", err)
						}
					case <-time.After(2 * testTerm):
						t.Error("the first one goes on")
						first.cancel()
					}
					time.Sleep(10 * time.Second)
					if st := second.reader.Stats(); st.Open != 4 {
						t.Errorf("the second one: %+v", st)
					}
					for id, l := range c.rows() {
						if l.Run != before[id].Run {
							t.Errorf("the row was claimed by another process: %+v, before %+v", l, before[id])
						}
					}
					c.finish(stop, true)
				})
			})
		}
	}
}

// Two of one name that start together do not both go on, and one that is started
// again has everything at once.
func TestTwoProcessesOfOneNameThatStartTogether(t *testing.T) {
	for i := 0; i < 12; i += worldsize.Of(1, 3) {
		t.Run(fmt.Sprint(100*i, " ms apart"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCrew(t, dynamosim.Options{Shards: 8})
				stop := c.keepWriting(50*time.Millisecond, 20)
				first := c.join("same")
				time.Sleep(time.Duration(i) * 100 * time.Millisecond)
				second := c.join("same")
				time.Sleep(2 * testTerm)
				ended := 0
				for _, m := range []*member{first, second} {
					select {
					case err := <-m.ended:
						ended++
						if !errors.Is(err, ErrNamesake) {
							t.Errorf("one ended with %v", err)
						}
						m.ended <- nil
					default:
					}
				}
				if ended == 0 {
					t.Error("both go on")
				}
				for _, m := range []*member{first, second} {
					m.cancel()
					<-m.ended
				}
				third := c.join("same")
				time.Sleep(5 * time.Second)
				if st := third.reader.Stats(); st.Open != 8 {
					t.Errorf("the third one: %+v", st)
				}
				c.finish(stop, true)
			})
		})
	}
}
