package main

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/progress"
	"github.com/dynamill/dynamill/projections"
	"github.com/dynamill/dynamill/rules"
)

// session is what a command that works on a table has at hand.
type session struct {
	*output
	settings *settings
	set      *rules.Set // without rules where the command needs none and there is no rule file
	table    string
	env      *environment     // nil before connect
	screen   *progress.Screen // on standard error
	logger   *slog.Logger
}

// newSession reads the rule file. Nothing is asked of AWS.
func newSession(out *output, s *settings) (*session, error) {
	set, table, err := s.loadForTable()
	return sessionOf(out, s, set, table), err
}

// newInspection is newSession for a command that needs no rules.
func newInspection(out *output, s *settings, rulesGiven bool) (*session, error) {
	set, table, err := s.loadForInspection(rulesGiven)
	return sessionOf(out, s, set, table), err
}

func sessionOf(out *output, s *settings, set *rules.Set, table string) *session {
	screen := progress.NewScreen(out.stderr)
	return &session{output: out, settings: s, set: set, table: table, screen: screen, logger: out.logger(screen)}
}

// connect makes the clients of AWS. Nothing is sent to DynamoDB yet.
func (s *session) connect(ctx context.Context) (err error) {
	s.env, err = connect(ctx, s.settings, s.table, s.logger)
	return err
}

// describe connects, and returns the description of the table, which must be there and in use.
func (s *session) describe(ctx context.Context) (*types.TableDescription, error) {
	if err := s.connect(ctx); err != nil {
		return nil, err
	}
	return s.env.describe(ctx)
}

// engineConfig is what every engine on the table is opened with.
func (s *session) engineConfig() projections.Config {
	return projections.Config{Client: s.env.tables, Table: s.table, StateTable: s.env.stateTable, Rules: s.set, Logger: s.logger}
}

// auditConfig is what every audit of the table is opened with. Without names it judges all rules.
func (s *session) auditConfig(names []string) projections.AuditConfig {
	return projections.AuditConfig{
		Client: s.env.tables, Table: s.table, StateTable: s.env.stateTable, Rules: s.set, Names: names, Logger: s.logger,
	}
}

// begin is newSession for work that takes long, on the named rules or on all. Signals end what is done
// with the returned context until end is called.
func begin(ctx context.Context, out *output, s *settings, names []string) (working context.Context, w *session, end func(), err error) {
	if w, err = newSession(out, s); err != nil {
		return nil, nil, nil, err
	}
	w.logWarnings()
	if err := checkRules(w.set, names); err != nil {
		return nil, nil, nil, err
	}
	working, end = stopOnSignals(ctx, func(text string) { fmt.Fprintln(w.screen, text) })
	return working, w, end, nil
}

// checkRules refuses names of rules that there are not.
func checkRules(set *rules.Set, names []string) error {
	known := ruleNames(set)
	for _, name := range names {
		if !slices.Contains(known, name) {
			return invalid("there is no rule %q: the rules are %s", name, strings.Join(known, ", "))
		}
	}
	return nil
}

func ruleNames(set *rules.Set) []string {
	names := make([]string, len(set.Rules))
	for i, rule := range set.Rules {
		names[i] = rule.Name
	}
	return names
}

// logWarnings logs the first warning of the rule file in one line, which says where the others are.
func (s *session) logWarnings() {
	all := s.set.Warnings()
	if len(all) == 0 {
		return
	}
	w := all[0]
	attributes := []any{"code", w.Code, "place", fmt.Sprintf("%s:%d:%d", w.File, w.Line, w.Column), "hint", w.Hint}
	if more := len(all) - 1; more > 0 {
		attributes = append(attributes, "more", fmt.Sprintf("%d, see `dynamill check`", more))
	}
	s.logger.Warn(w.Message, attributes...)
}
