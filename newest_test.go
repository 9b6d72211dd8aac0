package dynamill

import (
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynamill/dynamill/internal/sim/worldsize"
	"github.com/dynamill/dynamill/rules"
)

const newestRules = `version: 1
table: { keys: [pk, sk] }
entities:
  Post:    { key: { pk: "POST#${postId}", sk: METADATA } }
  Comment: { key: { pk: "POST#${postId}", sk: "COMMENT#${commentId}" } }
rules:
  newest: { last: [name as newest], of: Comment, to: Post, order: commentId }
`

// TestNewestOf200CommentsASecondIsShownOnceASecond has one process follow a post that gets a comment every 5 ms.
func TestNewestOf200CommentsASecondIsShownOnceASecond(t *testing.T) {
	const perSecond, behindMax = 200, 3 * time.Second
	seconds := worldsize.Of(20, 5)
	synctest.Test(t, func(t *testing.T) {
		s := newSlowTable(t, 1)
		s.put("POST#p", "METADATA", "Post")
		set, err := rules.Load("dynamill.yaml", []byte(newestRules))
		if err != nil {
			t.Fatal(err)
		}
		defer s.follow(func(c *Config) { c.Rules = set })()
		time.Sleep(10 * time.Second)
		began := time.Now()
		var written atomic.Int64
		go func() {
			for i := range seconds * perSecond {
				time.Sleep(time.Until(began.Add(time.Duration(i) * time.Second / perSecond)))
				s.put("POST#p", fmt.Sprintf("COMMENT#%06d", i), strconv.Itoa(i))
				written.Store(int64(i))
			}
		}()
		shown, changes := "", 0
		for time.Since(began) < time.Duration(seconds)*time.Second+behindMax {
			if now := s.see("POST#p", "METADATA", "newest"); now != shown {
				shown, changes = now, changes+1
			}
			if n, _ := strconv.Atoi(shown); time.Since(began) > behindMax && written.Load()-int64(n) > perSecond*int64(behindMax/time.Second) {
				t.Fatalf("after %s, comment %s is shown, and %d is written", time.Since(began), shown, written.Load())
			}
			time.Sleep(time.Millisecond)
		}
		if want := strconv.Itoa(seconds*perSecond - 1); shown != want {
			t.Errorf("in the end comment %s is shown, want %s", shown, want)
		}
		if changes > seconds+2 {
			t.Errorf("the post was written %d times in %d seconds", changes, seconds)
		}
		t.Logf("%d writes of the post in %d seconds", changes, seconds)
	})
}
