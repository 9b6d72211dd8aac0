package progress

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynamill/dynamill/internal/printable"
)

// lockedBuffer is a buffer that several goroutines may write to.
type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func logsTo(screen *Screen) *slog.Logger {
	return slog.New(slog.NewTextHandler(screen, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}

func TestShowLogsEveryTenSecondsWithoutTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out lockedBuffer
		screen := NewScreen(printable.NewWriter(&out))
		taken := 0
		stop := Start(context.Background(), screen, logsTo(screen), func() State {
			taken++
			return State{Message: "replaying", Done: int64(taken) * 100, Unit: "items", Unchanged: taken == 3}
		})
		time.Sleep(35 * time.Second)
		stop()
		want := "level=INFO msg=replaying items_per_second=10\n"
		if got := out.String(); got != want+want {
			t.Errorf("got %q, want two lines: the second state is unchanged", got)
		}
	})
}

// terminalScreen is a Screen that takes a buffer for a terminal.
func terminalScreen(out *lockedBuffer, width int) *Screen {
	writer := printable.NewWriter(out)
	return &Screen{out: writer, raw: out, terminal: true, width: func() int { return width }}
}

func TestShowKeepsOneLineBelowTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out lockedBuffer
		screen := terminalScreen(&out, 40)
		stop := Start(context.Background(), screen, slog.New(slog.DiscardHandler),
			func() State { return State{Phase: "draining\x1b[2J\n" + strings.Repeat("x", 50)} })
		time.Sleep(300 * time.Millisecond)
		fmt.Fprintln(screen, "a log line with \x1b[31m")
		stop()
		line := `draining\x1b[2J\nxxxxxxxxxxxxxxxxxxxxxxxxxx`[:39]
		want := eraseLine + line + eraseLine + `a log line with \x1b[31m` + "\n" + line + eraseLine
		if got := out.String(); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	})
}

func TestPaintEscapesAndEndsColourAtEachLine(t *testing.T) {
	var out lockedBuffer
	screen := terminalScreen(&out, 80)
	if err := Paint(screen, Yellow, "a\x1b[2J\n\nb"); err != nil {
		t.Fatal(err)
	}
	if err := Paint(screen, "", "plain\n"); err != nil {
		t.Fatal(err)
	}
	want := Yellow + `a\x1b[2J` + plain + "\n\n" + Yellow + "b" + plain + "plain\n"
	if got := out.String(); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
