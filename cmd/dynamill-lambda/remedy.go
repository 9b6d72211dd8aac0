package main

import (
	"errors"
	"strings"

	"github.com/dynamill/dynamill/projections"
)

// inFunction says how that is set here which the engine's remedies name by the
// command line's flags.
var inFunction = strings.NewReplacer(
	"--table", "DYNAMILL_TABLE", "--state-table", "DYNAMILL_STATE_TABLE", "--endpoint", "DYNAMILL_ENDPOINT",
	"--region", "the function's region",
)

// remedied makes a remedy one that somebody who sets up a function can follow.
func remedied(err error) error {
	var setup *projections.SetupError
	if !errors.As(err, &setup) {
		return err
	}
	here := *setup
	here.Remedy = inFunction.Replace(setup.Remedy)
	return &here
}
