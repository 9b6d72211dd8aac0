package main

import (
	"cmp"

	"github.com/spf13/pflag"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/commandline"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/output"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/settings"
)

// addOptions adds the flags that mean the same in every command.
func (a *app) addOptions(flags *pflag.FlagSet) {
	s, o := &a.settings, &a.out
	flags.String(commandline.ConfigurationFlag, "", "a YAML `file` of flags that neither the command line nor the environment gives\n(default: $"+commandline.VariableOf(commandline.ConfigurationFlag)+")")
	flags.StringVar(&s.Rules, "rules", settings.RuleFileDefault, "the rule `file`; - reads standard input")
	flags.StringVar(&s.Table, "table", "", "the table's `name` (default: table.name in the rule file)")
	flags.StringVar(&s.StateTable, "state-table", "", "the `name` of the table for dynamill's own state (default: TABLE-dynamill); the lease table\nhas this name with -leases behind it")
	flags.StringVar(&s.Endpoint, "endpoint", "", "`URL` of DynamoDB and its streams, instead of AWS's own; on a loopback\n"+
		"address local dummy credentials and region us-east-1 stand in where none are set,\nso that DynamoDB Local just works")
	flags.StringVar(&s.Region, "region", "", "the AWS `region` (default: that of the AWS configuration)")
	flags.BoolVar(&o.JSON, "json", false, "write results and logs as JSON")
	flags.StringVar(&o.LogLevel, "log-level", "info", "the least `level` that is logged: debug, info, warn or error")
	flags.StringVar(&o.Color, "color", output.ColorAuto, "`when` to colour: auto (on a terminal, unless NO_COLOR is set or TERM is dumb), always or never;\nstandard output and standard error each for itself")
}

// checkOptions refuses values that no command could use.
func (a *app) checkOptions() error { return cmp.Or(a.out.Check(), a.settings.Check()) }
