package monitor

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// headerTimeout bounds how long a client may take to send its request's header.
const headerTimeout = 10 * time.Second

// Config says what is served.
type Config struct {
	Take    func() Sample // must be safe for concurrent use
	LagMax  time.Duration // beyond which /readyz says no; 0: never
	Profile bool          // serve /debug/pprof/ too
}

// Handler serves /metrics, /healthz and /readyz, and /debug/pprof/ if asked for.
func Handler(cfg Config) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		&collector{cfg},
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "alive") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { ready(w, cfg.Take(), cfg.LagMax) })
	if cfg.Profile {
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
	return mux
}

func ready(w http.ResponseWriter, sample Sample, lagMax time.Duration) {
	lines, code := []string{"ready"}, http.StatusOK
	if reasons := sample.notReady(lagMax); len(reasons) > 0 {
		lines, code = []string{"not ready: " + strings.Join(reasons, "; ")}, http.StatusServiceUnavailable
	}
	lines = append(lines, "state: "+string(sample.Status.State))
	if sample.Status.Remedy != "" {
		lines = append(lines, "remedy: "+sample.Status.Remedy)
	}
	answer(w, code, lines...)
}

func answer(w http.ResponseWriter, code int, lines ...string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	fmt.Fprintln(w, strings.Join(lines, "\n"))
}

// Server serves until it is closed.
type Server struct {
	http *http.Server
	addr net.Addr
	done chan struct{}
}

// Listen serves at an address such as 127.0.0.1:9464. It returns once the
// address is taken, so that one in use is an error at once.
func Listen(ctx context.Context, address string, cfg Config) (*Server, error) {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	s := &Server{
		http: &http.Server{Handler: Handler(cfg), ReadHeaderTimeout: headerTimeout},
		addr: listener.Addr(), done: make(chan struct{}),
	}
	go func() {
		defer close(s.done)
		_ = s.http.Serve(listener) // ends with Close only
	}()
	return s, nil
}

// Addr is the address in use.
func (s *Server) Addr() string { return s.addr.String() }

// Close ends the serving at once.
func (s *Server) Close() error {
	err := s.http.Close()
	<-s.done
	return err
}
