package infra

import (
	"slices"
	"strings"
	"unicode"
)

// terraformReferences are the placeholders' words in Terraform.
var terraformReferences = map[string]string{
	"partition": "data.aws_partition.current.partition", "region": "data.aws_region.current.region",
	"account": "data.aws_caller_identity.current.account_id",
	"stream":  "var.stream_arn", "mapping": "aws_lambda_event_source_mapping.stream.uuid",
	"bucket": "aws_s3_bucket.late_batches.arn", "bucketName": "aws_s3_bucket.late_batches.id",
	"logs": "aws_cloudwatch_log_group.function.arn", "role": "aws_iam_role.function.arn", "roleName": "aws_iam_role.function.id",
	"function": "aws_lambda_function.dynamill.arn", "functionName": "aws_lambda_function.dynamill.function_name",
	"schedule": "aws_cloudwatch_event_rule.tasks.arn", "scheduleName": "aws_cloudwatch_event_rule.tasks.name", "package": "var.package",
	"replayLogs": "aws_cloudwatch_log_group.replay.arn", "replayRole": "aws_iam_role.replay.arn",
	"replayFunction": "aws_lambda_function.replay.arn",
	"machineRole":    "aws_iam_role.replay_machine.arn", "machine": "aws_sfn_state_machine.replay.arn",
}

// providerVersion is the first of the provider whose schema the templates are held to.
const providerVersion = ">= 6.0"

func (d deployment) terraform() string {
	top := d.tfVariables()
	if !d.KeepStateTable {
		top = append(top, d.tfStateTable())
	}
	top = slices.Concat(top, d.tfBucket(), block{d.tfLogGroup(whyLogs, "function", d.functionName())},
		tfRole(whyRole, "function", lambdaService, d.statements),
		block{d.tfFunction(d.streamFunction()), d.tfMapping()}, d.tfSchedule(), d.tfReplay(), d.tfAlarms(), block{
			tf("", "aws_cloudwatch_dashboard", "dynamill", nested{
				{key: "dashboard_name", value: d.functionName()},
				{key: "dashboard_body", value: encoded{dashboard(d.Options)}},
			}),
			{key: `output "function_name"`, value: nested{{key: "value", value: sub("${functionName}")}}},
			{key: `output "late_batches_bucket"`, value: nested{{key: "value", value: sub("${bucketName}")}}},
			{key: `output "role_name"`, value: nested{{key: "value", value: sub("${roleName}")}}},
		}, d.tfReplayOutputs())
	return hclOf(top, terraformReferences)
}

func tf(comment, kind, name string, body nested) entry {
	return entry{comment: comment, key: `resource "` + kind + `" "` + name + `"`, value: body}
}

func (d deployment) tfVariables() block {
	text := func(name, description string, more ...entry) entry {
		return entry{key: `variable "` + name + `"`, value: nested(slices.Concat(block{
			{key: "type", value: raw("string")}, {key: "description", value: description}}, block(more)))}
	}
	stream := text("stream_arn", "ARN of the stream of table "+d.Table+", which must hold new and old images",
		entry{key: "validation", value: nested{
			{key: "condition", value: raw("can(regex(" + hclText(d.streamPattern()) + ", var.stream_arn))")},
			{key: "error_message", value: "This is not the ARN of a stream of table " + d.Table + "."},
		}})
	stream.comment = "aws dynamodb describe-table --table-name " + d.Table + " --query Table.LatestStreamArn --output text"
	code := text("package", "path of the zip with "+d.zipHolds(), entry{key: "default", value: d.Code})
	topic := text("alarm_topic_arn", "ARN of the SNS topic that alarms go to; empty for none", entry{key: "default", value: d.AlarmTopic})
	return block{
		{comment: d.head(string(Terraform)), key: "terraform", value: nested{{key: "required_providers", value: nested{
			{key: "aws", value: block{{key: "source", value: "hashicorp/aws"}, {key: "version", value: providerVersion}}}}}}},
		stream, code, topic,
		{key: `data "aws_partition" "current"`, value: nested{}},
		{key: `data "aws_region" "current"`, value: nested{}},
		{key: `data "aws_caller_identity" "current"`, value: nested{}},
	}
}

