package lambdatest

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/proof/oracle"
)

// What a report shows at most.
const (
	reportKeysMax   = 12 // items
	reportRowsMax   = 40 // of the state table
	reportLinesMax  = 300
	reportValueMax  = 120 // bytes
	reportStreamMax = 40  // records of one item
)

// diary holds what was done to a function, and what it answered.
type diary struct {
	began   time.Time
	mu      sync.Mutex
	entries []diaryEntry
}

type diaryEntry struct {
	at        time.Time
	sequences []string // of the records that it is about
	text      string
}

var (
	sequenceForm = regexp.MustCompile(`\\*"SequenceNumber\\*":\\*"0*(\d+)`)
	lateForm     = regexp.MustCompile(`"DDBStreamBatchInfo"`)
	messageForm  = regexp.MustCompile(`"messageId"`)
)

// note keeps what happened at a time, to the invocation with a payload if there is one.
func (d *diary) note(at time.Time, payload []byte, format string, args ...any) {
	e := diaryEntry{at: at, text: fmt.Sprintf(format, args...)}
	for _, found := range sequenceForm.FindAllSubmatch(payload, -1) {
		e.sequences = append(e.sequences, string(found[1]))
	}
	switch {
	case payload == nil:
	case lateForm.Match(payload):
		e.text = "late " + e.text
	case messageForm.Match(payload):
		e.text = "queue " + e.text
	case len(e.sequences) > 0:
		e.text = "stream " + e.text
	default:
		e.text = string(payload) + " " + e.text
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.entries = append(d.entries, e)
}

// about returns the lines on records with these sequence numbers, and on what is
// about no record, in the order in which things began.
func (d *diary) about(sequences map[string]bool) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	slices.SortStableFunc(d.entries, func(a, b diaryEntry) int { return a.at.Compare(b.at) })
	var lines []string
	for _, e := range d.entries {
		var shown []string
		others := 0
		for _, s := range e.sequences {
			if sequences[s] {
				shown = append(shown, s)
			} else {
				others++
			}
		}
		if len(shown) == 0 && others > 0 {
			continue
		}
		line := fmt.Sprintf("  %8.3f s  %s", e.at.Sub(d.began).Seconds(), e.text)
		if len(e.sequences) > 0 {
			line += fmt.Sprintf("; records %s and %d others", strings.Join(shown, " "), others)
		}
		lines = append(lines, line)
	}
	return bounded(lines, reportLinesMax)
}

// report tells all that is known of what differs: the items and those that they
// are derived from, their rows in the state table, their records, and the invocations
// with these.
func (h *history) report(found []oracle.Difference, items, state []change.Item) string {
	stream, err := h.readStream()
	if err != nil {
		return "the stream cannot be read for a report: " + err.Error()
	}
	byKey := map[string]change.Item{}
	for _, it := range items {
		byKey[h.Key(it).String()] = it
	}
	known := slices.Collect(maps.Keys(byKey))
	for key := range stream {
		if _, there := byKey[key]; !there {
			known = append(known, key)
		}
	}
	rows := make([]string, len(state))
	for i, row := range state {
		rows[i] = plain(row["pk"].Text()+" "+row["sk"].Text()) + "  " + briefly(row, "pk", "sk")
	}
	slices.Sort(rows)
	keys, rows := related(found, known, rows)
	out := []string{"items:"}
	sequences := map[string]bool{}
	for _, key := range keys {
		out = append(out, "  "+key+"  "+briefly(byKey[key]))
		lines := []string{}
		for _, r := range stream[key] {
			sequences[r.sequence] = true
			lines = append(lines, "    "+h.malformedMark(r)+r.text)
		}
		out = append(out, bounded(lines, reportStreamMax)...)
	}
	out = append(append(out, "state table:"), bounded(rows, reportRowsMax)...)
	out = append(append(out, "invocations, and what else was done:"), h.diary.about(sequences)...)
	return strings.Join(append(out, h.later()), "\n")
}

// later says whether what differs is right after a while.
func (h *history) later() string {
	time.Sleep(time.Second)
	records, err := h.mapping.Settle(h.ctx)
	if err != nil {
		return "a second later: " + err.Error()
	}
	items, err := h.scan(h.table)
	if err != nil {
		return "a second later: " + err.Error()
	}
	return fmt.Sprintf("a second later, after %d more records: %d items drift", records, len(oracle.Drift(h.Set, items)))
}

