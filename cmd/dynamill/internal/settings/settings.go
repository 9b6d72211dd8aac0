// Package settings holds the flags that mean the same in every command: it reads the rule file, and names the table and
// dynamill's own tables. It imports ending, rules and internal/following.
package settings

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/internal/following"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/rules"
)

// TableVariable is the environment variable of --table.
const TableVariable = "DYNAMILL_TABLE"

// Settings are the flags that mean the same in every command: where the rules and the tables are.
type Settings struct {
	Rules, Table, StateTable, Endpoint, Region string

	Stdin       io.Reader
	stdinReader string // what reads standard input; "" if nothing does yet
}

// Check refuses values that no command could use.
func (s *Settings) Check() error {
	u, err := url.Parse(s.Endpoint)
	if s.Endpoint != "" && (err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "") {
		return fmt.Errorf("--endpoint %q is not a URL like http://localhost:8000", s.Endpoint)
	}
	return nil
}

// OnLoopback reports whether the endpoint is on this very machine.
func (s *Settings) OnLoopback() bool {
	u, err := url.Parse(s.Endpoint)
	if err != nil {
		return false
	}
	host := u.Hostname()
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || ip != nil && (ip.IsLoopback() || ip.IsUnspecified())
}

// TableName returns the table to work on: --table, else the rule file's.
func (s *Settings) TableName(set *rules.Set) (string, error) {
	if name := cmp.Or(s.Table, set.Table.Name); name != "" {
		return name, s.checkNames(name, set)
	}
	return "", ending.Invalid("no table is named: give --table NAME, `name:` under `table:` in %s, or set %s", ShownFile(s.Rules),
		TableVariable)
}

// LoadForTable reads the rule file and names the table to work on.
func (s *Settings) LoadForTable() (*rules.Set, string, error) {
	set, err := s.Load()
	if err != nil {
		return nil, "", err
	}
	table, err := s.TableName(set)
	return set, table, err
}

// LoadForInspection is LoadForTable for a command that needs no rules. If no rule file can be read, the set is empty, and the
// table must be named otherwise.
func (s *Settings) LoadForInspection(rulesGiven bool) (*rules.Set, string, error) {
	set, table, err := s.LoadForTable()
	if set != nil || rulesGiven {
		return set, table, err
	}
	if s.Table != "" {
		set = &rules.Set{}
		return set, s.Table, s.checkNames(s.Table, set)
	}
	if _, missing := os.Stat(s.Rules); errors.Is(missing, fs.ErrNotExist) {
		err = ending.Invalid("no table is named: give --table NAME, set %s, or run dynamill where the rule file is", TableVariable)
	}
	return nil, "", err
}

// StateTableName names the state table of a table.
func (s *Settings) StateTableName(table string) string {
	return cmp.Or(s.StateTable, table+following.StateSuffix)
}

// LeaseTableName names the table of leases and checkpoints. A checkpoint says what one state table knows, and another must
// not skip it: so it follows the state table.
func (s *Settings) LeaseTableName(table string) string {
	return s.StateTableName(table) + following.LeaseSuffix
}

// CheckRates refuses a negative --budget, and a --read-rate that is negative or not a number.
func CheckRates(budget int, readMax float64) error {
	switch {
	case budget < 0:
		return ending.Invalid("--budget %d is negative: give write units per second, or 0 for no bound", budget)
	case !(readMax >= 0): // or no number
		return ending.Invalid("--read-rate %g is no rate: give read units per second", readMax)
	}
	return nil
}

// checkNames refuses names of the table and the state table that are invalid or collide, before any request.
func (s *Settings) checkNames(table string, set *rules.Set) error {
	from := "--table"
	switch table {
	case os.Getenv(TableVariable):
		from = TableVariable
	case set.Table.Name:
		from = "table.name in " + ShownFile(s.Rules)
	}
	if err := checkName(from, table); err != nil {
		return err
	}
	leases := s.LeaseTableName(table)
	switch {
	case s.StateTable == "" && len(leases) > rules.TableNameMax:
		return ending.Invalid("the table's name is too long to derive the names of the state table and the lease table from it: give " +
			"--state-table NAME")
	case s.StateTable == table:
		return ending.Invalid("--state-table %s cannot be the table itself: give another name, or none", s.StateTable)
	case s.StateTable == table+following.StateSuffix+following.LeaseSuffix:
		return ending.Invalid("--state-table %s is the table of checkpoints: give another name, or none", s.StateTable)
	case leases == table:
		return ending.Invalid("--state-table %s makes %s itself the table of checkpoints: give another name, or none", s.StateTable, table)
	case len(leases) > rules.TableNameMax:
		return ending.Invalid("--state-table has %d characters: give a name of at most %d, because the table of checkpoints is named after it",
			len(s.StateTable), rules.TableNameMax-len(following.LeaseSuffix))
	}
	return checkName("--state-table", s.StateTableName(table))
}

func checkName(from, name string) error {
	switch {
	case rules.IsTableName(name):
		return nil
	case strings.HasPrefix(name, "arn:"):
		return ending.Invalid("%s is an ARN, %s: give the table's name alone, and its region with --region", from, name)
	}
	return ending.Invalid("%s %q is no table's name: that has 3 to 255 letters, digits, dots, hyphens and underscores", from, name)
}

// How a rule file is named where no name is given, and where it is standard input.
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
	return rules.Load(ShownFile(s.Rules), src, projections.Kinds)
}

// LoadFormer reads a rule file that was in force before.
func (s *Settings) LoadFormer(flag, name string) (*rules.Set, error) {
	src, err := s.readRules(flag, name)
	if err != nil {
		return nil, err
	}
	return rules.LoadFormer(ShownFile(name), src, projections.Kinds)
}

// readRules reads a rule file that a flag names, and a little more than it may have, so that a longer one is refused.
func (s *Settings) readRules(flag, name string) ([]byte, error) {
	src, err := s.Read(flag, "the rule file", name, rules.FileBytesMax+byteOrderMark+1)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ending.Invalid("there is no rule file %q: give it with %s FILE, or run dynamill where it is", name, flag)
	}
	return src, err
}

// Read reads a file, or standard input, up to so many bytes. The flag names the reader of standard input.
func (s *Settings) Read(flag, what, name string, most int64) ([]byte, error) {
	in := s.Stdin
	if name == StandardInput {
		if err := s.ClaimStdin(flag + " " + name); err != nil {
			return nil, err
		}
	} else {
		file, err := os.Open(name)
		if err != nil {
			return nil, ending.Invalid("%s cannot be read: %w", what, err)
		}
		defer file.Close() //nolint:errcheck // it was only read
		in = file
	}
	src, err := io.ReadAll(io.LimitReader(in, most))
	if err != nil {
		return nil, ending.Invalid("%s cannot be read: %w", what, err)
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
