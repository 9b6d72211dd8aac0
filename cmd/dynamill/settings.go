package main

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

	"github.com/dynamill/dynamill/internal/following"
	"github.com/dynamill/dynamill/rules"
)

// tableVariable is the environment variable of --table.
const tableVariable = "DYNAMILL_TABLE"

const (
	stateSuffix  = following.StateSuffix // names the state table beside the user's table
	leasesSuffix = following.LeaseSuffix // names the table of leases and checkpoints beside the state table
)

// settings are the flags that mean the same in every command: where the rules and the tables are.
type settings struct {
	rules, table, stateTable, endpoint, region string

	stdin       io.Reader
	stdinReader string // what reads standard input; "" if nothing does yet
}

// check refuses values that no command could use.
func (s *settings) check() error {
	u, err := url.Parse(s.endpoint)
	if s.endpoint != "" && (err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "") {
		return fmt.Errorf("--endpoint %q is not a URL like http://localhost:8000", s.endpoint)
	}
	return nil
}

// onLoopback reports whether the endpoint is on this very machine.
func (s *settings) onLoopback() bool {
	u, err := url.Parse(s.endpoint)
	if err != nil {
		return false
	}
	host := u.Hostname()
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || ip != nil && (ip.IsLoopback() || ip.IsUnspecified())
}

// tableName returns the table to work on: --table, else the rule file's.
func (s *settings) tableName(set *rules.Set) (string, error) {
	if name := cmp.Or(s.table, set.Table.Name); name != "" {
		return name, s.checkNames(name, set)
	}
	return "", invalid("no table is named: give --table NAME, `name:` under `table:` in %s, or set %s", shownFile(s.rules), tableVariable)
}

// loadForTable reads the rule file and names the table to work on.
func (s *settings) loadForTable() (*rules.Set, string, error) {
	set, err := s.load()
	if err != nil {
		return nil, "", err
	}
	table, err := s.tableName(set)
	return set, table, err
}

// loadForInspection names the table that a command looks at which needs no rules. The rules
// are those of the file if there is one that can be read; without it a table must be
// named otherwise.
func (s *settings) loadForInspection(rulesGiven bool) (*rules.Set, string, error) {
	set, err := s.load()
	if err == nil {
		table, err := s.tableName(set)
		return set, table, err
	}
	_, statErr := os.Stat(s.rules)
	missing := errors.Is(statErr, fs.ErrNotExist)
	switch {
	case rulesGiven:
		return nil, "", err
	case s.table != "":
		set = &rules.Set{}
		return set, s.table, s.checkNames(s.table, set)
	case missing:
		return nil, "", invalid("no table is named: give --table NAME, set %s, or run dynamill where the rule file is", tableVariable)
	}
	return nil, "", err
}

func (s *settings) stateTableName(table string) string {
	return cmp.Or(s.stateTable, table+stateSuffix)
}

// leaseTableName names the table of leases and checkpoints. It follows the state
// table: a checkpoint says what one state table knows, and another must not skip it.
func (s *settings) leaseTableName(table string) string {
	return s.stateTableName(table) + leasesSuffix
}

// checkRates refuses what no --rate and no --read-rate can be.
func checkRates(writeMax int, readMax float64) error {
	switch {
	case writeMax < 0:
		return invalid("--rate %d is negative: give write units per second", writeMax)
	case !(readMax >= 0): // or no number
		return invalid("--read-rate %g is no rate: give read units per second", readMax)
	}
	return nil
}
