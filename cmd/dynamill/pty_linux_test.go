package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sys/unix"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
)

// terminal is a pseudo terminal, and everything that was shown on it.
type terminal struct {
	t      *testing.T
	device *os.File // for the command
	read   chan struct{}

	mu    sync.Mutex
	shown strings.Builder
}

// openTerminal opens a pseudo terminal of the given width (pts(4), ioctl_tty(2)).
func openTerminal(t *testing.T, columns uint16) *terminal {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	must(err)
	t.Cleanup(func() { _ = master.Close() })
	must(unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	must(err)
	device, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	must(err)
	must(unix.IoctlSetWinsize(int(device.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns}))
	p := &terminal{t: t, device: device, read: make(chan struct{})}
	go func() {
		defer close(p.read)
		buffer := make([]byte, 4096)
		for {
			n, err := master.Read(buffer)
			p.mu.Lock()
			p.shown.Write(buffer[:n])
			p.mu.Unlock()
			if err != nil { // EIO once no process has the device open
				return
			}
		}
	}()
	return p
}

func (p *terminal) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.shown.String()
}

// run runs a command to its end on the terminal, with the outputs that are not set.
func (p *terminal) run(cmd *exec.Cmd) (shown string, code int) {
	p.t.Helper()
	p.start(cmd)
	return p.end(cmd)
}

func (p *terminal) start(cmd *exec.Cmd) {
	p.t.Helper()
	if cmd.Stdout == nil {
		cmd.Stdout = p.device
	}
	if cmd.Stderr == nil {
		cmd.Stderr = p.device
	}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	_ = p.device.Close()
}

func (p *terminal) end(cmd *exec.Cmd) (shown string, code int) {
	p.t.Helper()
	_ = cmd.Wait() // the exit code tells
	<-p.read
	return p.text(), cmd.ProcessState.ExitCode()
}

// onTerminal runs a command on a terminal of its own.
func (w *world) onTerminal(code int, environment []string, args ...string) (shown string) {
	w.t.Helper()
	cmd := exec.Command("dynamill", w.args(args...)...)
	cmd.Env = append(w.server.Environ("TERM=xterm", "NO_COLOR="), environment...)
	shown, got := openTerminal(w.t, 120).run(cmd)
	if got != code {
		w.t.Errorf("%q: exit code %d, want %d\n%s", args, got, code, shown)
	}
	return shown
}

const (
	erased   = "\r\x1b[K"
	inGreen  = "\x1b[32m"
	inRed    = "\x1b[31m"
	anyStart = "\x1b["
)

// expectLines checks that lines with the given parts were shown, one over the other,
// and that in the end none was left.
func expectLines(t *testing.T, shown string, parts ...string) {
	t.Helper()
	lines := strings.Split(shown, erased)
	for _, part := range parts {
		found := false
		for _, line := range lines {
			first, _, _ := strings.Cut(line, "\r\n")
			found = found || strings.Contains(first, part)
		}
		if !found {
			t.Errorf("no line holds %q in\n%q", part, shown)
		}
	}
	for i, line := range lines[1:] {
		if i+2 < len(lines) && !strings.Contains(line, "\n") && len(line) > 119 {
			t.Errorf("%q does not fit 120 columns", line)
		}
	}
	if last := lines[len(lines)-1]; strings.HasPrefix(last, "draining") || strings.HasPrefix(last, "pass") ||
		strings.HasPrefix(last, "following") {
		t.Errorf("the line stays: %q", last)
	}
}

// slowReplay reads so slowly that the bar is seen: some 500 items a page.
var slowReplay = []string{"replay", "--segments", "1", "--read-rate", "20"}

func (w *world) fill(n int) {
	w.t.Helper()
	var items []change.Item
	for i := range n {
		items = append(items, item(fmt.Sprintf("USER#%d", i), "PROFILE", "name", "John", "bio", strings.Repeat("x", 50)))
	}
	w.put(items...)
}

