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
	"github.com/dynamill/dynamill/rules"
)

// TableVariable is the environment variable of --table.
const TableVariable = "DYNAMILL_TABLE"

const (
	StateSuffix  = following.StateSuffix // names the state table beside the user's table
	LeasesSuffix = following.LeaseSuffix // names the table of leases and checkpoints beside the state table
)

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
	return "", ending.Invalid("no table is named: give --table NAME, `name:` under `table:` in %s, or set %s", ShownFile(s.Rules), TableVariable)
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

// LoadForInspection names the table that a command looks at which needs no rules. The rules
// are those of the file if there is one that can be read; without it a table must be
// named otherwise.
func (s *Settings) LoadForInspection(rulesGiven bool) (*rules.Set, string, error) {
	set, err := s.Load()
	if err == nil {
		table, err := s.TableName(set)
		return set, table, err
	}
	_, statErr := os.Stat(s.Rules)
	missing := errors.Is(statErr, fs.ErrNotExist)
	switch {
	case rulesGiven:
		return nil, "", err
	case s.Table != "":
		set = &rules.Set{}
		return set, s.Table, s.checkNames(s.Table, set)
	case missing:
		return nil, "", ending.Invalid("no table is named: give --table NAME, set %s, or run dynamill where the rule file is", TableVariable)
	}
	return nil, "", err
}

func (s *Settings) StateTableName(table string) string {
	return cmp.Or(s.StateTable, table+StateSuffix)
}

// LeaseTableName names the table of leases and checkpoints. It follows the state
// table: a checkpoint says what one state table knows, and another must not skip it.
func (s *Settings) LeaseTableName(table string) string {
	return s.StateTableName(table) + LeasesSuffix
}

// CheckRates refuses what no --rate and no --read-rate can be.
func CheckRates(writeMax int, readMax float64) error {
	switch {
	case writeMax < 0:
		return ending.Invalid("--rate %d is negative: give write units per second", writeMax)
	case !(readMax >= 0): // or no number
		return ending.Invalid("--read-rate %g is no rate: give read units per second", readMax)
	}
	return nil
}
