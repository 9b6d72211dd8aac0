package settings

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/rules"
)

const (
	RuleFileDefault = "dynamill.yaml"
	StandardInput   = "-" // as a file's name
	byteOrderMark   = 3   // bytes that may stand before a rule file's text
)

// Load reads the rule file.
func (s *Settings) Load() (*rules.Set, error) {
	src, err := s.readRules("--rules", s.Rules)
	if err != nil {
		return nil, err
	}
	return rules.Load(ShownFile(s.Rules), src)
}

// LoadFormer reads a rule file that was in force before.
func (s *Settings) LoadFormer(flag, name string) (*rules.Set, error) {
	src, err := s.readRules(flag, name)
	if err != nil {
		return nil, err
	}
	return rules.LoadFormer(ShownFile(name), src)
}

// readRules reads a rule file that a flag names, and a little more than a rule file
// may have, so that a longer one is refused. A missing file is invalid input.
func (s *Settings) readRules(flag, name string) ([]byte, error) {
	in := s.Stdin
	if name == StandardInput {
		if err := s.ClaimStdin(flag + " " + name); err != nil {
			return nil, err
		}
	} else {
		file, err := os.Open(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, ending.Invalid("there is no rule file %q: give it with %s FILE, or run dynamill where it is", name, flag)
		case err != nil:
			return nil, ending.Invalid("the rule file cannot be read: %w", err)
		}
		defer file.Close() //nolint:errcheck // it was only read
		in = file
	}
	src, err := io.ReadAll(io.LimitReader(in, rules.FileBytesMax+byteOrderMark+1))
	if err != nil {
		return nil, ending.Invalid("the rule file cannot be read: %w", err)
	}
	return src, nil
}

// ClaimStdin refuses a second reader of standard input: it would find nothing.
func (s *Settings) ClaimStdin(reader string) error {
	if s.stdinReader != "" {
		return ending.Invalid("%s and %s both read standard input: give one of them a file", s.stdinReader, reader)
	}
	s.stdinReader = reader
	return nil
}

// ShownFile names a file in messages.
func ShownFile(name string) string {
	if name == StandardInput {
		return "standard input"
	}
	return name
}