func (h *history) malformedMark(r streamed) string {
	h.spoiler.mu.Lock()
	defer h.spoiler.mu.Unlock()
	for sequence := range h.spoiler.ids {
		if strings.TrimLeft(sequence, "0") == r.sequence {
			return "(malformed) "
		}
	}
	return ""
}

// related finds the items that differences are about, then those that the rows of
// the state table about these name, with the rows.
func related(found []oracle.Difference, known, rows []string) (keys, shown []string) {
	add := func(key string) {
		if len(keys) < reportKeysMax && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(known, func(a, b string) int { return len(b) - len(a) }) // what others begin with comes last
	for _, d := range found {
		if !d.State {
			add(d.Key.String())
			continue
		}
		for _, key := range known {
			if strings.Contains(plain(d.Key.Partition+" "+d.Key.Sort), key) {
				add(key)
			}
		}
	}
	asked := slices.Clone(keys)
	for _, row := range rows {
		if !slices.ContainsFunc(asked, func(key string) bool { return strings.Contains(row, key) }) {
			continue
		}
		shown = append(shown, "  "+row)
		for _, key := range known {
			if strings.Contains(row, key) {
				add(key)
			}
		}
	}
	return keys, shown
}

var unescapes = strings.NewReplacer("%2F", "/", "%25", "%")

// plain shows a state table's key with the items' keys in it as they are.
func plain(key string) string { return unescapes.Replace(key) }

// briefly shows an item but for some attributes.
func briefly(it change.Item, without ...string) string {
	if it == nil {
		return "(there is none)"
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(it)) {
		if !slices.Contains(without, name) {
			parts = append(parts, name+"="+short(it[name]))
		}
	}
	return plain(strings.Join(parts, " "))
}

// short shows a value in few bytes.
func short(v change.Value) string {
	text := v.Text()
	switch v.Kind() {
	case change.KindString:
		text = fmt.Sprintf("%q", text)
	case change.KindBool:
		text = fmt.Sprint(v.Bool())
	case change.KindMap:
		text = "{" + briefly(v.Map()) + "}"
	case change.KindList, change.KindStringSet, change.KindNumberSet, change.KindBinarySet:
		members := make([]string, len(v.List()))
		for i, m := range v.List() {
			members[i] = short(m)
		}
		text = v.Kind().String() + "[" + strings.Join(members, " ") + "]"
	}
	if len(text) > reportValueMax {
		return text[:reportValueMax] + "..."
	}
	return text
}

// bounded leaves out the middle of too many lines.
func bounded(lines []string, most int) []string {
	over := len(lines) - most
	if over <= 0 {
		return lines
	}
	return slices.Concat(lines[:most/2], []string{fmt.Sprintf("  ... %d lines are left out ...", over)}, lines[most/2+over:])
}

// streamed is a record as a report shows it.
type streamed struct{ sequence, text string }

// readStream returns the records that the stream holds, by the keys of their items.
func (h *history) readStream() (map[string][]streamed, error) {
	out, err := h.streams.DescribeStream(h.ctx, &dynamodbstreams.DescribeStreamInput{StreamArn: &h.mapping.StreamARN})
	if err != nil {
		return nil, err
	}
	byKey := map[string][]streamed{}
	for _, s := range out.StreamDescription.Shards {
		reader := &shard{Mapping: h.mapping, id: aws.ToString(s.ShardId)}
		iterator, err := reader.iterator(h.ctx, "")
		if err != nil {
			return nil, err
		}
		for empty := 0; iterator != nil && empty < settledPolls; {
			page, err := h.streams.GetRecords(h.ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: iterator})
			if err != nil {
				return nil, err
			}
			if iterator = page.NextShardIterator; len(page.Records) == 0 {
				empty++
			}
			for _, r := range page.Records {
				key := h.Key(itemOf(r.Dynamodb.Keys)).String()
				byKey[key] = append(byKey[key], h.streamed(r))
			}
		}
	}
	return byKey, nil
}

func (h *history) streamed(r types.Record) streamed {
	keys := []string{h.Set.Table.PartitionKey, h.Set.Table.SortKey}
	show := func(fields map[string]types.AttributeValue) string {
		if fields == nil {
			return "(nothing)"
		}
		return "(" + briefly(itemOf(fields), keys...) + ")"
	}
	sequence := strings.TrimLeft(aws.ToString(r.Dynamodb.SequenceNumber), "0")
	return streamed{sequence, fmt.Sprintf("%s %s -> %s", sequence, show(r.Dynamodb.OldImage), show(r.Dynamodb.NewImage))}
}

func itemOf(fields map[string]types.AttributeValue) change.Item {
	return maps.Collect(attributes.StreamImage(fields).All())
}
