# dynamill for table groups, made by `dynamill infra terraform` from the rule file. Change the rules or the
# command's flags and make it anew rather than editing it: filters and permissions follow from the rules.
terraform {
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 6.0"
    }
  }
}

# aws dynamodb describe-table --table-name groups --query Table.LatestStreamArn --output text
variable "stream_arn" {
  type        = string
  description = "ARN of the stream of table groups, which must hold new and old images"

  validation {
    condition     = can(regex("^arn:[a-z-]+:dynamodb:[a-z0-9-]+:[0-9]{12}:table/groups/stream/.+$", var.stream_arn))
    error_message = "This is not the ARN of a stream of table groups."
  }
}

variable "package" {
  type        = string
  description = "path of the zip with the executable `bootstrap` and the rule file dynamill.yaml"
  default     = "bin/lambda/dynamill-arm64.zip"
}

variable "alarm_topic_arn" {
  type        = string
  description = "ARN of the SNS topic that alarms go to; empty for none"
  default     = ""
}

data "aws_partition" "current" {}

data "aws_region" "current" {}

data "aws_caller_identity" "current" {}

# dynamill's memory: ledger, accumulators, references, tasks, parked records (docs/state-table.md). Losing it
# means seeding anew, so it is protected.
resource "aws_dynamodb_table" "state" {
  name                        = "groups-dynamill"
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
    enabled = true
  }

  lifecycle {
    prevent_destroy = true
  }
}

# Late batches: those that Lambda gave up, with their records. Objects mean changes that are not derived: an
# alarm watches for them.
resource "aws_s3_bucket" "late_batches" {
  bucket_prefix = "groups-dynamill-failed-"

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
      days = 90
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

# The function's log; its metrics are in it, too.
resource "aws_cloudwatch_log_group" "function" {
  name              = "/aws/lambda/groups-dynamill"
  retention_in_days = 30
}

# Just what these rules need.
resource "aws_iam_role" "function" {
  name_prefix = "dynamill-"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Effect = "Allow"
        Principal = {
          Service = "lambda.amazonaws.com"
        }
        Action = "sts:AssumeRole"
      },
    ]
  })
}

resource "aws_iam_role_policy" "function" {
  name = "dynamill"
  role = aws_iam_role.function.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      # What the rules read and write in your table. ConditionCheckItem is for mirror, copy, set and tree
      # rules. ConditionCheckItem lets a delete rule check that a parent is gone. DeleteItem deletes the
      # children of deleted parents, as delete rules ask for. DeleteItem takes mirror items away whose source
      # is gone.
      {
        Sid    = "Table"
        Effect = "Allow"
        Action = [
          "dynamodb:DescribeTable",
          "dynamodb:BatchGetItem",
          "dynamodb:UpdateItem",
          "dynamodb:PartiQLUpdate",
          "dynamodb:ConditionCheckItem",
          "dynamodb:DeleteItem",
        ]
        Resource = "arn:${data.aws_partition.current.partition}:dynamodb:${data.aws_region.current.region}:${data.aws_caller_identity.current.account_id}:table/groups"
      },
      # dynamill's own memory.
      {
        Sid    = "StateTable"
        Effect = "Allow"
        Action = [
          "dynamodb:DescribeTable",
          "dynamodb:DescribeTimeToLive",
          "dynamodb:GetItem",
          "dynamodb:BatchGetItem",
          "dynamodb:Query",
          "dynamodb:PutItem",
          "dynamodb:UpdateItem",
          "dynamodb:PartiQLInsert",
          "dynamodb:DeleteItem",
          "dynamodb:ConditionCheckItem",
        ]
        Resource = "arn:${data.aws_partition.current.partition}:dynamodb:${data.aws_region.current.region}:${data.aws_caller_identity.current.account_id}:table/groups-dynamill"
      },
      # Lambda reads the stream in the function's name.
      {
        Sid      = "Stream"
        Effect   = "Allow"
        Action   = ["dynamodb:DescribeStream", "dynamodb:GetShardIterator", "dynamodb:GetRecords"]
        Resource = var.stream_arn
      },
      # Lambda lists streams when the mapping is made; AWS has no narrower resource for this action.
      {
        Sid      = "ListStreams"
        Effect   = "Allow"
        Action   = "dynamodb:ListStreams"
        Resource = "*"
      },
      # Lambda writes late batches in the function's name; the function reads one that it is told of.
      {
        Sid      = "LateBatches"
        Effect   = "Allow"
        Action   = ["s3:PutObject", "s3:GetObject"]
        Resource = "${aws_s3_bucket.late_batches.arn}/*"
      },
      # Lambda looks whether that bucket is there; and S3 tells the function of an object that is missing as
      # such, not as denied.
      {
        Sid      = "LateBatchesBucket"
        Effect   = "Allow"
        Action   = "s3:ListBucket"
        Resource = aws_s3_bucket.late_batches.arn
      },
      # The function's logs and, within them, its metrics.
      {
        Sid      = "Logs"
        Effect   = "Allow"
        Action   = ["logs:CreateLogStream", "logs:PutLogEvents"]
        Resource = "${aws_cloudwatch_log_group.function.arn}:*"
      },
      # X-Ray; AWS has no narrower resource for these actions.
      {
        Sid      = "Traces"
        Effect   = "Allow"
        Action   = ["xray:PutTraceSegments", "xray:PutTelemetryRecords"]
        Resource = "*"
      },
    ]
  })
}

