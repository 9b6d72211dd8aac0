package main

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/dynamill/dynamill/rules"
)

const (
	ruleFileDefault = "dynamill.yaml"
	standardInput   = "-" // as a file's name
	byteOrderMark   = 3   // bytes that may stand before a rule file's text
)

// load reads the rule file.
func (s *settings) load() (*rules.Set, error) {
	src, err := s.readRules("--rules", s.rules)
	if err != nil {
		return nil, err
	}
	return rules.Load(shownFile(s.rules), src)
}

// loadFormer reads a rule file that was in force before.
func (s *settings) loadFormer(flag, name string) (*rules.Set, error) {
	src, err := s.readRules(flag, name)
	if err != nil {
		return nil, err
	}
	return rules.LoadFormer(shownFile(name), src)
}

// readRules reads a rule file that a flag names, and a little more than a rule file
// may have, so that a longer one is refused. A missing file is invalid input.
func (s *settings) readRules(flag, name string) ([]byte, error) {
	in := s.stdin
	if name == standardInput {
		if err := s.claimStdin(flag + " " + name); err != nil {
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
func (s *settings) claimStdin(reader string) error {
	if s.stdinReader != "" {
		return invalid("%s and %s both read standard input: give one of them a file", s.stdinReader, reader)
	}
	s.stdinReader = reader
	return nil
}

// shownFile names a file in messages.
func shownFile(name string) string {
	if name == standardInput {
		return "standard input"
	}
	return name
}
