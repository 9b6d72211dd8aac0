package verify_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dynamill/dynamill/change"
)

const taggedRules = `
version: 1
table: { keys: [pk, sk] }
entities:
  Post:    { key: { pk: "POST#${postId}", sk: "METADATA" } }
  TagPost: { key: { pk: "TAG#${tag}", sk: "POST#${postId}" } }
  Tag:     { key: { pk: "TAG#${tag}", sk: "METADATA" }, derived: true }
rules:
  tag-index: { mirror: Post, each: tags as tag, as: TagPost }
  tag-count: { count: Post, each: tags as tag, as: Tag.postCount }
`

// TestWhatIsParkedForItsSizeIsNoDrift has a post whose ledger entry has no room for the keys of its tags.
func TestWhatIsParkedForItsSizeIsNoDrift(t *testing.T) {
	w := worldOf(t, "tags", taggedRules)
	var tags []change.Value
	for i := range 100 {
		tags = append(tags, change.String(fmt.Sprintf("%03d", i)+strings.Repeat("x", 900)))
	}
	post := texts("pk", "POST#p", "sk", "METADATA")
	post["tags"] = change.List(tags)
	w.put("app", post)
	w.follow()
	made := 0
	for _, item := range w.scan("app") {
		if strings.HasPrefix(item["pk"].Text(), "TAG#") {
			made++
		}
	}
	found, _ := w.verify(false)
	if len(found) > 0 || made != 0 {
		t.Errorf("%d items are made, found %v", made, found)
	}
}