# The engine.
resource "aws_lambda_function" "dynamill" {
  function_name    = "groups-dynamill"
  description      = "dynamill for table groups"
  runtime          = "provided.al2023"
  architectures    = ["arm64"]
  handler          = "bootstrap"
  filename         = var.package
  source_code_hash = filebase64sha256(var.package)
  memory_size      = 512
  timeout          = 120
  role             = aws_iam_role.function.arn
  depends_on       = [aws_cloudwatch_log_group.function, aws_iam_role_policy.function]

  environment {
    variables = {
      DYNAMILL_TABLE       = "groups"
      DYNAMILL_STATE_TABLE = "groups-dynamill"
      DYNAMILL_RULES       = "dynamill.yaml"
    }
  }

  tracing_config {
    mode = "Active"
  }
}

# The table's stream to the function. A batch that fails is cut in two, retried from its first failed record
# on, and kept in the bucket when it is too old, before the stream would drop it.
resource "aws_lambda_event_source_mapping" "stream" {
  event_source_arn                   = var.stream_arn
  function_name                      = aws_lambda_function.dynamill.arn
  starting_position                  = "TRIM_HORIZON"
  batch_size                         = 1000
  maximum_batching_window_in_seconds = 0
  parallelization_factor             = 1
  function_response_types            = ["ReportBatchItemFailures"]
  bisect_batch_on_function_error     = true
  maximum_retry_attempts             = -1
  maximum_record_age_in_seconds      = 79200

  destination_config {
    on_failure {
      destination_arn = aws_s3_bucket.late_batches.arn
    }
  }

  # Counts of records read, filtered out and failed, for the alarms and the dashboard.
  metrics_config {
    metrics = ["EventCount"]
  }

  # Derived from the keys of every entity that a rule reads or writes: other records do not invoke the
  # function and cost nothing.
  filter_criteria {
    filter {
      pattern = "{\"dynamodb\":{\"Keys\":{\"pk\":{\"S\":[{\"prefix\":\"GROUP#\"}]},\"sk\":{\"S\":[\"METADATA\",{\"prefix\":\"USER#\"}]}}}}"
    }

    filter {
      pattern = "{\"dynamodb\":{\"Keys\":{\"pk\":{\"S\":[{\"prefix\":\"USER#\"}]},\"sk\":{\"S\":[{\"prefix\":\"GROUP#\"},\"PROFILE\"]}}}}"
    }
  }
}

