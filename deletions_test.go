package dynamill_test

import (
	"fmt"
	"log/slog"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/sim/worldsize"
)

const deletingRules = `version: 1
table: { keys: [pk, sk] }
entities:
  Post:    { key: { pk: "POST#${postId}", sk: "METADATA" } }
  Comment: { key: { pk: "POST#${postId}", sk: "COMMENT#${commentId}" } }
  Like:    { key: { pk: "USER#${userId}", sk: "LIKE#${likeId}" } }
rules:
  comments: { delete: Comment, with: Post }
  likes:    { delete: Like, with: Post, by: postId }
`

// likesOf is how many of the children lie elsewhere than their parent: one of so many.
const likesOf = 10

// TestLargeDeletionSurvivesThreeKills deletes a post with 10,000 children, 2,500 under the race detector, and kills the process three
// times. All of them are gone in the end, and one that is written late. What is of another post, or of none, stays. A post that is
// made again keeps the children that are still there.
func TestLargeDeletionSurvivesThreeKills(t *testing.T) {
	children := worldsize.Of(10_000, 2_500)
	synctest.Test(t, func(t *testing.T) {
		cfg := inMemory(t)
		write := func(pk, sk, postID string) {
			item := map[string]types.AttributeValue{"pk": text(pk), "sk": text(sk)}
			if postID != "" {
				item["postId"] = text(postID)
			}
			in := &dynamodb.PutItemInput{TableName: aws.String("app"), Item: item}
			if _, err := dynamodb.NewFromConfig(cfg).PutItem(t.Context(), in); err != nil {
				t.Fatal(err)
			}
		}
		family := func(post string, n int) {
			write("POST#"+post, "METADATA", "")
			for i := range n {
				if i%likesOf == 0 {
					write(fmt.Sprint("USER#", i), "LIKE#"+post, post)
				} else {
					write("POST#"+post, fmt.Sprintf("COMMENT#%06d", i), "")
				}
			}
		}
		family("p", children)
		family("q", 100)
		write("POST#none", "COMMENT#1", "") // its post never was
		removePost := func(post string) {
			_, err := dynamodb.NewFromConfig(cfg).DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String("app"),
				Key: map[string]types.AttributeValue{"pk": text("POST#" + post), "sk": text("METADATA")}})
			if err != nil {
				t.Fatal(err)
			}
		}
		follow := dynamill.Config{Table: "app", Rules: loaded(t, deletingRules), Logger: slog.New(slog.DiscardHandler)}
		start := func(n int) *killable {
			follow.Worker = fmt.Sprint("worker", n)
			return startKillable(t, cfg, follow)
		}
		p := start(0)
		settled(t, p)
		if there := itemsIn(t, cfg); there != children+100+3 {
			t.Fatalf("%d items before anything was deleted", there)
		}
		others := othersThan(t, cfg, "p")
		expectOthers := func(when string) {
			t.Helper()
			if there := othersThan(t, cfg, "p"); !maps.Equal(there, others) {
				t.Errorf("%s, the items of others are %v, want %v", when, there, others)
			}
			if there := itemsIn(t, cfg); there != len(others) {
				t.Errorf("%s, %d items are left, want the %d that belong elsewhere", when, there, len(others))
			}
		}
		removePost("p")
		for kills := 1; kills <= 3; kills++ {
			for itemsIn(t, cfg) > children*(5-kills)/5+100 {
				time.Sleep(100 * time.Millisecond)
			}
			p.kill()
			if left := itemsIn(t, cfg) - 102; left <= 0 {
				t.Fatalf("kill %d came when nothing was left to delete", kills)
			}
			p = start(kills)
		}
		settled(t, p)
		expectOthers("behind three kills")
		write("POST#p", "COMMENT#late", "")
		write("USER#late", "LIKE#p", "p")
		settled(t, p)
		expectOthers("after two were written late")

		p.kill() // no process runs when the other post is deleted and made again
		removePost("q")
		write("POST#q", "METADATA", "")
		p = start(4)
		settled(t, p)
		expectOthers("after a post was made again")

		family("p", children/5)
		settled(t, p)
		removePost("p")
		for itemsIn(t, cfg) > children/10+len(others) {
			time.Sleep(10 * time.Millisecond)
		}
		write("POST#p", "METADATA", "") // no child is deleted from now on
		left := itemsIn(t, cfg)
		settled(t, p)
		if there := itemsIn(t, cfg); there != left || left < len(others)+2 {
			t.Errorf("%d items are left when a post is made again while its children are deleted, %d in the end", left, there)
		}
		p.stop()
		if err := <-p.ended; err != nil {
			t.Error(err)
		}
	})
}

// othersThan are the items that belong to another post or to none.
func othersThan(t *testing.T, cfg aws.Config, post string) map[string]string {
	t.Helper()
	others := map[string]string{}
	for pages := dynamodb.NewScanPaginator(dynamodb.NewFromConfig(cfg), &dynamodb.ScanInput{TableName: aws.String("app"),
		ConsistentRead: aws.Bool(true)}); pages.HasMorePages(); {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, it := range page.Items {
			texts := map[string]string{}
			for name, v := range attributes.ItemFromTable(it) {
				texts[name] = v.Text()
			}
			if texts["pk"] != "POST#"+post && texts["postId"] != post {
				others[texts["pk"]+" "+texts["sk"]] = fmt.Sprint(texts)
			}
		}
	}
	return others
}

// settled waits until a process has nothing left to do.
func settled(t *testing.T, p *killable) {
	t.Helper()
	for read := int64(-1); ; {
		time.Sleep(2 * time.Minute)
		left, err := p.running.Unfinished(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		status := p.running.Status()
		now := status.Read
		if left.Tasks == 0 && now == read && status.Stream.CaughtUp {
			return
		}
		read = now
	}
}

// itemsIn is how many items the table has.
func itemsIn(t *testing.T, cfg aws.Config) (items int) {
	t.Helper()
	in := &dynamodb.ScanInput{TableName: aws.String("app"), Select: types.SelectCount, ConsistentRead: aws.Bool(true)}
	for pages := dynamodb.NewScanPaginator(dynamodb.NewFromConfig(cfg), in); pages.HasMorePages(); {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		items += int(page.Count)
	}
	return items
}
