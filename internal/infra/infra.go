// Package infra makes, from a rule file, all that runs dynamill on AWS Lambda, as a template of AWS SAM, CloudFormation or
// Terraform: the function, its mapping on the table's stream with filters (filter.go), permissions of just what the rules need
// (permissions.go), the state table, a place for batches that failed, a schedule, alarms and a dashboard. What it makes is text,
// the same for the same rules and options. The folder templates has a file for each language, and in permissions.yaml,
// alarms.yaml and fixed.yaml what all languages say; render.go quotes and refers in these languages.
//
// A filter must never drop a record that matters, or promises 1 (converged) and 4 (self-healing) are lost where no engine can
// notice; filter_test.go holds it to that against random rules and records.
//
// It imports rules, and neither the engine, nor its drivers, nor an AWS client.
package infra

import (
	"fmt"

	"github.com/dynamill/dynamill/internal/rules"
)

// Format is a language of deployment templates.
type Format string

// The formats.
const (
	SAM            Format = "sam"
	CloudFormation Format = "cloudformation"
	Terraform      Format = "terraform"
)

// Formats lists them.
func Formats() []Format { return []Format{SAM, CloudFormation, Terraform} }

// Generate writes a template that deploys dynamill with these rules. The error
// says what is wrong with the options, all of it at once.
func Generate(format Format, set *rules.Set, o Options) ([]byte, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	d := deployment{Options: o, SAM: format == SAM, Filters: Filters(set, o.Former), Permissions: permissionsOf(set, o)}
	switch format {
	case SAM, CloudFormation:
		return []byte(render(cloudFormation, d)), nil
	case Terraform:
		return []byte(render(terraform, d)), nil
	}
	return nil, fmt.Errorf("there is no format %q, only %v", format, Formats())
}
