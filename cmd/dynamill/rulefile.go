package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"

	"github.com/dynamill/dynamill/projections"
	"github.com/dynamill/dynamill/rules"
)

const (
	ruleFileDefault = "dynamill.yaml"
	standardInput   = "-" // as a file's name
	byteOrderMark   = 3   // bytes that may stand before a rule file's text
)

// load reads the rule file.
func (o *options) load() (*rules.Set, error) {
	src, err := o.readRules("--rules", o.rules)
	if err != nil {
		return nil, err
	}
	return rules.Load(shownFile(o.rules), src, projections.Kinds)
}

// loadFormer reads a rule file that was in force before.
func (o *options) loadFormer(flag, name string) (*rules.Set, error) {
	src, err := o.readRules(flag, name)
	if err != nil {
		return nil, err
	}
	return rules.LoadFormer(shownFile(name), src, projections.Kinds)
}

// readRules reads a rule file that a flag names, and a little more than a rule file
// may have, so that a longer one is refused. A missing file is invalid input.
func (o *options) readRules(flag, name string) ([]byte, error) {
	in := o.stdin
	if name == standardInput {
		if err := o.claimStdin(flag + " " + name); err != nil {
			return nil, err
		}
	} else {
		file, err := os.Open(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, invalid("there is no rule file %q: give it with %s FILE, or run dynamill where it is", name, flag)
		case err != nil:
			return nil, invalid("the rule file cannot be read: %w", err)
		}
		defer file.Close() //nolint:errcheck // it was only read
		in = file
	}
	src, err := io.ReadAll(io.LimitReader(in, rules.FileBytesMax+byteOrderMark+1))
	if err != nil {
		return nil, invalid("the rule file cannot be read: %w", err)
	}
	return src, nil
}

// claimStdin refuses a second reader of standard input: it would find nothing.
func (o *options) claimStdin(reader string) error {
	if o.stdinReader != "" {
		return invalid("%s and %s both read standard input: give one of them a file", o.stdinReader, reader)
	}
	o.stdinReader = reader
	return nil
}

// shownFile names a file in messages.
func shownFile(name string) string {
	if name == standardInput {
		return "standard input"
	}
	return name
}

// logWarnings logs the first warning of the rule file in one line, which says where the others are.
func logWarnings(logger *slog.Logger, set *rules.Set) {
	all := set.Warnings()
	if len(all) == 0 {
		return
	}
	w := all[0]
	attributes := []any{"code", w.Code, "place", fmt.Sprintf("%s:%d:%d", w.File, w.Line, w.Column), "hint", w.Hint}
	if more := len(all) - 1; more > 0 {
		attributes = append(attributes, "more", fmt.Sprintf("%d, see `dynamill check`", more))
	}
	logger.Warn(w.Message, attributes...)
}
