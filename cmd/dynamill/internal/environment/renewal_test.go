package environment

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/settings"
)

// guardedServer is a server that takes one access key and answers every other as expired.
type guardedServer struct {
	mu    sync.Mutex
	takes string
	calls int
}

func (g *guardedServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls++
	status, body := http.StatusOK, any(map[string]any{"Table": map[string]any{"TableName": "app", "TableStatus": "ACTIVE"}})
	if !strings.Contains(r.Header.Get("Authorization"), "Credential="+g.takes+"/") {
		status, body = http.StatusBadRequest, map[string]string{
			"__type": "com.amazonaws.dynamodb.v20120810#ExpiredTokenException", "message": "The security token included in the request is expired",
		}
	}
	answer, _ := json.Marshal(body)
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.Header().Set("X-Amz-Crc32", fmt.Sprint(crc32.ChecksumIEEE(answer)))
	w.WriteHeader(status)
	_, _ = w.Write(answer)
}

func (g *guardedServer) take(key string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.takes = key
}

func (g *guardedServer) called() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.calls
}

// profiled makes an environment with credentials of a file, and returns what writes another key into it.
func profiled(t *testing.T, url string) (*Environment, func(key string)) {
	t.Helper()
	for _, setting := range os.Environ() {
		if name, _, _ := strings.Cut(setting, "="); strings.HasPrefix(name, "AWS_") && name != "AWS_CA_BUNDLE" {
			t.Setenv(name, "")
			os.Unsetenv(name)
		}
	}
	t.Setenv("HOME", t.TempDir())
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	path := filepath.Join(t.TempDir(), "credentials")
	write := func(key string) {
		if err := os.WriteFile(path, []byte("[default]\naws_access_key_id = "+key+
			"\naws_secret_access_key = secret\naws_session_token = token\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("old")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", path)
	env, err := Connect(t.Context(), &settings.Settings{Endpoint: url, Region: "eu-west-1"}, "app", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	env.Renewal.first, env.Renewal.last = 20*time.Millisecond, 40*time.Millisecond
	return env, write
}

func TestExpiredCredentialsAreWaitedForAndLookedUpAnew(t *testing.T) {
	server := &guardedServer{takes: "old"}
	listening := httptest.NewServer(server)
	defer listening.Close()
	env, write := profiled(t, listening.URL)
	var mu sync.Mutex
	var told []bool
	env.Renewal.TurnOn(func(expired bool) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, expired)
	})
	if _, err := env.Describe(t.Context()); err != nil || len(told) != 0 {
		t.Fatalf("with good credentials: %v, told %v", err, told)
	}
	server.take("new")
	before := server.called()
	ended := make(chan error, 3)
	for range cap(ended) {
		go func() {
			_, err := env.Describe(t.Context())
			ended <- err
		}()
	}
	time.Sleep(300 * time.Millisecond)
	select {
	case err := <-ended:
		t.Fatalf("a call ended while the credentials were expired: %v", err)
	default:
	}
	// Three calls that wait 10 ms at least, 20 to 60 ms most of the time: no busy loop.
	if calls := server.called() - before; calls < 3 || calls > 3*300/10 {
		t.Errorf("%d calls in 300 ms", calls)
	}
	write("new")
	for range cap(ended) {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	for i, expired := range told { // a call that has read the old ones may be refused when another one has had the new ones taken
		if expired != (i%2 == 0) {
			t.Errorf("told %v, want that they have expired and that they are good, in turns", told)
		}
	}
	if len(told) == 0 || len(told)%2 != 0 || len(told) > 2*cap(ended) {
		t.Errorf("told %v, want that they are good in the end", told)
	}
}

func TestWaitingForCredentialsEndsWithTheCall(t *testing.T) {
	server := &guardedServer{takes: "another"}
	listening := httptest.NewServer(server)
	defer listening.Close()
	env, _ := profiled(t, listening.URL)
	if _, err := env.Describe(t.Context()); err == nil || server.called() != 1 {
		t.Errorf("before it is turned on: %d calls, %v", server.called(), err)
	}
	env.Renewal.TurnOn(func(bool) {})
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err := env.Describe(ctx)
	if err == nil || !strings.Contains(err.Error(), "expired") || time.Since(began) > 5*time.Second {
		t.Errorf("%v after %s, want the refusal at the end of the context", err, time.Since(began))
	}
}
