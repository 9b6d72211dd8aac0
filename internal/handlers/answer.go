package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/dynamill/dynamill/change"
)

// response is the partial batch response of event source mappings and pipes.
type response struct {
	BatchItemFailures []failedItem `json:"batchItemFailures"`
}

type failedItem struct {
	ItemIdentifier string `json:"itemIdentifier"`
}

// wholeBatch has everything come again (Lambda developer guide, "Configuring partial batch response").
const wholeBatch = ""

// answer names what is not done: of a stream the lowest sequence number, of a queue each messageId, of a pipe each eventID
// or messageId (EventBridge user guide, "Pipes batching and concurrency").
func (d *delivery) answer() ([]byte, error) {
	if d.reply != nil {
		return json.Marshal(d.reply)
	}
	r := response{BatchItemFailures: []failedItem{}}
	for _, name := range d.openNames() {
		r.BatchItemFailures = append(r.BatchItemFailures, failedItem{name})
	}
	return json.Marshal(r)
}

// LeavesOpen reports whether an answer names records that have to come again.
func LeavesOpen(answer []byte) bool {
	var r response
	return json.Unmarshal(answer, &r) != nil || len(r.BatchItemFailures) > 0
}

// comesAgainWhole reports whether all records of a stream's batch come again: none is done before the first that is open.
func (d *delivery) comesAgainWhole() bool {
	names := d.openNames()
	if d.shape != shapeStream || len(names) == 0 {
		return false
	}
	open, err := change.NewPosition("any", names[0])
	return err != nil || !slices.ContainsFunc(d.elements, func(e element) bool {
		position, err := change.NewPosition("any", string(e.sequence))
		return err == nil && position.Compare(open) < 0
	})
}

// openNames are the names under which open elements come again: the whole batch if one of them has none.
func (d *delivery) openNames() (names []string) {
	var lowest change.Position
	for _, e := range d.elements {
		if e.done {
			continue
		}
		name := e.eventID
		switch {
		case d.shape == shapeStream:
			position, err := change.NewPosition("any", string(e.sequence))
			if err != nil {
				return []string{wholeBatch}
			}
			if lowest.IsZero() || position.Compare(lowest) < 0 {
				lowest, names = position, []string{string(e.sequence)}
			}
			continue
		case e.kind == kindMessage:
			name = e.messageID
		}
		if len(name) == 0 {
			return []string{wholeBatch}
		}
		names = append(names, string(name))
	}
	return names
}

// log writes the one line that an invocation has.
func (h *Handler) log(ctx context.Context, d *delivery, err error, took time.Duration) {
	level, message := slog.LevelInfo, "invocation done"
	var attrs []slog.Attr
	if d.batch != nil {
		attrs = append(attrs, slog.String("source", d.shape.String()))
	}
	if d.batch != nil && !d.shape.isCommand() {
		parked, done, open := d.counts()
		if open > 0 || parked > 0 {
			level = slog.LevelWarn
		}
		attrs = append(attrs,
			slog.Int("records", len(d.elements)), slog.Int("done", done), slog.Int("parked", parked), slog.Int("failed", open))
	}
	attrs = append(attrs, d.commandAttrs...)
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

// counts divides the elements into parked ones, those that are done otherwise, and open ones.
func (d *delivery) counts() (parked, done, open int) {
	for _, e := range d.elements {
		switch {
		case !e.done:
			open++
		case e.parked:
			parked++
		default:
			done++
		}
	}
	return parked, done, open
}
