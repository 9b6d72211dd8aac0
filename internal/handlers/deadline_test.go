package handlers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamill/dynamill/change"
)

func TestWorkStopsEarlyEnoughToAnswer(t *testing.T) {
	var records []string
	for i := range 10 {
		records = append(records, insert("u", strconv.Itoa(i+1)))
	}
	payload := []byte(event(records...))
	for name, c := range map[string]struct {
		limit, margin time.Duration
		pieces        int
		heeds         bool   // the Processor looks at its context
		want          string // whole: an error, so that Lambda halves the batch
		took          time.Duration
	}{
		"record by record":          {5 * time.Second, 2 * time.Second, 1, true, "4", 3 * time.Second},
		"all at once":               {5 * time.Second, 2 * time.Second, 0, true, "4", 3 * time.Second},
		"by default a tenth":        {5 * time.Second, 0, 1, true, "5", 4500 * time.Millisecond},
		"by default at least 300ms": {2 * time.Second, 0, 1, true, "2", 1700 * time.Millisecond},
		"by default a second":       {11 * time.Second, 0, 1, true, "", 10 * time.Second},
		"a margin over the limit":   {time.Second, 2 * time.Second, 1, true, "whole", 0},
		"one that heeds no context": {5 * time.Second, 2500 * time.Millisecond, 2, false, "5", 4 * time.Second},
		"no deadline":               {0, 0, 1, true, "", 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				running := false
				second := processor(func(ctx context.Context, records []change.Record) (int, error) {
					running = true
					defer func() { running = false }()
					for i := range records {
						if !c.heeds {
							time.Sleep(time.Second)
							continue
						}
						select {
						case <-time.After(time.Second):
						case <-ctx.Done():
							return i, ctx.Err()
						}
					}
					return len(records), nil
				})
				ctx := t.Context()
				if c.limit > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.limit)
					defer cancel()
				}
				h := newHandler(t, newEngine(), func(cfg *Config) { cfg.Processor, cfg.Margin, cfg.PieceFirst = second, c.margin, c.pieces })
				var out bytes.Buffer
				h.cfg.Logger = slog.New(slog.NewTextHandler(&out, nil))
				started := time.Now()
				answer, err := h.Invoke(ctx, payload)
				if said := strings.Contains(out.String(), "invocation out of time"); said != (c.want != "") {
					t.Errorf("logged %s", out.String())
				}
				want := failures()
				if c.want != "" {
					want = failures(c.want)
				}
				if whole := c.want == "whole"; whole != errors.Is(err, errTimeUp) || !whole && string(answer) != want {
					t.Errorf("answer %s, %v, want %s", answer, err, want)
				}
				if took := time.Since(started); took != c.took {
					t.Errorf("it took %v, want %v", took, c.took)
				}
				if running {
					t.Error("the Processor still runs after the answer")
				}
			})
		})
	}
}

// TestPiecesGrowWhileThereIsTime gives the records of one batch to a Processor that is quick, or slow.
func TestPiecesGrowWhileThereIsTime(t *testing.T) {
	var records []string
	for i := range 2600 {
		records = append(records, insert("u", strconv.Itoa(i+1)))
	}
	payload := []byte(event(records...))
	for name, c := range map[string]struct {
		took time.Duration // of a record
		want string
	}{
		"quick": {time.Millisecond, "[100 400 1000 1000 100]"},
		"slow":  {10 * time.Millisecond, "[100 400 400 400 400 400 400 100]"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				var sizes []int
				h := newHandler(t, newEngine(), func(cfg *Config) {
					cfg.PieceFirst = 100
					cfg.Processor = processor(func(_ context.Context, records []change.Record) (int, error) {
						sizes = append(sizes, len(records))
						time.Sleep(time.Duration(len(records)) * c.took)
						return len(records), nil
					})
				})
				answer, err := h.Invoke(ctx, payload)
				if err != nil || string(answer) != failures() || fmt.Sprint(sizes) != c.want {
					t.Errorf("answer %s, %v, pieces of %v, want %s", answer, err, sizes, c.want)
				}
			})
		})
	}
}

func TestALateBatchStopsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		e := newEngine()
		h := newHandler(t, e, func(cfg *Config) { cfg.Margin = time.Minute })
		_, err := h.Invoke(ctx, []byte(late(event(insert("a", "1")))))
		if !errors.Is(err, errTimeUp) || len(e.calls) > 0 {
			t.Errorf("error %v, calls %q", err, e.calls)
		}
	})
}

// Everything from an open record of a stream on comes again: one that is open
// because time ran out before its turn would hold up its shard for ever.
func TestAMalformedRecordDoesNotHoldUpWhatTimeIsTooShortFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		e := newEngine()
		h := newHandler(t, e, func(cfg *Config) {
			cfg.PieceFirst = 1
			cfg.Processor = processor(func(ctx context.Context, records []change.Record) (int, error) {
				time.Sleep(4 * time.Second)
				return e.Process(ctx, records)
			})
		})
		answer, err := h.Invoke(ctx, []byte(event(insert("a", "1"), malformed("m", "2"), insert("b", "3"), insert("c", "4"), insert("d", "5"))))
		if err != nil || string(answer) != failures("5") {
			t.Errorf("answer %s, %v", answer, err)
		}
		if diff := cmp.Diff([]string{"park record.value", "rederive USER#m/PROFILE@2", "process 1", "process 3", "process 4"},
			e.calls); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}
