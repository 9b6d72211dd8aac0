{{- define "role" -}}
{{why 0 .Why}}
resource "aws_iam_role" "{{.TFName}}" {
  name_prefix = "dynamill-"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Effect = "Allow"
        Principal = {
          Service = "{{.Service}}.amazonaws.com"
        }
        Action = "sts:AssumeRole"
      },
    ]
  })
}

resource "aws_iam_role_policy" "{{.TFName}}" {
  name = "dynamill"
  role = aws_iam_role.{{.TFName}}.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
{{- range .Statements}}
{{comment 3 .Why}}
      {
{{aligned 4 "Sid" (text .ID) "Effect" (text "Allow") "Action" (list 4 .Actions) "Resource" (list 4 .Resources)}}
      },
{{- end}}
    ]
  })
}
{{- end}}

{{- define "function" -}}
{{why 0 .WhyLogs}}
resource "aws_cloudwatch_log_group" "{{.Role.TFName}}" {
  name              = {{text .LogGroup}}
  retention_in_days = {{.RetentionDays}}
}

{{template "role" .Role}}

{{why 0 .Why}}
resource "aws_lambda_function" "{{.TFName}}" {
  function_name    = {{text .Name}}
  description      = {{text .Description}}
  runtime          = "provided.al2023"
  architectures    = [{{text .Architecture}}]
  handler          = "bootstrap"
  filename         = var.package
  source_code_hash = filebase64sha256(var.package)
  memory_size      = {{.MemoryMB}}
  timeout          = {{seconds .Limit}}
  role             = aws_iam_role.{{.Role.TFName}}.arn
  depends_on       = [aws_cloudwatch_log_group.{{.Role.TFName}}, aws_iam_role_policy.{{.Role.TFName}}]

  environment {
    variables = {
      DYNAMILL_TABLE       = {{text .Table}}
      DYNAMILL_STATE_TABLE = {{text .StateTable}}
      DYNAMILL_RULES       = {{text .RulesVariable}}
{{- if .BesideRun}}
      DYNAMILL_BESIDE_RUN = "true"
{{- end}}
    }
  }

  tracing_config {
    mode = "Active"
  }
}
{{- end -}}

{{comment 0 (.Head "terraform")}}
terraform {
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      {{- /* the first version with the schema that this file follows */}}
      version = ">= 6.0"
    }
  }
}

{{comment 0 .HowToFindStream}}
variable "stream_arn" {
  type        = string
  description = {{text (print "ARN of the stream of table " .Table ", which must hold new and old images")}}

  validation {
    condition     = can(regex({{text .StreamPattern}}, var.stream_arn))
    error_message = {{text (print "This is not the ARN of a stream of table " .Table ".")}}
  }
}

variable "package" {
  type        = string
  description = {{text (print "path of the zip with " .ZipHolds)}}
  default     = {{text .Code}}
}

variable "alarm_topic_arn" {
  type        = string
  description = "ARN of the SNS topic that alarms go to; empty for none"
  default     = {{text .AlarmTopic}}
}

data "aws_partition" "current" {}

data "aws_region" "current" {}

data "aws_caller_identity" "current" {}
{{- if not .KeepStateTable}}

{{why 0 "state table"}}
resource "aws_dynamodb_table" "state" {
  name                        = {{text .StateTable}}
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "pk"
  range_key                   = "sk"
  deletion_protection_enabled = true

  attribute {
    name = "pk"
    type = "S"
  }

  attribute {
    name = "sk"
    type = "S"
  }

  ttl {
    attribute_name = "ttl"
    enabled        = true
  }

  point_in_time_recovery {
    enabled = {{not .NoBackups}}
  }

  lifecycle {
    prevent_destroy = true
  }
}
{{- end}}

{{why 0 "bucket"}}
resource "aws_s3_bucket" "late_batches" {
  bucket_prefix = {{text .BucketPrefix}}

  lifecycle {
    prevent_destroy = true
  }
}

resource "aws_s3_bucket_server_side_encryption_configuration" "late_batches" {
  bucket = aws_s3_bucket.late_batches.id

  rule {
    apply_server_side_encryption_by_default {
      sse_algorithm = "AES256"
    }
  }
}

resource "aws_s3_bucket_public_access_block" "late_batches" {
  bucket                  = aws_s3_bucket.late_batches.id
  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

resource "aws_s3_bucket_ownership_controls" "late_batches" {
  bucket = aws_s3_bucket.late_batches.id

  rule {
    object_ownership = "BucketOwnerEnforced"
  }
}

resource "aws_s3_bucket_lifecycle_configuration" "late_batches" {
  bucket = aws_s3_bucket.late_batches.id

  rule {
    id     = "expire"
    status = "Enabled"

    filter {}

    expiration {
      days = {{limit "lateBatchDays"}}
    }
  }
}

resource "aws_s3_bucket_policy" "late_batches" {
  bucket = aws_s3_bucket.late_batches.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid       = "EncryptedTransportOnly"
        Effect    = "Deny"
        Principal = "*"
        Action    = "s3:*"
        Resource  = [aws_s3_bucket.late_batches.arn, "${aws_s3_bucket.late_batches.arn}/*"]
        Condition = {
          Bool = {
            "aws:SecureTransport" = "false"
          }
        }
      },
    ]
  })
}