func TestBarMovesOnTerminal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, types.StreamViewTypeNewAndOldImages)
	w.put(community()...)
	w.fill(1100)
	shown := w.onTerminal(ending.ExitDone, nil, "run", "--drain")
	expectLines(t, shown, "draining  2,", " records  ", "lag ", "writes ")
	if !strings.Contains(shown, inGreen+"drained: ") {
		t.Errorf("the result is not green in\n%q", shown)
	}
	expectLines(t, w.onTerminal(ending.ExitDone, nil, slowReplay...), "pass 1 of ", "  [", "] ", "% ", " of about 1,1", "/s", " left")
	for _, plain := range []string{w.onTerminal(ending.ExitDone, []string{"NO_COLOR=1"}, "run", "--drain"),
		w.onTerminal(ending.ExitDone, nil, "run", "--drain", "--color", "never")} {
		if rest := strings.ReplaceAll(plain, erased, ""); strings.Contains(rest, anyStart) {
			t.Errorf("it is coloured:\n%q", plain)
		}
		expectLines(t, plain, "draining")
	}
	w.set1("GROUP#dev", "METADATA", "memberCount", "9")
	shown = w.onTerminal(ending.ExitDrift, nil, "verify", "--settle", "1s", "--lag-max", "1ms")
	expectLines(t, shown, "  [", "0 of 1 differences", "drift 0")
	if !strings.Contains(shown, inRed+"dynamill: drift found") {
		t.Errorf("the drift is not red in\n%q", shown)
	}
}

func TestNothingMovesWithoutTerminal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, types.StreamViewTypeNewAndOldImages)
	w.put(community()...)
	w.fill(1100)
	commands := [][]string{{"run", "--drain"}, slowReplay, {"verify", "--settle", "1s"}}
	for _, args := range commands {
		w.expectOutput(ending.ExitDone, args...)
		w.expectOutput(ending.ExitDone, append([]string{"--json"}, args...)...)
	}
	_, stdout, stderr := w.call("run", "--drain", "--color", "always")
	if !strings.HasPrefix(stdout, inGreen) || strings.Contains(stdout+stderr, "\r") || strings.Contains(stdout+stderr, "\x1b[K") {
		t.Errorf("--color always prints %q and %q, want colour and nothing that moves", stdout, stderr)
	}
	cmd, out, _ := w.command("run", "--drain")
	cmd.Stderr = nil // the terminal's
	shown, code := openTerminal(t, 120).run(cmd)
	if code != ending.ExitDone {
		t.Errorf("exit code %d", code)
	}
	expectLines(t, shown, "draining")
	expectHarmless(t, "standard output beside a terminal for standard error", out.String())
}

func TestSlowReplayLogsEveryTenSecondsWithoutTerminal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, types.StreamViewTypeNewAndOldImages)
	w.fill(1100)
	w.drain()
	code, _, stderr := w.call("replay", "--segments", "1", "--read-rate", "5")
	expectHarmless(t, "replay", stderr)
	if code != ending.ExitDone || !strings.Contains(stderr, "level=INFO msg=replaying pass=") ||
		!strings.Contains(stderr, " items_per_second=") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	if strings.Contains(stderr, "{") {
		t.Errorf("JSON was not asked for:\n%s", stderr)
	}
}

func TestSignalLeavesNoLineOnTerminal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, types.StreamViewTypeNewAndOldImages)
	w.put(community()...)
	p := openTerminal(t, 60)
	cmd := exec.Command("dynamill", w.args("run")...)
	cmd.Env = w.server.Environ()
	p.start(cmd)
	eventually(t, "the line is shown", func() bool { return strings.Contains(p.text(), erased+"following") })
	time.Sleep(time.Second)
	w.must(cmd.Process.Signal(syscall.SIGINT))
	shown, code := p.end(cmd)
	if code != ending.ExitDone || !strings.Contains(shown, erased+"stopping: ") {
		t.Errorf("exit code %d:\n%q", code, shown)
	}
	if last := shown[strings.LastIndex(shown, erased)+len(erased):]; strings.HasPrefix(last, "following") {
		t.Errorf("the line stays: %q", last)
	}
}
