package registry

import (
	"errors"
	"fmt"

	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// ErrUnregistered is wrapped by what Unregistered returns.
var ErrUnregistered = errors.New("nothing is registered")

// Unregistered says that there is no state table, by the error that tells, or that it is empty.
func Unregistered(stateTable string, missing error) error {
	problem := fmt.Sprintf("state table %s is empty", stateTable)
	if missing != nil {
		problem = fmt.Sprintf("there is no state table %s", stateTable)
	}
	return &table.SetupError{Problem: problem, Err: errors.Join(ErrUnregistered, missing),
		Remedy: "nothing has run on this table yet; start `dynamill run`, or check --table, --state-table and --region"}
}