{{template "function" .StreamFunction}}

{{why 0 "mapping"}}
{{- if not .Filters}}
{{why 0 "no filters"}}
{{- end}}
resource "aws_lambda_event_source_mapping" "stream" {
  event_source_arn                   = var.stream_arn
  function_name                      = aws_lambda_function.dynamill.arn
  starting_position                  = "TRIM_HORIZON"
  batch_size                         = {{.BatchSize}}
  maximum_batching_window_in_seconds = {{seconds .Window}}
  parallelization_factor             = {{.Parallelization}}
  function_response_types            = ["ReportBatchItemFailures"]
  bisect_batch_on_function_error     = true
  maximum_retry_attempts             = {{limit "retries"}}
  maximum_record_age_in_seconds      = {{limit "recordAge"}}

  destination_config {
    on_failure {
      destination_arn = aws_s3_bucket.late_batches.arn
    }
  }

{{why 1 "metrics"}}
  metrics_config {
    metrics = ["EventCount"]
  }
{{- if .Filters}}

{{why 1 "filters"}}
  filter_criteria {
{{- range $i, $pattern := .Filters}}
{{- if $i}}
{{end}}
    filter {
      pattern = {{text $pattern}}
    }
{{- end}}
  }
{{- end}}
}

{{why 0 "schedule"}}
resource "aws_cloudwatch_event_rule" "tasks" {
  name                = {{text .FunctionName}}
  description         = {{text (print "durable tasks of " .FunctionName)}}
  schedule_expression = "rate(1 minute)"
}

resource "aws_cloudwatch_event_target" "tasks" {
  rule      = aws_cloudwatch_event_rule.tasks.name
  target_id = "tasks"
  arn       = aws_lambda_function.dynamill.arn
  input     = "{\"dynamill\":\"tasks\"}"
}

resource "aws_lambda_permission" "tasks" {
  action        = "lambda:InvokeFunction"
  function_name = aws_lambda_function.dynamill.function_name
  principal     = "events.amazonaws.com"
  source_arn    = aws_cloudwatch_event_rule.tasks.arn
}

{{why 0 "invocations"}}
resource "aws_lambda_function_event_invoke_config" "tasks" {
  function_name                = aws_lambda_function.dynamill.function_name
  maximum_retry_attempts       = {{limit "taskRetries"}}
  maximum_event_age_in_seconds = {{limit "taskAge"}}
}
{{- if .Replay}}

{{template "function" .ReplayFunction}}

{{template "role" .MachineRole}}

{{why 0 "machine"}}
resource "aws_sfn_state_machine" "replay" {
  name       = {{text .ReplayName}}
  type       = "STANDARD"
  role_arn   = aws_iam_role.replay_machine.arn
  depends_on = [aws_iam_role_policy.replay_machine]
  definition = <<-JSON
{{indent 4 (.DefinitionFor "${data.aws_partition.current.partition}" "${aws_lambda_function.replay.arn}")}}
  JSON
}
{{- end}}
{{- range .Alarms}}

{{comment 0 .Why}}
resource "aws_cloudwatch_metric_alarm" "{{.TFName}}" {
  alarm_name        = {{text (print $.FunctionName "-" .Name)}}
  alarm_description = {{text .Why}}
  namespace         = "{{.Metric.Namespace}}"
  metric_name       = "{{.Metric.Name}}"
  dimensions = {
    {{.Metric.Dimension}} = {{ref .Metric.Value}}
  }
  statistic           = "{{.Statistic}}"
  period              = {{.Period}}
  evaluation_periods  = {{.Among}}
  datapoints_to_alarm = {{.Breaching}}
  comparison_operator = "GreaterThanThreshold"
  threshold           = {{.Threshold}}
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_topic_arn == "" ? [] : [var.alarm_topic_arn]
}
{{- end}}

resource "aws_cloudwatch_dashboard" "dynamill" {
  dashboard_name = {{text .FunctionName}}
  dashboard_body = <<-JSON
{{indent 4 (.DashboardFor "${data.aws_region.current.region}" "${aws_lambda_event_source_mapping.stream.uuid}")}}
  JSON
}

output "function_name" {
  value = aws_lambda_function.dynamill.function_name
}

output "late_batches_bucket" {
  value = aws_s3_bucket.late_batches.id
}

output "role_name" {
  value = aws_iam_role.function.id
}
{{- if .Replay}}

output "replay_machine_arn" {
  value = aws_sfn_state_machine.replay.arn
}
{{- end}}
