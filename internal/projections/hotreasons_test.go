package projections

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
)

// TestRecountOfLostRecordsLogsItsReason has records of a hot rule lost: a worker and a count both say why they begin a new generation.
func TestRecountOfLostRecordsLogsItsReason(t *testing.T) {
	w := newWorld(t, hotRule)
	for reason, lose := range map[string]func(e *Engine) error{
		"the stream has dropped records of shard new": func(e *Engine) error {
			dropped := func(context.Context) (string, error) { return "9", nil }
			_, err := e.OpenShard(w.ctx, ShardClaim{Shard: "new", Checkpoint: "5", Trimmed: dropped})
			return err
		},
		"a count began too often": func(e *Engine) error { return e.Generations()[0].Recount(w.ctx, "a count began too often") },
	} {
		var log bytes.Buffer
		e := w.counting()
		e.tables.Logger = slog.New(slog.NewTextHandler(&log, nil))
		if err := lose(e); !errors.Is(err, ErrEpochMoved) {
			t.Fatalf("%s: %v", reason, err)
		}
		if said := log.String(); !strings.Contains(said, `level=WARN msg="recounting a rule" rule=likes reason="`+reason+`"`) {
			t.Errorf("%s: the log says %s", reason, said)
		}
	}
}
