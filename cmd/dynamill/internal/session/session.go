// Package session opens table, rules, clients and log for a command in one way, and ends work at a signal. It imports output,
// settings, environment and progress.
package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/environment"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/output"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/progress"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/settings"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/projections/audits"
	"github.com/dynamill/dynamill/internal/rules"
)

// Session is what a command that works on a table has at hand.
type Session struct {
	*output.Output
	Settings *settings.Settings
	Set      *rules.Set // without rules where the command needs none and there is no rule file
	Table    string
	Env      *environment.Environment // nil before Connect
	Screen   *progress.Screen         // on standard error
	Logger   *slog.Logger
}

// New reads the rule file. Nothing is asked of AWS.
func New(out *output.Output, s *settings.Settings) (*Session, error) {
	set, table, err := s.LoadForTable()
	return Of(out, s, set, table), err
}

// Inspect is New for a command that needs no rules.
func Inspect(out *output.Output, s *settings.Settings, rulesGiven bool) (*Session, error) {
	set, table, err := s.LoadForInspection(rulesGiven)
	return Of(out, s, set, table), err
}

// Of is a session on a table whose rules are read already.
func Of(out *output.Output, s *settings.Settings, set *rules.Set, table string) *Session {
	screen := progress.NewScreen(out.Stderr)
	return &Session{Output: out, Settings: s, Set: set, Table: table, Screen: screen, Logger: out.Logger(screen)}
}

// Connect makes the clients of AWS. Nothing is sent to DynamoDB yet.
func (s *Session) Connect(ctx context.Context) (err error) {
	s.Env, err = environment.Connect(ctx, s.Settings, s.Table, s.Logger)
	return err
}

// Describe connects, and returns the description of the table, which must be there and in use.
func (s *Session) Describe(ctx context.Context) (*types.TableDescription, error) {
	if err := s.Connect(ctx); err != nil {
		return nil, err
	}
	return s.Env.Describe(ctx)
}

// EngineConfig is what every engine on the table is opened with. budget is of write units per second; 0 for no bound.
func (s *Session) EngineConfig(budget int) projections.Config {
	return projections.Config{
		Client: s.Env.Tables, Table: s.Table, StateTable: s.Env.StateTable, Rules: s.Set, Logger: s.Logger, Budget: budget,
	}
}

// AuditConfig is what every audit of the table is opened with. Without names it judges all rules.
func (s *Session) AuditConfig(names []string) audits.Config {
	return audits.Config{
		Client: s.Env.Tables, Table: s.Table, StateTable: s.Env.StateTable, Rules: s.Set, Names: names,
	}
}

// Begin is New for work that takes long, on the named rules or on all. Signals end what is done with the returned context
// until end is called.
func Begin(ctx context.Context, out *output.Output, s *settings.Settings, names []string) (working context.Context, w *Session, end func(),
	err error) {
	if w, err = New(out, s); err != nil {
		return nil, nil, nil, err
	}
	w.LogWarnings()
	known := RuleNames(w.Set)
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, nil, nil, ending.Invalid("there is no rule %q: the rules are %s", name, strings.Join(known, ", "))
		}
	}
	working, end = StopOnSignals(ctx, func(text string) { fmt.Fprintln(w.Screen, text) })
	return working, w, end, nil
}

// RuleNames are the names of a rule file's rules.
func RuleNames(set *rules.Set) []string {
	names := make([]string, len(set.Rules))
	for i, rule := range set.Rules {
		names[i] = rule.Name
	}
	return names
}

// LogWarnings logs the first warning of the rule file in one line, which says where the others are.
func (s *Session) LogWarnings() {
	all := s.Set.Warnings()
	if len(all) == 0 {
		return
	}
	w := all[0]
	attributes := []any{"code", w.Code, "place", fmt.Sprintf("%s:%d:%d", w.File, w.Line, w.Column), "hint", w.Hint}
	if more := len(all) - 1; more > 0 {
		attributes = append(attributes, "more", fmt.Sprintf("%d, see `dynamill check`", more))
	}
	s.Logger.Warn(w.Message, attributes...)
}

// ErrStopped is the cause of a context that a signal ended.
var ErrStopped = errors.New("stopped by a signal")

// StopOnSignals ends the context at the first SIGINT or SIGTERM and the process at the second.
func StopOnSignals(ctx context.Context, say func(string)) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	released := make(chan struct{})
	go func() {
		select {
		case <-signals:
		case <-released:
			return
		}
		say("stopping: finishing what is in flight; a second signal aborts")
		cancel(ErrStopped)
		select {
		case <-signals:
			say("aborted: the next run takes up what was in flight")
			os.Exit(ending.ExitFailed)
		case <-released:
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(released)
		cancel(nil)
	}
}