func (d deployment) tfStateTable() entry {
	attribute := func(name string) entry {
		return entry{key: "attribute", value: nested{{key: "name", value: name}, {key: "type", value: "S"}}}
	}
	return tf(whyStateTable, "aws_dynamodb_table", "state", nested{
		{key: "name", value: d.StateTable},
		{key: "billing_mode", value: "PAY_PER_REQUEST"},
		{key: "hash_key", value: "pk"},
		{key: "range_key", value: "sk"},
		{key: "deletion_protection_enabled", value: true},
		attribute("pk"), attribute("sk"),
		{key: "ttl", value: nested{{key: "attribute_name", value: "ttl"}, {key: "enabled", value: true}}},
		{key: "point_in_time_recovery", value: nested{{key: "enabled", value: !d.NoBackups}}},
		{key: "lifecycle", value: nested{{key: "prevent_destroy", value: true}}},
	})
}

func (d deployment) tfBucket() block {
	bucket := entry{key: "bucket", value: sub("${bucketName}")}
	return block{
		tf(whyBucket, "aws_s3_bucket", "late_batches", nested{
			{key: "bucket_prefix", value: bucketPrefix(d.functionName())},
			{key: "lifecycle", value: nested{{key: "prevent_destroy", value: true}}},
		}),
		tf("", "aws_s3_bucket_server_side_encryption_configuration", "late_batches", nested{bucket,
			{key: "rule", value: nested{{key: "apply_server_side_encryption_by_default", value: nested{{key: "sse_algorithm", value: "AES256"}}}}}}),
		tf("", "aws_s3_bucket_public_access_block", "late_batches", nested{bucket,
			{key: "block_public_acls", value: true}, {key: "block_public_policy", value: true},
			{key: "ignore_public_acls", value: true}, {key: "restrict_public_buckets", value: true}}),
		tf("", "aws_s3_bucket_ownership_controls", "late_batches", nested{bucket,
			{key: "rule", value: nested{{key: "object_ownership", value: "BucketOwnerEnforced"}}}}),
		tf("", "aws_s3_bucket_lifecycle_configuration", "late_batches", nested{bucket,
			{key: "rule", value: nested{{key: "id", value: "expire"}, {key: "status", value: "Enabled"},
				{key: "filter", value: nested{}}, {key: "expiration", value: nested{{key: "days", value: lateBatchDays}}}}}}),
		tf("", "aws_s3_bucket_policy", "late_batches", nested{bucket, {key: "policy", value: encoded{encryptedOnly()}}}),
	}
}

// bucketPrefixMax is Terraform's: it adds 26 characters to make a name of at most 63.
const bucketPrefixMax = 37

// bucketPrefix makes the beginning of a bucket's name from that of a function.
func bucketPrefix(function string) string {
	name := strings.Map(func(r rune) rune {
		if r == '_' {
			return '-'
		}
		return unicode.ToLower(r)
	}, function)
	name = strings.Trim(name[:min(len(name), bucketPrefixMax-len("-failed-"))], "-")
	return name + "-failed-"
}

func (d deployment) tfLogGroup(why, name, function string) entry {
	return tf(why, "aws_cloudwatch_log_group", name, nested{
		{key: "name", value: "/aws/lambda/" + function},
		{key: "retention_in_days", value: d.RetentionDays},
	})
}

func tfRole(why, name, service string, statements []statement) block {
	statements = slices.Clone(statements)
	for i, s := range statements {
		if s.id == "Logs" { // Terraform's ARN of a log group, unlike CloudFormation's, does not end in :*
			statements[i].resources = []sub{s.resources[0] + ":*"}
		}
	}
	return block{
		tf(why, "aws_iam_role", name, nested{
			{key: "name_prefix", value: "dynamill-"},
			{key: "assume_role_policy", value: encoded{assumedBy(service)}},
		}),
		tf("", "aws_iam_role_policy", name, nested{
			{key: "name", value: "dynamill"},
			{key: "role", value: raw("aws_iam_role." + name + ".id")},
			{key: "policy", value: encoded{policy(statements)}},
		}),
	}
}

