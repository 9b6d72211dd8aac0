package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"strings"

	"github.com/spf13/pflag"

	"github.com/dynamill/dynamill/internal/printable"
	"github.com/dynamill/dynamill/rules"
)

// tableVariable is the environment variable of --table.
const tableVariable = "DYNAMILL_TABLE"

// options are the flags that mean the same in every command.
type options struct {
	rules, table, stateTable, endpoint, region, logLevel, color string
	json                                                        bool

	stdin       io.Reader
	stdinReader string // what reads standard input; "" if nothing does yet
}

func (o *options) addTo(flags *pflag.FlagSet) {
	flags.String(configurationFlag, "", "a YAML `file` of flags that neither the command line nor the environment gives\n(default: $"+variableOf(configurationFlag)+")")
	flags.StringVar(&o.rules, "rules", ruleFileDefault, "the rule `file`; - reads standard input")
	flags.StringVar(&o.table, "table", "", "the table's `name` (default: table.name in the rule file)")
	flags.StringVar(&o.stateTable, "state-table", "", "the `name` of the table for dynamill's own state (default: TABLE-dynamill); the lease table\nhas this name with -leases behind it")
	flags.StringVar(&o.endpoint, "endpoint", "", "`URL` of DynamoDB and its streams, instead of AWS's own; on a loopback\n"+
		"address local dummy credentials and region us-east-1 stand in where none are set,\nso that DynamoDB Local just works")
	flags.StringVar(&o.region, "region", "", "the AWS `region` (default: that of the AWS configuration)")
	flags.BoolVar(&o.json, "json", false, "write results and logs as JSON")
	flags.StringVar(&o.logLevel, "log-level", "info", "the least `level` that is logged: debug, info, warn or error")
	flags.StringVar(&o.color, "color", colorAuto, "`when` to colour: auto (on a terminal, unless NO_COLOR is set or TERM is dumb), always or never;\nstandard output and standard error each for itself")
}

// check refuses values that no command could use.
func (o *options) check() error {
	if _, err := o.level(); err != nil {
		return fmt.Errorf("--log-level %q is not one of debug, info, warn, error", o.logLevel)
	}
	if o.color != colorAuto && o.color != colorAlways && o.color != colorNever {
		return fmt.Errorf("--color %q is not one of auto, always, never", o.color)
	}
	if o.endpoint == "" {
		return nil
	}
	u, err := url.Parse(o.endpoint)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return fmt.Errorf("--endpoint %q is not a URL like http://localhost:8000", o.endpoint)
	}
	return nil
}

func (o *options) level() (slog.Level, error) {
	var level slog.Level
	if o.logLevel != strings.TrimSpace(o.logLevel) || strings.ContainsAny(o.logLevel, "+-") {
		return level, errors.New("want a plain level")
	}
	return level, level.UnmarshalText([]byte(o.logLevel))
}

// onLoopback reports whether the endpoint is on this very machine.
func (o *options) onLoopback() bool {
	u, err := url.Parse(o.endpoint)
	if err != nil {
		return false
	}
	host := u.Hostname()
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || ip != nil && (ip.IsLoopback() || ip.IsUnspecified())
}

// tableName returns the table to work on: --table, else the rule file's.
func (o *options) tableName(set *rules.Set) (string, error) {
	if name := cmp.Or(o.table, set.Table.Name); name != "" {
		return name, o.checkNames(name, set)
	}
	return "", invalid("no table is named: give --table NAME, `name:` under `table:` in %s, or set %s", shownFile(o.rules), tableVariable)
}

// loadForTable reads the rule file and names the table to work on.
func (o *options) loadForTable() (*rules.Set, string, error) {
	set, err := o.load()
	if err != nil {
		return nil, "", err
	}
	table, err := o.tableName(set)
	return set, table, err
}

func (o *options) stateTableName(table string) string {
	return cmp.Or(o.stateTable, table+stateSuffix)
}

// leaseTableName names the table of leases and checkpoints. It follows the state
// table: a checkpoint says what one state table knows, and another must not skip it.
func (o *options) leaseTableName(table string) string {
	return o.stateTableName(table) + leasesSuffix
}

// printJSON writes a result as indented JSON.
func (a *app) printJSON(result any) error {
	encoder := json.NewEncoder(printable.NewJSONWriter(a.stdout))
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(result); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	return nil
}

// printJSONLine writes a result as one line of JSON.
func (a *app) printJSONLine(result any) error {
	line, err := json.Marshal(result)
	if err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	return writeText(printable.NewJSONWriter(a.stdout), string(line)+"\n")
}
