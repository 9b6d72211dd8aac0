package main

import (
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
func (s *settings) checkNames(table string, set *rules.Set) error {
	from := "--table"
	switch table {
	case os.Getenv(tableVariable):
		from = tableVariable
	case set.Table.Name:
		from = "table.name in " + shownFile(s.rules)
	}
	if err := checkName(from, table); err != nil {
		return err
	}
	leases := s.leaseTableName(table)
	switch {
	case s.stateTable == "" && len(leases) > tableNameMax:
		return invalid("the table's name is too long for those of a state table and a lease table to be made of it: give --state-table NAME")
	case s.stateTable == table+stateSuffix+leasesSuffix:
		return invalid("--state-table %s is the table of checkpoints: give another name, or none", s.stateTable)
	case leases == table:
		return invalid("--state-table %s makes %s itself the table of checkpoints: give another name, or none", s.stateTable, table)
	case len(leases) > tableNameMax:
		return invalid("--state-table has %d characters: give a name of at most %d, because the table of checkpoints is named after it",
			len(s.stateTable), tableNameMax-len(leasesSuffix))
	}
	return checkName("--state-table", s.stateTableName(table))
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