func (d deployment) tfFunction(f function) entry {
	return tf(f.why, "aws_lambda_function", f.tfName, nested{
		{key: "function_name", value: f.name},
		{key: "description", value: f.description},
		{key: "runtime", value: "provided.al2023"},
		{key: "architectures", value: list{d.Architecture}},
		{key: "handler", value: "bootstrap"},
		{key: "filename", value: sub("${package}")},
		{key: "source_code_hash", value: raw("filebase64sha256(var.package)")},
		{key: "memory_size", value: d.MemoryMB},
		{key: "timeout", value: seconds(f.timeout)},
		{key: "role", value: f.role},
		{key: "depends_on", value: raw("[aws_cloudwatch_log_group." + f.tfRole + ", aws_iam_role_policy." + f.tfRole + "]")},
		{key: "environment", value: nested{{key: "variables", value: d.environment()}}},
		{key: "tracing_config", value: nested{{key: "mode", value: "Active"}}},
	})
}

func (d deployment) tfMapping() entry {
	body := nested{
		{key: "event_source_arn", value: sub("${stream}")},
		{key: "function_name", value: sub("${function}")},
		{key: "starting_position", value: "TRIM_HORIZON"},
		{key: "batch_size", value: d.BatchSize},
		{key: "maximum_batching_window_in_seconds", value: seconds(d.Window)},
		{key: "parallelization_factor", value: d.Parallelization},
		{key: "function_response_types", value: list{"ReportBatchItemFailures"}},
		{key: "bisect_batch_on_function_error", value: true},
		{key: "maximum_retry_attempts", value: retriesMax},
		{key: "maximum_record_age_in_seconds", value: seconds(recordAgeMax)},
		{key: "destination_config", value: nested{{key: "on_failure", value: nested{{key: "destination_arn", value: sub("${bucket}")}}}}},
		{comment: whyMetrics, key: "metrics_config", value: nested{{key: "metrics", value: list{"EventCount"}}}},
	}
	if len(d.filters) > 0 {
		var filters nested
		for _, pattern := range d.filters {
			filters = append(filters, entry{key: "filter", value: nested{{key: "pattern", value: pattern}}})
		}
		body = append(body, entry{comment: whyFilters, key: "filter_criteria", value: filters})
	}
	return tf(d.whyMapping(), "aws_lambda_event_source_mapping", "stream", body)
}

func (d deployment) tfSchedule() block {
	return block{
		tf(whySchedule, "aws_cloudwatch_event_rule", "tasks", nested{
			{key: "name", value: d.functionName()},
			{key: "description", value: "durable tasks of " + d.functionName()},
			{key: "schedule_expression", value: "rate(1 minute)"},
		}),
		tf("", "aws_cloudwatch_event_target", "tasks", nested{
			{key: "rule", value: sub("${scheduleName}")},
			{key: "target_id", value: "tasks"},
			{key: "arn", value: sub("${function}")},
			{key: "input", value: tasksPayload},
		}),
		tf("", "aws_lambda_permission", "tasks", nested{
			{key: "action", value: "lambda:InvokeFunction"},
			{key: "function_name", value: sub("${functionName}")},
			{key: "principal", value: "events.amazonaws.com"},
			{key: "source_arn", value: sub("${schedule}")},
		}),
		tf(whyInvoke, "aws_lambda_function_event_invoke_config", "tasks", nested{
			{key: "function_name", value: sub("${functionName}")},
			{key: "maximum_retry_attempts", value: taskRetries},
			{key: "maximum_event_age_in_seconds", value: seconds(taskAgeMax)},
		}),
	}
}

func (d deployment) tfAlarms() block {
	var resources block
	for _, a := range alarms(d.Options) {
		resources = append(resources, tf(a.why, "aws_cloudwatch_metric_alarm", strings.ReplaceAll(a.name, "-", "_"), nested{
			{key: "alarm_name", value: d.functionName() + "-" + a.name},
			{key: "alarm_description", value: a.why},
			{key: "namespace", value: a.metric.namespace},
			{key: "metric_name", value: a.metric.name},
			{key: "dimensions", value: block{{key: a.metric.dimension, value: a.metric.value}}},
			{key: "statistic", value: a.statistic},
			{key: "period", value: seconds(a.period)},
			{key: "evaluation_periods", value: a.of},
			{key: "datapoints_to_alarm", value: a.periods},
			{key: "comparison_operator", value: "GreaterThanThreshold"},
			{key: "threshold", value: a.threshold},
			{key: "treat_missing_data", value: "notBreaching"},
			{key: "alarm_actions", value: raw(`var.alarm_topic_arn == "" ? [] : [var.alarm_topic_arn]`)},
		}))
	}
	return resources
}
