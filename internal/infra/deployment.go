package infra

import (
	_ "embed"
	"regexp"
	"strings"
	"time"
	"unicode"
)

// deployment is what the templates are made of. What it embeds and what its methods
// return, every format says in its own language.
type deployment struct {
	Options
	SAM         bool // a template of SAM, which differs from CloudFormation's in how the function's code is found
	Filters     []string
	Permissions permissions
}

// fixed is what all deployments have in common.
var fixed = decoded[struct {
	Limits map[string]any
	Why    map[string]string
}](fixedText)

//go:embed templates/fixed.yaml
var fixedText string

// role is a role with just the permissions of some statements.
type role struct {
	Why        string // a part of fixed.Why
	ID, TFName string // in CloudFormation and in Terraform
	Service    string // that takes the role
	Statements []statement
}

// function is what differs between a deployment's functions, with a role and a log
// group for each. They have the same zip and the same environment.
type function struct {
	deployment
	Why, WhyLogs      string // parts of fixed.Why
	Prefix            string // of ids in CloudFormation
	TFName            string
	Name, Description string
	Limit             time.Duration // of one invocation
	Role              role
}

// LogGroup is the name that Lambda gives a function's log group.
func (f function) LogGroup() string { return "/aws/lambda/" + f.Name }

// descriptionMax is Lambda's bound, in characters (Lambda API reference, CreateFunction).
const descriptionMax = 256

// describe cuts a description to what Lambda takes.
func describe(text string) string { return text[:min(len(text), descriptionMax)] }

// StreamFunction is the function that applies the stream.
func (d deployment) StreamFunction() function {
	return function{d, "function", "logs", "", "dynamill", d.FunctionName(), describe("dynamill for table " + d.Table), d.Timeout,
		role{"role", "Role", "function", "lambda", d.Permissions.Function}}
}

// ReplayFunction is the function that replays.
func (d deployment) ReplayFunction() function {
	return function{d, "replay function", "replay logs", "Replay", "replay", d.ReplayName(),
		describe("dynamill's replays of table " + d.Table), replayTimeout,
		role{"replay role", "ReplayRole", "replay", "lambda", d.Permissions.Replay}}
}

// MachineRole is that of the state machine.
func (d deployment) MachineRole() role {
	return role{"machine role", "ReplayMachineRole", "replay_machine", "states", d.Permissions.Machine}
}

// StreamPattern is what an ARN of the table's stream looks like.
func (d deployment) StreamPattern() string {
	return `^arn:[a-z-]+:dynamodb:[a-z0-9-]+:[0-9]{12}:table/` + regexp.QuoteMeta(d.Table) + `/stream/.+$`
}

// HowToFindStream is the command that says the ARN.
func (d deployment) HowToFindStream() string {
	return "aws dynamodb describe-table --table-name " + d.Table + " --query Table.LatestStreamArn --output text"
}

// Head begins a template that a command makes.
func (d deployment) Head(command string) string {
	return "dynamill for table " + d.Table + ", made by `dynamill infra " + command + "` from the rule file. Change the rules or the\n" +
		"command's flags and make it anew rather than editing it: filters and permissions follow from the rules."
}

// bucketPrefixMax is Terraform's: it adds 26 characters to make a name of at most 63.
const bucketPrefixMax = 37

// BucketPrefix is the beginning of the bucket's name. It is made from the function's name.
func (d deployment) BucketPrefix() string {
	name := strings.Map(func(r rune) rune {
		if r == '_' {
			return '-'
		}
		return unicode.ToLower(r)
	}, d.FunctionName())
	name = strings.Trim(name[:min(len(name), bucketPrefixMax-len("-failed-"))], "-")
	return name + "-failed-"
}

// alarm is one alarm of CloudWatch; templates/alarms.yaml has them all.
type alarm struct {
	Name, ID  string // Name: for people; ID: of the resource, in CamelCase
	Why       string
	Metric    metric
	Statistic string
	Period    int // in seconds
	Breaching int // periods among the last ones
	Among     int
	Threshold int // breaching above it
}

// metric is one metric with its only dimension, whose value may have placeholders.
type metric struct{ Namespace, Name, Dimension, Value string }

// TFName is the alarm's name in Terraform.
func (a alarm) TFName() string { return strings.ReplaceAll(a.Name, "-", "_") }

// Alarms are those of a deployment.
func (d deployment) Alarms() []alarm { return decoded[[]alarm](render(alarmsFile, d)) }

// DashboardFor is the body of a dashboard with a template's references: what an operator looks at first.
func (d deployment) DashboardFor(region, mapping string) string {
	return indentedJSON(render(dashboard, struct {
		deployment
		Region, Mapping string
	}{d, region, mapping}))
}
