package handlers

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/rules"
)

// benchPayload is a stream event of MODIFY records with two images of about 0.6 KB each.
func benchPayload(records int) []byte {
	item := func(i int, title string) string {
		return fmt.Sprintf(`{"pk":{"S":"POST#%08d"},"sk":{"S":"COMMENT#2026-11-01T10:00:00Z#%08d"},"userId":{"S":"user-%d"},`+
			`"title":{"S":"%s"},"body":{"S":"%s"},"likes":{"N":"%d"},"price":{"N":"12345.6789"},"visible":{"BOOL":true},`+
			`"tags":{"SS":["alpha","beta","gamma"]},"address":{"M":{"street":{"S":"Long Street 12"},"city":{"S":"Springfield"},"zip":{"S":"12345"}}},`+
			`"history":{"L":[{"N":"1"},{"N":"2"},{"S":"three"}]},"createdAt":{"S":"2026-11-01T10:00:00Z"}}`,
			i, i, i%97, title, strings.Repeat("lorem ipsum ", 10), i)
	}
	var b strings.Builder
	b.WriteString(`{"Records":[`)
	for i := range records {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"eventID":"%032x","eventName":"MODIFY","eventVersion":"1.1","eventSource":"aws:dynamodb","awsRegion":"eu-west-1",`+
			`"dynamodb":{"ApproximateCreationDateTime":1.793527200E9,"Keys":{"pk":{"S":"POST#%08d"},"sk":{"S":"COMMENT#2026-11-01T10:00:00Z#%08d"}},`+
			`"NewImage":%s,"OldImage":%s,"SequenceNumber":"%d00000000012345678901","SizeBytes":1200,"StreamViewType":"NEW_AND_OLD_IMAGES"},`+
			`"eventSourceARN":"arn:aws:dynamodb:eu-west-1:123456789012:table/app/stream/2026-01-01T00:00:00.000"}`,
			i, i, i, item(i, "new title"), item(i, "old title"), i+1)
	}
	b.WriteString(`]}`)
	return []byte(b.String())
}

const benchRules = `
version: 1
table: { keys: [pk, sk] }
entities:
  User:    { key: { pk: "USER#${userId}", sk: "PROFILE" } }
  Comment: { key: { pk: "POST#${postId}", sk: "COMMENT#${createdAt}#${commentId}" }, match: { visible: true } }
rules:
  comment-author: { copy: [name as userName], from: User, to: Comment, by: userId }
`

// matcher finds out what the rules have to do with each record, as an engine does first.
type matcher struct {
	set     *rules.Set
	matched int
}

func (m *matcher) Process(_ context.Context, records []change.Record) (int, error) {
	for i := range records {
		for _, im := range [...]change.Image{records[i].Old, records[i].New} {
			match, ok := m.set.Identify(records[i].Key, im)
			if !ok {
				continue
			}
			m.matched++
			for _, r := range match.Entity.Children {
				for _, name := range r.JoinReads {
					_ = im.Lookup(name)
				}
			}
		}
	}
	return len(records), nil
}

func (*matcher) RederiveRecords(context.Context, []change.Record) error { return nil }

func loadRules(b testing.TB, text string) *rules.Set {
	b.Helper()
	set, err := rules.Load("bench.yaml", []byte(text), projections.Kinds)
	if err != nil {
		b.Fatal(err)
	}
	return set
}

// Allocations are the same on every machine, so that a test can hold them down.
func TestDecodingAllocatesATenthOfTheEventTypesAtMost(t *testing.T) {
	payload := benchPayload(100)
	m := &matcher{set: loadRules(t, benchRules)}
	h := newHandler(t, newEngine(), func(cfg *Config) { cfg.Processor = m })
	ours := testing.AllocsPerRun(5, func() {
		if _, err := h.Invoke(t.Context(), payload); err != nil || m.matched == 0 {
			t.Error(err)
		}
	})
	theirs := testing.AllocsPerRun(5, func() {
		var event events.DynamoDBEvent
		if err := json.Unmarshal(payload, &event); err != nil {
			t.Error(err)
		}
	})
	if ours > theirs/10 {
		t.Errorf("%v allocations, against %v", ours, theirs)
	}
}

// cost measures what one call of f takes, beside the benchmark's own loop. It is the
// least of several: what a shared machine adds is noise.
func cost(f func()) (took time.Duration, mallocs uint64) {
	took = time.Hour
	var before, after runtime.MemStats
	for range 5 {
		runtime.GC()
		runtime.ReadMemStats(&before)
		started := time.Now()
		f()
		took = min(took, time.Since(started))
		runtime.ReadMemStats(&after)
		mallocs = after.Mallocs - before.Mallocs
	}
	return took, mallocs
}

func benchmark(b *testing.B, ruleFile string, reads bool) {
	payload := benchPayload(1000)
	m := &matcher{set: loadRules(b, ruleFile)}
	h := New(Config{
		Processor: m, Rederiver: m, PartitionKey: "pk", SortKey: "sk", Logger: slog.New(slog.DiscardHandler), PieceFirst: 1 << 20,
	})
	invoke := func() {
		m.matched = 0
		answer, err := h.Invoke(b.Context(), payload)
		if err != nil || string(answer) != `{"batchItemFailures":[]}` {
			b.Fatalf("%s, %v", answer, err)
		}
	}
	theirs, theirMallocs := cost(func() {
		var event events.DynamoDBEvent
		if err := json.Unmarshal(payload, &event); err != nil || len(event.Records) != 1000 {
			b.Fatal(err)
		}
	})
	ours, ourMallocs := cost(invoke)
	b.SetBytes(int64(len(payload)))
	b.ReportAllocs()
	for b.Loop() {
		invoke()
	}
	if reads != (m.matched == 2000) {
		b.Fatalf("%d images matched", m.matched)
	}
	b.ReportMetric(float64(theirs)/float64(ours), "times-faster")
	b.ReportMetric(float64(theirMallocs)/float64(ourMallocs), "times-fewer-allocs")
}

// BenchmarkInvokeMatching decodes a batch in which rules read every record.
func BenchmarkInvokeMatching(b *testing.B) { benchmark(b, benchRules, true) }

// BenchmarkInvokeUnread decodes a batch that no rule reads.
func BenchmarkInvokeUnread(b *testing.B) {
	benchmark(b, strings.NewReplacer("POST#", "ARTICLE#").Replace(benchRules), false)
}
