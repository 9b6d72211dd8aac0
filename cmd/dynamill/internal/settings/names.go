package settings

import (
	"os"
	"regexp"
	"strings"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/rules"
)

// tableNameForm and tableNameMax are those of DynamoDB's table names (DynamoDB developer guide,
// "Supported data types and naming rules").
const tableNameMax = 255

var tableNameForm = regexp.MustCompile(`^[a-zA-Z0-9_.-]{3,255}$`)

// checkNames refuses what can name neither table nor state table, before AWS is asked.
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
	case s.StateTable == "" && len(leases) > tableNameMax:
		return ending.Invalid("the table's name is too long for those of a state table and a lease table to be made of it: give --state-table NAME")
	case s.StateTable == table+StateSuffix+LeasesSuffix:
		return ending.Invalid("--state-table %s is the table of checkpoints: give another name, or none", s.StateTable)
	case leases == table:
		return ending.Invalid("--state-table %s makes %s itself the table of checkpoints: give another name, or none", s.StateTable, table)
	case len(leases) > tableNameMax:
		return ending.Invalid("--state-table has %d characters: give a name of at most %d, because the table of checkpoints is named after it",
			len(s.StateTable), tableNameMax-len(LeasesSuffix))
	}
	return checkName("--state-table", s.StateTableName(table))
}

func checkName(from, name string) error {
	switch {
	case tableNameForm.MatchString(name):
		return nil
	case strings.HasPrefix(name, "arn:"):
		return ending.Invalid("%s is an ARN, %s: give the table's name alone, and its region with --region", from, name)
	}
	return ending.Invalid("%s %q is no table's name: that has 3 to 255 letters, digits, dots, hyphens and underscores", from, name)
}
