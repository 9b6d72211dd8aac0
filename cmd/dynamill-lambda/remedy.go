package main

import (
	"errors"
	"strings"

	"github.com/dynamill/dynamill/internal/projections"
)

// inFunction names the function's variables instead of the fields of a configuration.
var inFunction = strings.NewReplacer(
	"HandlerConfig.Table", "DYNAMILL_TABLE", "Config.Table", "DYNAMILL_TABLE", "Config.StateTable", "DYNAMILL_STATE_TABLE",
	"Config.AWS.BaseEndpoint", "DYNAMILL_ENDPOINT",
	"Config.AWS.Region", "the function's region", "set HandlerConfig.BesideRun", "set DYNAMILL_BESIDE_RUN to true",
)

// remedied makes a remedy one that the owner of a function can follow.
func remedied(err error) error {
	if setup := new(projections.SetupError); !errors.As(err, &setup) {
		return err
	}
	return inVariables{err}
}

// inVariables is an error of the library in the words of the function.
type inVariables struct{ error }

func (e inVariables) Error() string { return inFunction.Replace(e.error.Error()) }
func (e inVariables) Unwrap() error { return e.error }
