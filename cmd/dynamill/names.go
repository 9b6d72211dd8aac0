package main

import (
	"errors"
	"io/fs"
	"os"
	"regexp"
	"strings"

	"github.com/dynamill/dynamill/rules"
)

// tableNameForm and tableNameMax are those of DynamoDB's table names (DynamoDB developer guide,
// "Supported data types and naming rules").
const tableNameMax = 255

var tableNameForm = regexp.MustCompile(`^[a-zA-Z0-9_.-]{3,255}$`)

// checkNames refuses what can name neither table nor state table, before AWS is asked.
func (o *options) checkNames(table string, set *rules.Set) error {
	from := "--table"
	switch table {
	case os.Getenv(tableVariable):
		from = tableVariable
	case set.Table.Name:
		from = "table.name in " + shownFile(o.rules)
	}
	if err := checkName(from, table); err != nil {
		return err
	}
	leases := o.leaseTableName(table)
	switch {
	case o.stateTable == "" && len(leases) > tableNameMax:
		return invalid("the table's name is too long for those of a state table and a lease table to be made of it: give --state-table NAME")
	case o.stateTable == table+stateSuffix+leasesSuffix:
		return invalid("--state-table %s is the table of checkpoints: give another name, or none", o.stateTable)
	case leases == table:
		return invalid("--state-table %s makes %s itself the table of checkpoints: give another name, or none", o.stateTable, table)
	case len(leases) > tableNameMax:
		return invalid("--state-table has %d characters: give a name of at most %d, because the table of checkpoints is named after it",
			len(o.stateTable), tableNameMax-len(leasesSuffix))
	}
	return checkName("--state-table", o.stateTableName(table))
}

func checkName(from, name string) error {
	switch {
	case tableNameForm.MatchString(name):
		return nil
	case strings.HasPrefix(name, "arn:"):
		return invalid("%s is an ARN, %s: give the table's name alone, and its region with --region", from, name)
	}
	return invalid("%s %q is no table's name: that has 3 to 255 letters, digits, dots, hyphens and underscores", from, name)
}

// inspectedTable names the table that a command looks at which needs no rules. The rules
// are those of the file if there is one that can be read; without it a table must be
// named otherwise.
func (o *options) inspectedTable(rulesGiven bool) (string, *rules.Set, error) {
	set, err := o.load()
	if err == nil {
		table, err := o.tableName(set)
		return table, set, err
	}
	table := o.table
	_, statErr := os.Stat(o.rules)
	missing := errors.Is(statErr, fs.ErrNotExist)
	switch {
	case rulesGiven:
		return "", nil, err
	case table != "":
		set = &rules.Set{}
		return table, set, o.checkNames(table, set)
	case missing:
		return "", nil, invalid("no table is named: give --table NAME, set %s, or run dynamill where the rule file is", tableVariable)
	}
	return "", nil, err
}

// checkOwner refuses a state table that is another table's than the one that was named.
func (env *environment) checkOwner(owner string) error {
	if owner == env.table {
		return nil
	}
	return unsuited("state table %s is that of table %q, not of %q: check --table and --state-table", env.stateTable, owner, env.table)
}
