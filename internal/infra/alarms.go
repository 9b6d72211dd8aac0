package infra

import (
	"strings"
	"time"
)

// alarm is one alarm of CloudWatch.
type alarm struct {
	Name, ID    string // Name: for people; ID: of the resource, in CamelCase
	Why         string
	Metric      metric
	Statistic   string
	Period      time.Duration
	Periods, Of int // breaching periods among the last ones
	Threshold   int // breaching above it
}

// metric is one metric with its only dimension.
type metric struct {
	Namespace, Name, Dimension string
	Value                      sub
}

// The metrics that alarms and dashboard look at. Parked is dynamill's own; the
// function writes it into its log in CloudWatch's embedded metric format.
func functionMetric(o Options, name string) metric {
	return metric{"AWS/Lambda", name, "FunctionName", sub(o.FunctionName())}
}

func mappingMetric(name string) metric {
	return metric{"AWS/Lambda", name, "EventSourceMappingUUID", "${mapping}"}
}

func parkedMetric(o Options) metric { return metric{"dynamill", "Parked", "Table", sub(o.Table)} }

// Thresholds. A stream holds its records for 24 hours.
const (
	laggingMS = int(10 * time.Minute / time.Millisecond)
	losingMS  = int(12 * time.Hour / time.Millisecond)
)

// TFName is the alarm's name in Terraform.
func (a alarm) TFName() string { return strings.ReplaceAll(a.Name, "-", "_") }

// Alarms are those of a deployment.
func (d deployment) Alarms() []alarm {
	o := d.Options
	return []alarm{
		{"lagging", "Lagging",
			"Derived data is more than 10 minutes behind: the function fails, is throttled, or needs a larger batch size or parallelization.",
			functionMetric(o, "IteratorAge"), "Maximum", time.Minute, 5, 5, laggingMS},
		{"losing-records", "LosingRecords",
			"The oldest record is 12 hours old. At 22 hours Lambda gives it up, and it goes to the bucket of late batches.",
			functionMetric(o, "IteratorAge"), "Maximum", time.Minute, 5, 5, losingMS},
		{"errors", "Errors", "Invocations fail: the function's log says why. Lambda retries.",
			functionMetric(o, "Errors"), "Sum", time.Minute, 3, 5, 0},
		{"throttles", "Throttles", "Lambda had no concurrency left for the function.",
			functionMetric(o, "Throttles"), "Sum", time.Minute, 3, 5, 0},
		{"parked", "Parked",
			"Something can have no effect as it is and was set aside: `dynamill parked list` says what and why.",
			parkedMetric(o), "Maximum", 5 * time.Minute, 1, 1, 0},
		{"late-batches", "LateBatchesAlarm",
			"A late batch, which Lambda gave up, lies in the bucket of late batches; its changes are not derived yet.",
			mappingMetric("OnFailureDestinationDeliveredEventCount"), "Sum", 5 * time.Minute, 1, 1, 0},
		{"undelivered-batches", "UndeliveredBatches",
			"A late batch could not be written to its bucket: look at the permissions, before it is dropped.",
			functionMetric(o, "DestinationDeliveryFailures"), "Sum", 5 * time.Minute, 1, 1, 0},
		{"dropped-batches", "DroppedBatches", "A late batch was dropped and is in no bucket either: its changes are lost.",
			mappingMetric("DroppedEventCount"), "Sum", 5 * time.Minute, 1, 1, 0},
	}
}

// DashboardFor is the body of a dashboard with a template's references: what an operator looks at first.
func (d deployment) DashboardFor(region, mapping string) string {
	return indentedJSON(render(dashboard, struct {
		deployment
		Region, Mapping string
	}{d, region, mapping}))
}
