package infra

import "time"

// alarm is one alarm of CloudWatch.
type alarm struct {
	name, id    string // name: for people; id: of the resource, in CamelCase
	why         string
	metric      metric
	statistic   string
	period      time.Duration
	periods, of int // breaching periods among the last ones
	threshold   int // breaching above it
}

// metric is one metric with its only dimension.
type metric struct {
	namespace, name, dimension string
	value                      sub
}

// The metrics that alarms and dashboard look at. Parked is dynamill's own; the
// function writes it into its log in CloudWatch's embedded metric format.
func functionMetric(o Options, name string) metric {
	return metric{"AWS/Lambda", name, "FunctionName", sub(o.functionName())}
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

func alarms(o Options) []alarm {
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

// dashboard is the body of a dashboard: what one looks at first.
func dashboard(o Options) block {
	return block{{key: "widgets", value: list{
		widget(0, 0, "How far behind (ms)", "Maximum", metricRow(functionMetric(o, "IteratorAge"))),
		widget(12, 0, "Records: read, filtered out, handed over, failed", "Sum",
			metricRow(mappingMetric("PolledEventCount")), metricRow(mappingMetric("FilteredOutEventCount")),
			metricRow(mappingMetric("InvokedEventCount")), metricRow(mappingMetric("FailedInvokeEventCount")),
			metricRow(mappingMetric("OnFailureDestinationDeliveredEventCount")), metricRow(mappingMetric("DroppedEventCount"))),
		widget(0, 1, "Invocations, errors, throttles", "Sum",
			metricRow(functionMetric(o, "Invocations")), metricRow(functionMetric(o, "Errors")), metricRow(functionMetric(o, "Throttles"))),
		widget(12, 1, "Duration (ms)", "Maximum", metricRow(functionMetric(o, "Duration"))),
		widget(0, 2, "Parked", "Maximum", metricRow(parkedMetric(o))),
		widget(12, 2, "Capacity of table and state table", "Sum",
			list{"AWS/DynamoDB", "ConsumedWriteCapacityUnits", "TableName", o.Table},
			list{"AWS/DynamoDB", "ConsumedWriteCapacityUnits", "TableName", o.StateTable},
			list{"AWS/DynamoDB", "ConsumedReadCapacityUnits", "TableName", o.StateTable},
			list{"AWS/DynamoDB", "ThrottledRequests", "TableName", o.StateTable, "Operation", "TransactWriteItems"}),
	}}}
}

func metricRow(m metric) list { return list{m.namespace, m.name, m.dimension, m.value} }

// Of a dashboard's grid, which is 24 units wide.
const widgetWidth, widgetHeight = 12, 6

func widget(x, row int, title, statistic string, metrics ...list) block {
	rows := list{}
	for _, m := range metrics {
		rows = append(rows, m)
	}
	return block{
		{key: "type", value: "metric"},
		{key: "x", value: x}, {key: "y", value: row * widgetHeight}, {key: "width", value: widgetWidth}, {key: "height", value: widgetHeight},
		{key: "properties", value: block{
			{key: "title", value: title},
			{key: "region", value: sub("${region}")},
			{key: "stat", value: statistic},
			{key: "period", value: seconds(time.Minute)},
			{key: "metrics", value: rows},
		}},
	}
}
