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
	d := deployment{Options: o, SAM: format == SAM, Filters: Filters(set), Permissions: permissionsOf(set, o)}
	switch format {
	case SAM, CloudFormation:
		return []byte(render(cloudFormation, d)), nil
	case Terraform:
		return []byte(render(terraform, d)), nil
	}
	return nil, fmt.Errorf("there is no format %q, only %v", format, Formats())
}
