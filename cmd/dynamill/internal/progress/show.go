package progress

import (
	"context"
	"log/slog"
	"time"
)

const (
	screenInterval = 250 * time.Millisecond // of the line on a terminal
	logInterval    = 10 * time.Second       // of the log line elsewhere
)

// Show shows a command's states until ctx ends: on a terminal as one line that is
// written over, elsewhere as a log line every ten seconds. It takes the states from
// one goroutine.
func Show(ctx context.Context, screen *Screen, logger *slog.Logger, take func() State) {
	interval := logInterval
	if screen.terminal {
		interval = screenInterval
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	var meter Meter
	meter.Add(time.Now(), take())
	for {
		select {
		case <-ctx.Done():
			screen.Show("")
			return
		case at := <-ticker.C:
			s := take()
			e := meter.Add(at, s)
			switch {
			case screen.terminal:
				screen.Show(Line(s, e, screen.Width()))
			case !s.Unchanged:
				logger.Info(s.Message, Attributes(s, e)...)
			}
		}
	}
}

// Start is Show beside the caller's own work. The returned function ends it and
// takes the line away.
func Start(ctx context.Context, screen *Screen, logger *slog.Logger, take func() State) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		Show(ctx, screen, logger, take)
	}()
	return func() {
		cancel()
		<-ended
	}
}
