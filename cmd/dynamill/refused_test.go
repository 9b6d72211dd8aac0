package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
)

// selfMirrorRules would put a mirror item on the key of its own source.
const selfMirrorRules = `version: 1
table: { keys: [pk, sk] }
entities:
  Draft:  { key: { pk: "POST#${id}", sk: META }, match: { kind: draft } }
  Public: { key: { pk: "POST#${id}", sk: META }, match: { kind: public } }
rules:
  publish: { mirror: Draft, as: Public, attributes: [title] }
`

func TestMirrorOntoItsOwnSourceIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, types.StreamViewTypeNewAndOldImages)
	w.put(item("POST#1", "META", "kind", "draft", "title", "A"))
	w.must(os.WriteFile(w.rules, []byte(selfMirrorRules), 0o600))
	for _, command := range [][]string{{"check"}, {"run", "--drain"}, {"replay"}} {
		args := w.args(command...)
		if command[0] == "check" {
			args = []string{"check", "--rules", w.rules}
		}
		code, stdout, stderr := w.callWith(args)
		if code != ending.ExitInvalid || !strings.Contains(stdout+stderr, "mirror.overlap") || !strings.Contains(stdout+stderr, "POST#x / META") {
			t.Errorf("%s: exit code %d, want %d and the problem\n%s%s", command[0], code, ending.ExitInvalid, stdout, stderr)
		}
	}
	w.expect(map[string]string{"POST#1 META kind": "draft", "POST#1 META title": "A"})
}

// refusedRules has one rule for each kind of write that DynamoDB can refuse for good.
func refusedRules() string {
	var wide []string
	for i := range 100 {
		wide = append(wide, fmt.Sprintf("a%d", i))
	}
	rules := `version: 1
table: { keys: [pk, sk] }
entities:
  Folder: { key: { pk: "SITE#${site}", sk: "F#${path}" } }
  Page:   { key: { pk: "SITE#${site}", sk: "PAGE#${path}#${page}" } }
  Post:   { key: { pk: "USER#${user}", sk: "POST#${at}" }, unique: postId }
  Like:   { key: { pk: "LIKE#${user}", sk: "POST#${postId}" } }
  Wide:   { key: { pk: "WIDE#${wide}", sk: "META" } }
  Child:  { key: { pk: "CHILD#${child}", sk: "META" }, match: { kind: child } }
  Card:   { key: { pk: "CARD#${site}", sk: "F#${path}" }, match: { kind: card } }
  Blob:   { key: { pk: "BLOB#${blob}", sk: "META" } }
`
	for i := range 11 {
		rules += fmt.Sprintf("  Part%d: { key: { pk: \"PART%d#${blob}\", sk: META } }\n", i, i)
	}
	rules += `rules:
  title: { copy: title, from: Folder, to: Page }
  pages: { count: Page, as: Folder.pages }
  likes: { count: Like, as: Post.likes, by: postId }
  wide:  { copy: [` + strings.Join(wide, ", ") + `], from: Wide, to: Child, by: wide }
  cards: { mirror: Folder, as: Card, attributes: [title] }
`
	for i := range 11 {
		rules += fmt.Sprintf("  part%d: { mirror: Blob, as: Part%d, attributes: [data] }\n", i, i)
	}
	return rules
}

// fullItem has exactly 409,600 bytes.
func fullItem(it change.Item) change.Item {
	size := len("blob")
	for name, v := range it {
		size += len(name) + v.Size()
	}
	it["blob"] = change.String(strings.Repeat("x", 409_600-size))
	return it
}

// TestRefusedWritesAreSetAsideAndTheRestGoesOn drains a table that holds a parent with
// too long a name, a full item that loses its unique value, a child of a wide copy that
// becomes another entity, an occupied mirror key, and an item with 4.3 MB of mirrors.
func TestRefusedWritesAreSetAsideAndTheRestGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, types.StreamViewTypeNewAndOldImages)
	w.useRules(refusedRules())
	wide := item("WIDE#1", "META")
	for i := range 100 {
		wide[fmt.Sprintf("a%d", i)] = change.String("v")
	}
	w.put(wide, item("CHILD#1", "META", "kind", "child", "wide", "1"),
		item("USER#1", "POST#1", "postId", "p"), fullItem(item("USER#2", "POST#1", "postId", "p")),
		item("CARD#1", "F#x", "kind", "credit", "number", "4242"))
	w.drain() // the first start, which seeds
	long := strings.Repeat("p", 1022)
	w.put(item("SITE#1", "F#"+long, "title", "long"), item("SITE#1", "F#x", "title", "x"), item("SITE#1", "PAGE#x#1"),
		item("LIKE#1", "POST#p"))
	w.put(item("BLOB#1", "META", "data", strings.Repeat("d", 390<<10)))
	w.put(item("SITE#1", "F#"+long, "title", "longer"))
	w.put(fullItem(item("USER#2", "POST#1", "postId", "p", "more", "x")))
	w.drain()
	w.set1("CHILD#1", "META", "kind", "adult")
	w.drain()

	w.expect(map[string]string{
		"SITE#1 F#x pages": "1", "SITE#1 PAGE#x#1 title": "x", "USER#1 POST#1 likes": "1", "USER#2 POST#1 likes": "",
		"CARD#1 F#x kind": "credit", "CARD#1 F#x number": "4242", "CARD#1 F#x title": "",
		"CHILD#1 META a0": "", "CHILD#1 META a99": "", "CHILD#1 META kind": "adult",
	})
	items := w.items()
	for i := range 11 {
		if got := items[fmt.Sprintf("PART%d#1 META", i)].Lookup("data").Text(); len(got) != 390<<10 {
			t.Errorf("mirror %d has %d bytes", i, len(got))
		}
	}
	code, stdout, stderr := w.call("parked", "list")
	if code != ending.ExitDone {
		t.Fatalf("parked list ended with %d: %s", code, stderr)
	}
	parked := slices.DeleteFunc(strings.Split(stdout, "\n"), func(line string) bool {
		return !strings.Contains(line, "mirror.occupied") && !strings.Contains(line, "write.rejected")
	})
	if len(parked) != 2 || !strings.Contains(stdout, "CARD#1/F#x") || !strings.Contains(stdout, "USER#2/POST#1") {
		t.Errorf("parked are\n%s", stdout)
	}
	code, stdout, stderr = w.call("verify")
	if code != ending.ExitDone {
		t.Errorf("verify ended with %d:\n%s%s", code, stdout, stderr)
	}
}