# Every minute: what is due without a record, such as the rest of a large fan-out.
resource "aws_cloudwatch_event_rule" "tasks" {
  name                = "groups-dynamill"
  description         = "durable tasks of groups-dynamill"
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

# The next minute's invocation is the retry.
resource "aws_lambda_function_event_invoke_config" "tasks" {
  function_name                = aws_lambda_function.dynamill.function_name
  maximum_retry_attempts       = 0
  maximum_event_age_in_seconds = 60
}

# Derived data is more than 10 minutes behind: the function fails, is throttled, or needs a larger batch size
# or parallelization.
resource "aws_cloudwatch_metric_alarm" "lagging" {
  alarm_name        = "groups-dynamill-lagging"
  alarm_description = "Derived data is more than 10 minutes behind: the function fails, is throttled, or needs a larger batch size or parallelization."
  namespace         = "AWS/Lambda"
  metric_name       = "IteratorAge"
  dimensions = {
    FunctionName = "groups-dynamill"
  }
  statistic           = "Maximum"
  period              = 60
  evaluation_periods  = 15
  datapoints_to_alarm = 1
  comparison_operator = "GreaterThanThreshold"
  threshold           = 600000
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_topic_arn == "" ? [] : [var.alarm_topic_arn]
}

# The oldest record is 12 hours old. At 22 hours Lambda gives it up, and it goes to the bucket of late
# batches.
resource "aws_cloudwatch_metric_alarm" "losing_records" {
  alarm_name        = "groups-dynamill-losing-records"
  alarm_description = "The oldest record is 12 hours old. At 22 hours Lambda gives it up, and it goes to the bucket of late batches."
  namespace         = "AWS/Lambda"
  metric_name       = "IteratorAge"
  dimensions = {
    FunctionName = "groups-dynamill"
  }
  statistic           = "Maximum"
  period              = 60
  evaluation_periods  = 15
  datapoints_to_alarm = 1
  comparison_operator = "GreaterThanThreshold"
  threshold           = 43200000
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_topic_arn == "" ? [] : [var.alarm_topic_arn]
}

# Invocations fail: the function's log says why. Lambda retries.
resource "aws_cloudwatch_metric_alarm" "errors" {
  alarm_name        = "groups-dynamill-errors"
  alarm_description = "Invocations fail: the function's log says why. Lambda retries."
  namespace         = "AWS/Lambda"
  metric_name       = "Errors"
  dimensions = {
    FunctionName = "groups-dynamill"
  }
  statistic           = "Sum"
  period              = 60
  evaluation_periods  = 5
  datapoints_to_alarm = 3
  comparison_operator = "GreaterThanThreshold"
  threshold           = 0
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_topic_arn == "" ? [] : [var.alarm_topic_arn]
}

# Batches fail, and Lambda delivers them again: the function's log says why.
resource "aws_cloudwatch_metric_alarm" "failing" {
  alarm_name        = "groups-dynamill-failing"
  alarm_description = "Batches fail, and Lambda delivers them again: the function's log says why."
  namespace         = "dynamill"
  metric_name       = "Failed"
  dimensions = {
    Table = "groups"
  }
  statistic           = "Sum"
  period              = 60
  evaluation_periods  = 5
  datapoints_to_alarm = 3
  comparison_operator = "GreaterThanThreshold"
  threshold           = 0
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_topic_arn == "" ? [] : [var.alarm_topic_arn]
}

# Lambda had no concurrency left for the function.
resource "aws_cloudwatch_metric_alarm" "throttles" {
  alarm_name        = "groups-dynamill-throttles"
  alarm_description = "Lambda had no concurrency left for the function."
  namespace         = "AWS/Lambda"
  metric_name       = "Throttles"
  dimensions = {
    FunctionName = "groups-dynamill"
  }
  statistic           = "Sum"
  period              = 60
  evaluation_periods  = 5
  datapoints_to_alarm = 3
  comparison_operator = "GreaterThanThreshold"
  threshold           = 0
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_topic_arn == "" ? [] : [var.alarm_topic_arn]
}

# Something can have no effect as it is and was set aside: `dynamill parked list` says what and why.
resource "aws_cloudwatch_metric_alarm" "parked" {
  alarm_name        = "groups-dynamill-parked"
  alarm_description = "Something can have no effect as it is and was set aside: `dynamill parked list` says what and why."
  namespace         = "dynamill"
  metric_name       = "Parked"
  dimensions = {
    Table = "groups"
  }
  statistic           = "Maximum"
  period              = 300
  evaluation_periods  = 1
  datapoints_to_alarm = 1
  comparison_operator = "GreaterThanThreshold"
  threshold           = 0
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_topic_arn == "" ? [] : [var.alarm_topic_arn]
}

# A late batch, which Lambda gave up, lies in the bucket of late batches; its changes are not derived yet.
resource "aws_cloudwatch_metric_alarm" "late_batches" {
  alarm_name        = "groups-dynamill-late-batches"
  alarm_description = "A late batch, which Lambda gave up, lies in the bucket of late batches; its changes are not derived yet."
  namespace         = "AWS/Lambda"
  metric_name       = "OnFailureDestinationDeliveredEventCount"
  dimensions = {
    EventSourceMappingUUID = aws_lambda_event_source_mapping.stream.uuid
  }
  statistic           = "Sum"
  period              = 300
  evaluation_periods  = 1
  datapoints_to_alarm = 1
  comparison_operator = "GreaterThanThreshold"
  threshold           = 0
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_topic_arn == "" ? [] : [var.alarm_topic_arn]
}

# A late batch could not be written to its bucket: look at the permissions, before it is dropped.
resource "aws_cloudwatch_metric_alarm" "undelivered_batches" {
  alarm_name        = "groups-dynamill-undelivered-batches"
  alarm_description = "A late batch could not be written to its bucket: look at the permissions, before it is dropped."
  namespace         = "AWS/Lambda"
  metric_name       = "DestinationDeliveryFailures"
  dimensions = {
    FunctionName = "groups-dynamill"
  }
  statistic           = "Sum"
  period              = 300
  evaluation_periods  = 1
  datapoints_to_alarm = 1
  comparison_operator = "GreaterThanThreshold"
  threshold           = 0
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_topic_arn == "" ? [] : [var.alarm_topic_arn]
}

# A late batch was dropped and is in no bucket either: its changes are lost.
resource "aws_cloudwatch_metric_alarm" "dropped_batches" {
  alarm_name        = "groups-dynamill-dropped-batches"
  alarm_description = "A late batch was dropped and is in no bucket either: its changes are lost."
  namespace         = "AWS/Lambda"
  metric_name       = "DroppedEventCount"
  dimensions = {
    EventSourceMappingUUID = aws_lambda_event_source_mapping.stream.uuid
  }
  statistic           = "Sum"
  period              = 300
  evaluation_periods  = 1
  datapoints_to_alarm = 1
  comparison_operator = "GreaterThanThreshold"
  threshold           = 0
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_topic_arn == "" ? [] : [var.alarm_topic_arn]
}

resource "aws_cloudwatch_dashboard" "dynamill" {
  dashboard_name = "groups-dynamill"
  dashboard_body = <<-JSON
    {
      "widgets": [
        {
          "type": "metric",
          "x": 0,
          "y": 0,
          "width": 12,
          "height": 6,
          "properties": {
            "title": "How far behind (ms)",
            "region": "${data.aws_region.current.region}",
            "stat": "Maximum",
            "period": 60,
            "metrics": [
              ["AWS/Lambda", "IteratorAge", "FunctionName", "groups-dynamill"]
            ]
          }
        },
        {
          "type": "metric",
          "x": 12,
          "y": 0,
          "width": 12,
          "height": 6,
          "properties": {
            "title": "Records: read, filtered out, handed over, failed",
            "region": "${data.aws_region.current.region}",
            "stat": "Sum",
            "period": 60,
            "metrics": [
              ["AWS/Lambda", "PolledEventCount", "EventSourceMappingUUID", "${aws_lambda_event_source_mapping.stream.uuid}"],
              ["AWS/Lambda", "FilteredOutEventCount", "EventSourceMappingUUID", "${aws_lambda_event_source_mapping.stream.uuid}"],
              ["AWS/Lambda", "InvokedEventCount", "EventSourceMappingUUID", "${aws_lambda_event_source_mapping.stream.uuid}"],
              ["AWS/Lambda", "FailedInvokeEventCount", "EventSourceMappingUUID", "${aws_lambda_event_source_mapping.stream.uuid}"],
              ["AWS/Lambda", "OnFailureDestinationDeliveredEventCount", "EventSourceMappingUUID", "${aws_lambda_event_source_mapping.stream.uuid}"],
              ["AWS/Lambda", "DroppedEventCount", "EventSourceMappingUUID", "${aws_lambda_event_source_mapping.stream.uuid}"]
            ]
          }
        },
        {
          "type": "metric",
          "x": 0,
          "y": 6,
          "width": 12,
          "height": 6,
          "properties": {
            "title": "Invocations, errors, throttles",
            "region": "${data.aws_region.current.region}",
            "stat": "Sum",
            "period": 60,
            "metrics": [
              ["AWS/Lambda", "Invocations", "FunctionName", "groups-dynamill"],
              ["AWS/Lambda", "Errors", "FunctionName", "groups-dynamill"],
              ["AWS/Lambda", "Throttles", "FunctionName", "groups-dynamill"]
            ]
          }
        },
        {
          "type": "metric",
          "x": 12,
          "y": 6,
          "width": 12,
          "height": 6,
          "properties": {
            "title": "Duration (ms)",
            "region": "${data.aws_region.current.region}",
            "stat": "Maximum",
            "period": 60,
            "metrics": [
              ["AWS/Lambda", "Duration", "FunctionName", "groups-dynamill"]
            ]
          }
        },
        {
          "type": "metric",
          "x": 0,
          "y": 12,
          "width": 12,
          "height": 6,
          "properties": {
            "title": "Parked",
            "region": "${data.aws_region.current.region}",
            "stat": "Maximum",
            "period": 60,
            "metrics": [
              ["dynamill", "Parked", "Table", "groups"]
            ]
          }
        },
        {
          "type": "metric",
          "x": 12,
          "y": 12,
          "width": 12,
          "height": 6,
          "properties": {
            "title": "Capacity of table and state table",
            "region": "${data.aws_region.current.region}",
            "stat": "Sum",
            "period": 60,
            "metrics": [
              ["AWS/DynamoDB", "ConsumedWriteCapacityUnits", "TableName", "groups"],
              ["AWS/DynamoDB", "ConsumedWriteCapacityUnits", "TableName", "groups-dynamill"],
              ["AWS/DynamoDB", "ConsumedReadCapacityUnits", "TableName", "groups-dynamill"],
              ["AWS/DynamoDB", "ThrottledRequests", "TableName", "groups-dynamill", "Operation", "TransactWriteItems"]
            ]
          }
        }
      ]
    }
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
