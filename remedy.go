package dynamill

import (
	"errors"
	"strings"

	"github.com/dynamill/dynamill/projections"
	"github.com/dynamill/dynamill/rules"
)

// asFields says for a program what the engine's remedies name by the command line's flags.
var asFields = strings.NewReplacer(
	"--table", "Config.Table", "--state-table", "Config.StateTable", "--region", "Config.AWS.Region", "--endpoint", "Config.AWS.BaseEndpoint",
)

// inProgram returns an error of the engine as a program meets it: the remedy of a *projections.SetupError
// names fields of Config, and problems of the rule file are a *rules.Problems.
func inProgram(err error) error {
	var setup *projections.SetupError
	if !errors.As(err, &setup) {
		return rules.AsProblems(err)
	}
	here := *setup
	here.Remedy = asFields.Replace(setup.Remedy)
	return &here
}
