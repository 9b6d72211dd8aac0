package dynamill

import (
	"errors"
	"strings"

	"github.com/dynamill/dynamill/projections"
)

// asFields says for a program what the engine's remedies name by the command line's flags.
var asFields = strings.NewReplacer(
	"--table", "Config.Table", "--state-table", "Config.StateTable", "--region", "Config.AWS.Region", "--endpoint", "Config.AWS.BaseEndpoint",
)

// inProgram makes the remedy of a *projections.SetupError one that a program can follow.
func inProgram(err error) error {
	var setup *projections.SetupError
	if !errors.As(err, &setup) {
		return err
	}
	here := *setup
	here.Remedy = asFields.Replace(setup.Remedy)
	return &here
}
