package infra

import "strings"

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
