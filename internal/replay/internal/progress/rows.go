// Package progress keeps how far a replay has come in rows of the state table, so that processes can resume and share it.
//
// A run is the same passes over the same source under the same rules. It has one row, and one for each piece that was
// begun. Every write to a piece's row is conditional on its owner and on a counter that each write raises, so that a worker
// that lost a piece cannot move its cursor (promise 3). Any process may take a piece whose counter stands still for a term
// by its own monotonic clock.
package progress

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const (
	attrPartition  = "pk"
	attrSort       = "sk"
	attrTTL        = "ttl"
	attrGeneration = "generation"
	attrPasses     = "passes"
	attrSource     = "source"
	attrSegments   = "segments"
	attrRules      = "rules"
	attrStarted    = "started"
	attrFinished   = "finished"
	attrItems      = "items"
	attrCursor     = "cursor"
	attrOwner      = "owner"
	attrCounter    = "counter"
	attrDone       = "done"

	sortOfRun = "run"

	// sortBytesMax is the longest sort key (DynamoDB developer guide, "Constraints").
	sortBytesMax = 1024

	// rowTTL is longer than any replay takes: without the rows of its run and its first pieces it would never end.
	rowTTL = 180 * 24 * time.Hour
)

// Run is one piece of work.
type Run struct {
	ID         string
	Generation string // drawn anew whenever the work is begun from the start
	Passes     []string
	Source     string
	Segments   []int  // of the scan of each pass, as it was begun with; 0 for a pass that is no scan
	Rules      string // which rules it is for
	Started    time.Time
	Finished   time.Time // zero while it is not
	Items      int64     // worked off, once it is finished

	seen map[string]ddb.AttributeValue // the row, readable or not; nil if it was neither read nor written
}

// IsOf reports whether a row is one of these passes, and has a generation: otherwise another program has written it.
func (r Run) IsOf(passes []string) bool { return r.Generation != "" && slices.Equal(r.Passes, passes) }

// RunID names work: the same text for the same parts.
func RunID(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write([]byte(strconv.Itoa(len(p)) + ":" + p))
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}

func (r Run) partition() string { return "replay/" + r.ID }

// Place names one piece within a run: the number of the pass and the piece's name.
type Place struct {
	Pass int
	Name string
}

// prefix begins the sort keys of all pieces of a pass.
func (r Run) prefix(pass int) string { return r.prefixOfAll() + strconv.Itoa(pass) + "/" }

// prefixOfAll begins the sort keys of the pieces of all passes.
func (r Run) prefixOfAll() string { return "piece/" + r.Generation + "/" }

func (r Run) sortOf(p Place) string {
	text := r.prefix(p.Pass) + p.Name
	if len(text) <= sortBytesMax {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	tail := "~" + hex.EncodeToString(sum[:])
	return strings.ToValidUTF8(text[:sortBytesMax-len(tail)], "") + tail
}

// Piece is the row of one piece. The zero Piece is that of a piece that was not begun.
type Piece struct {
	Cursor  string // behind the last page done
	Items   int64
	Done    bool
	Owner   string // "" if no process works on it
	Counter int64  // raised by every write

	row map[string]ddb.AttributeValue // counter and owner as they are stored, readable or not; nil if there is no row
}

// same reports whether the row was not written between p and q.
func (p Piece) same(q Piece) bool { return p.Owner == q.Owner && p.Counter == q.Counter }

func text(s string) ddb.AttributeValue { return &ddb.AttributeValueMemberS{Value: s} }

func number(n int64) ddb.AttributeValue {
	return &ddb.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

func textOf(v ddb.AttributeValue) string {
	if s, ok := v.(*ddb.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

func numberOf(v ddb.AttributeValue) int64 {
	if n, ok := v.(*ddb.AttributeValueMemberN); ok {
		i, _ := strconv.ParseInt(n.Value, 10, 64)
		return i
	}
	return 0
}

func instant(t time.Time) ddb.AttributeValue { return text(t.UTC().Format(time.RFC3339Nano)) }

func instantOf(v ddb.AttributeValue) time.Time {
	t, _ := time.Parse(time.RFC3339Nano, textOf(v))
	return t
}

func (r Run) row(now time.Time) map[string]ddb.AttributeValue {
	row := map[string]ddb.AttributeValue{
		attrPartition: text(r.partition()), attrSort: text(sortOfRun), attrGeneration: text(r.Generation),
		attrPasses: text(strings.Join(r.Passes, " ")), attrSource: text(r.Source), attrStarted: instant(r.Started),
		attrTTL: number(now.Add(rowTTL).Unix()),
	}
	if len(r.Segments) > 0 {
		row[attrSegments] = text(strings.Trim(fmt.Sprint(r.Segments), "[]"))
	}
	if r.Rules != "" {
		row[attrRules] = text(r.Rules)
	}
	if !r.Finished.IsZero() {
		row[attrFinished] = instant(r.Finished)
		row[attrItems] = number(r.Items)
	}
	return row
}

func runOf(id string, row map[string]ddb.AttributeValue) Run {
	var segments []int
	for _, field := range strings.Fields(textOf(row[attrSegments])) {
		n, _ := strconv.Atoi(field)
		segments = append(segments, n)
	}
	return Run{
		ID: id, Generation: textOf(row[attrGeneration]), Passes: strings.Fields(textOf(row[attrPasses])), Source: textOf(row[attrSource]),
		Segments: segments, Rules: textOf(row[attrRules]), Started: instantOf(row[attrStarted]),
		Finished: instantOf(row[attrFinished]), Items: numberOf(row[attrItems]), seen: row,
	}
}

func (r Run) pieceRow(at Place, p Piece, now time.Time) map[string]ddb.AttributeValue {
	row := map[string]ddb.AttributeValue{
		attrPartition: text(r.partition()), attrSort: text(r.sortOf(at)), attrCounter: number(p.Counter),
		attrItems: number(p.Items), attrTTL: number(now.Add(rowTTL).Unix()),
	}
	if p.Cursor != "" {
		row[attrCursor] = text(p.Cursor)
	}
	if p.Owner != "" {
		row[attrOwner] = text(p.Owner)
	}
	if p.Done {
		row[attrDone] = &ddb.AttributeValueMemberBOOL{Value: true}
	}
	return row
}

func pieceOf(row map[string]ddb.AttributeValue) Piece {
	done, _ := row[attrDone].(*ddb.AttributeValueMemberBOOL)
	return Piece{
		Cursor: textOf(row[attrCursor]), Items: numberOf(row[attrItems]), Done: done != nil && done.Value,
		Owner: textOf(row[attrOwner]), Counter: numberOf(row[attrCounter]), row: row,
	}
}
