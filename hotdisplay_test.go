package dynamill

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/rules"
)

// TestADisplayRestsAsLongAsItsRuleSays has likes come every few seconds under a rule that shows them once in two minutes.
func TestADisplayRestsAsLongAsItsRuleSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHotTable(t, 3)
		text := hotHead + "  likes: { count: Like, as: Post.likes, by: postId, hot: true, display_every: 120s }\n"
		set, err := rules.Load("dynamill.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		h.rules = set
		stop := h.follow("a")
		defer stop()
		time.Sleep(time.Minute)
		likes := 0
		like := func() {
			likes++
			h.put(change.Item{"pk": change.String(fmt.Sprint("LIKE#", likes)), "sk": change.String("LIKE"), "postId": change.String("0")})
		}
		like()
		time.Sleep(5 * time.Second)
		if got := h.likesOf("POST#0"); got != "1" {
			t.Fatalf("the first like shows %s", got)
		}
		for range 15 {
			like()
			time.Sleep(6 * time.Second)
			if got := h.likesOf("POST#0"); got != "1" {
				t.Fatalf("after %d likes, within two minutes of the last display, the post shows %s", likes, got)
			}
		}
		time.Sleep(2 * time.Minute)
		if got := h.likesOf("POST#0"); got != fmt.Sprint(likes) {
			t.Errorf("two minutes later the post shows %s of %d", got, likes)
		}
	})
}

func (h *hotTable) likesOf(pk string) string {
	for _, item := range h.items("app") {
		if item["pk"].Text() == pk {
			return item["likes"].Text()
		}
	}
	return ""
}
