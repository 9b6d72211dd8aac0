package handlers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"
)

// response is the partial batch response of event source mappings and pipes.
type response struct {
	BatchItemFailures []failedItem `json:"batchItemFailures"`
}

type failedItem struct {
	ItemIdentifier string `json:"itemIdentifier"`
}

// wholeBatch is the identifier with which everything comes again (Lambda developer
// guide, "Configuring partial batch response").
const wholeBatch = ""

// answer names what is not done: of a stream the lowest sequence number, from
// which on everything comes again; of a queue each messageId; of a pipe each
// eventID or messageId (EventBridge user guide, "Pipes batching and concurrency").
func (d *delivery) answer() ([]byte, error) {
	if d.shape == shapeTasks {
		return json.Marshal(d.tasks)
	}
	if d.shape == shapeReplay {
		return json.Marshal(d.replayed)
	}
	r := response{BatchItemFailures: []failedItem{}}
	if d.shape == shapeStream {
		if lowest := d.lowestOpen(); lowest != nil {
			r.BatchItemFailures = append(r.BatchItemFailures, failedItem{string(lowest.sequence)})
		}
		return json.Marshal(r)
	}
	for i, open := range d.open {
		if !open {
			continue
		}
		e := &d.elements[i]
		name := e.event
		if e.kind == kindMessage {
			name = e.message
		}
		if len(name) == 0 { // it cannot be named alone
			return json.Marshal(response{[]failedItem{{wholeBatch}}})
		}
		r.BatchItemFailures = append(r.BatchItemFailures, failedItem{string(name)})
	}
	return json.Marshal(r)
}

// lowestOpen returns the open element with the lowest sequence number, nil if
// none is open. One that has no number stands for the whole batch.
func (d *delivery) lowestOpen() *element {
	var lowest *element
	for i, open := range d.open {
		if !open {
			continue
		}
		e := &d.elements[i]
		if !isNumber(e.sequence) {
			return &element{sequence: []byte(wholeBatch)}
		}
		if lowest == nil || compareDigits(e.sequence, lowest.sequence) < 0 {
			lowest = e
		}
	}
	return lowest
}

func isNumber(digits []byte) bool {
	for _, c := range digits {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(digits) > 0
}

// compareDigits compares whole numbers of any length.
func compareDigits(a, b []byte) int {
	a, b = bytes.TrimLeft(a, "0"), bytes.TrimLeft(b, "0")
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return bytes.Compare(a, b)
}

// log writes the one line that an invocation has.
func (h *Handler) log(ctx context.Context, d *delivery, err error, took time.Duration) {
	level, message := slog.LevelInfo, "invocation done"
	attrs := make([]slog.Attr, 0, 10)
	if d.batch != nil && d.shape == shapeTasks {
		attrs = append(attrs, slog.String("source", d.shape.String()), slog.Int("pieces", d.tasks.Pieces), slog.Bool("done", d.tasks.Done))
	} else if d.batch != nil && d.shape == shapeReplay {
		attrs = append(attrs, d.replayAttrs()...)
	} else if d.batch != nil {
		failed := 0
		for _, open := range d.open {
			if open {
				failed++
			}
		}
		if failed > 0 || d.parked > 0 {
			level = slog.LevelWarn
		}
		attrs = append(attrs, slog.String("source", d.shape.String()), slog.Int("records", len(d.elements)),
			slog.Int("done", d.applied), slog.Int("parked", d.parked), slog.Int("failed", failed))
	}
	attrs = append(attrs, slog.Duration("took", took))
	var stop interface{ StopReading() bool }
	switch {
	case err == nil:
	case errors.As(err, &stop) && stop.StopReading():
		level, message = slog.LevelError, "invocation stopped: no retry by this version can succeed"
	case errors.Is(err, errTimeUp):
		level, message = slog.LevelWarn, "invocation out of time"
	default:
		level, message = slog.LevelError, "invocation failed"
	}
	if err != nil {
		attrs = append(attrs, slog.String("error", err.Error()))
	}
	h.cfg.Logger.LogAttrs(ctx, level, message, attrs...)
}
