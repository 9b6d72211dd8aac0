package main

import (
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/sim/emulator"
)

// TestMapsOfValuesAtDynamoDBLocal has values come and go, with characters that expressions know, and more than a target shows.
func TestMapsOfValuesAtDynamoDBLocal(t *testing.T) {
	t.Parallel()
	w := newEmptyWorld(t, emulator.Local(t))
	w.useRules(`version: 1
table: { keys: [pk, sk] }
entities:
  Post:     { key: { pk: "POST#${postId}", sk: "METADATA" } }
  Reaction: { key: { pk: "POST#${postId}", sk: "BY#${userId}" } }
  Mood:     { key: { pk: "MOOD#${mood}", sk: "METADATA" }, derived: true }
rules:
  reactions: { count: Reaction, as: Post.reactions, per: emoji }
  tags:      { count: Reaction, each: tags as tag, as: Post.tags, per: tag, write_shards: 3 }
  moods:     { sum: weight, of: Reaction, as: Mood.weights, by: { mood: emoji }, per: userId }
`)
	w.createTable(types.StreamViewTypeNewAndOldImages, change.KindString, change.KindString)
	w.put(item("POST#1", "METADATA"))
	tagged := func(n int) change.Item {
		it := item("POST#1", "BY#tagger")
		var tags []change.Value
		for i := range n {
			tags = append(tags, change.String(fmt.Sprint("#:v", i)))
		}
		it["tags"] = change.List(tags)
		return it
	}
	shown := func(doing string, attribute string, want int) {
		t.Helper()
		v := w.items()["POST#1 METADATA"].Lookup(attribute)
		if got := len(v.Map()); v.Kind() != change.KindMap && want >= 0 || got != max(want, 0) {
			t.Errorf("%s: %s shows %d values, want %d", doing, attribute, got, want)
		}
	}
	w.expectRight("nothing yet")
	shown("nothing yet", "reactions", 0)
	for i := range 12 {
		it := item("POST#1", "BY#ada", "emoji", fmt.Sprintf("like/%d :é", i))
		it["weight"] = change.Number("1.5")
		w.put(it, item("POST#1", "BY#bob", "emoji", "stays"))
		w.expectRight("a change of the value")
	}
	shown("a change of the value", "reactions", 2)
	w.put(tagged(200))
	if result := w.drain(); result.Parked != 1 {
		t.Errorf("with 200 values, %d are parked", result.Parked)
	}
	w.expectTrue()
	shown("200 values", "tags", -1)
	w.put(tagged(100))
	w.expectRight("100 values")
	shown("100 values", "tags", 100)
}
