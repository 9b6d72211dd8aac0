package infra

import "slices"

// cloudFormationReferences are the placeholders' words in CloudFormation.
var cloudFormationReferences = map[string]string{
	"partition": "AWS::Partition", "region": "AWS::Region", "account": "AWS::AccountId",
	"stream": "StreamArn", "mapping": "StreamMapping", "bucket": "LateBatches.Arn", "bucketName": "LateBatches",
	"logs": "LogGroup.Arn", "role": "Role.Arn", "roleName": "Role", "function": "Function.Arn", "functionName": "Function",
	"schedule":   "TaskSchedule.Arn",
	"replayLogs": "ReplayLogGroup.Arn", "replayRole": "ReplayRole.Arn", "replayFunction": "ReplayFunction.Arn",
	"machineRole": "ReplayMachineRole.Arn", "machine": "ReplayMachine",
	"codeBucket": "CodeBucket", "codeKey": "CodeKey",
}

// cloudFormation writes a template of CloudFormation, or of SAM, which differs in
// how the function's code is found: a local path, that `sam deploy` uploads.
func (d deployment) cloudFormation(sam bool) string {
	command := string(CloudFormation)
	if sam {
		command = string(SAM)
	}
	top := block{{comment: d.head(command), key: "AWSTemplateFormatVersion", value: "2010-09-09"}}
	if sam {
		top = append(top, entry{key: "Transform", value: "AWS::Serverless-2016-10-31"})
	}
	var resources block
	if !d.KeepStateTable {
		resources = append(resources, d.cfnStateTable())
	}
	resources = slices.Concat(resources, d.cfnBucket(), block{
		d.cfnLogGroup(whyLogs, "LogGroup", d.functionName()), cfnRole(whyRole, "Role", lambdaService, d.statements),
		d.cfnFunction(sam, d.streamFunction()), d.cfnMapping()},
		d.cfnSchedule(), d.cfnReplay(sam), d.cfnAlarms(), block{d.cfnDashboard()})
	top = append(top,
		entry{key: "Description", value: "dynamill for table " + d.Table},
		entry{key: "Parameters", value: d.cfnParameters(sam)},
		entry{key: "Conditions", value: block{{key: "HasAlarmTopic", value: raw("!Not [!Equals [!Ref AlarmTopicArn, '']]")}}},
		entry{key: "Resources", value: resources},
		entry{key: "Outputs", value: slices.Concat(block{
			{key: "FunctionName", value: block{{key: "Value", value: sub("${functionName}")}}},
			{key: "LateBatchesBucket", value: block{{key: "Value", value: sub("${bucketName}")}}},
			{key: "RoleName", value: block{{key: "Value", value: sub("${roleName}")}}},
		}, d.cfnReplayOutputs())})
	return yamlOf(top, cloudFormationReferences)
}

// resource is one resource; extra are its attributes beside type and properties.
func resource(comment, id, kind string, properties block, extra ...entry) entry {
	value := slices.Concat(block{{key: "Type", value: kind}}, block(extra), block{{key: "Properties", value: properties}})
	return entry{comment: comment, key: id, value: value}
}

// kept are the attributes of a resource that outlives the stack.
func kept() []entry {
	return []entry{{key: "DeletionPolicy", value: "Retain"}, {key: "UpdateReplacePolicy", value: "Retain"}}
}

func (d deployment) cfnParameters(sam bool) block {
	parameters := block{{
		comment: "aws dynamodb describe-table --table-name " + d.Table + " --query Table.LatestStreamArn --output text",
		key:     "StreamArn", value: block{
			{key: "Type", value: "String"},
			{key: "Description", value: "ARN of the stream of table " + d.Table + ", which must hold new and old images"},
			{key: "AllowedPattern", value: d.streamPattern()},
			{key: "ConstraintDescription", value: "the ARN of a stream of table " + d.Table},
		}}}
	if !sam {
		parameters = append(parameters,
			entry{comment: "The zip with " + d.zipHolds() + ".", key: "CodeBucket",
				value: block{{key: "Type", value: "String"}, {key: "Description", value: "S3 bucket that holds the function's zip"}}},
			entry{key: "CodeKey", value: block{{key: "Type", value: "String"}, {key: "Description", value: "key of the zip in that bucket"}}})
	}
	return append(parameters, entry{key: "AlarmTopicArn", value: block{
		{key: "Type", value: "String"},
		{key: "Default", value: d.AlarmTopic},
		{key: "Description", value: "ARN of the SNS topic that alarms go to; empty for none"},
	}})
}

func (d deployment) cfnStateTable() entry {
	attribute := func(name string) block {
		return block{{key: "AttributeName", value: name}, {key: "AttributeType", value: "S"}}
	}
	key := func(name, kind string) block {
		return block{{key: "AttributeName", value: name}, {key: "KeyType", value: kind}}
	}
	return resource(whyStateTable, "StateTable", "AWS::DynamoDB::Table", block{
		{key: "TableName", value: d.StateTable},
		{key: "BillingMode", value: "PAY_PER_REQUEST"},
		{key: "AttributeDefinitions", value: list{attribute("pk"), attribute("sk")}},
		{key: "KeySchema", value: list{key("pk", "HASH"), key("sk", "RANGE")}},
		{key: "TimeToLiveSpecification", value: block{{key: "AttributeName", value: "ttl"}, {key: "Enabled", value: true}}},
		{key: "PointInTimeRecoverySpecification", value: block{{key: "PointInTimeRecoveryEnabled", value: !d.NoBackups}}},
		{key: "DeletionProtectionEnabled", value: true},
	}, kept()...)
}

func (d deployment) cfnBucket() block {
	return block{
		resource(whyBucket, "LateBatches", "AWS::S3::Bucket", block{
			{key: "BucketEncryption", value: block{{key: "ServerSideEncryptionConfiguration", value: list{block{
				{key: "ServerSideEncryptionByDefault", value: block{{key: "SSEAlgorithm", value: "AES256"}}}}}}}},
			{key: "PublicAccessBlockConfiguration", value: block{
				{key: "BlockPublicAcls", value: true}, {key: "BlockPublicPolicy", value: true},
				{key: "IgnorePublicAcls", value: true}, {key: "RestrictPublicBuckets", value: true}}},
			{key: "OwnershipControls", value: block{{key: "Rules", value: list{block{{key: "ObjectOwnership", value: "BucketOwnerEnforced"}}}}}},
			{key: "LifecycleConfiguration", value: block{{key: "Rules", value: list{block{
				{key: "Id", value: "expire"}, {key: "Status", value: "Enabled"}, {key: "ExpirationInDays", value: lateBatchDays}}}}}},
		}, kept()...),
		resource("", "LateBatchesPolicy", "AWS::S3::BucketPolicy", block{
			{key: "Bucket", value: sub("${bucketName}")},
			{key: "PolicyDocument", value: encryptedOnly()},
		}),
	}
}

func (d deployment) cfnLogGroup(why, id, function string) entry {
	return resource(why, id, "AWS::Logs::LogGroup", block{
		{key: "LogGroupName", value: "/aws/lambda/" + function},
		{key: "RetentionInDays", value: d.RetentionDays},
	})
}

func cfnRole(why, id, service string, statements []statement) entry {
	return resource(why, id, "AWS::IAM::Role", block{
		{key: "AssumeRolePolicyDocument", value: assumedBy(service)},
		{key: "Policies", value: list{block{
			{key: "PolicyName", value: "dynamill"},
			{key: "PolicyDocument", value: policy(statements)},
		}}},
	})
}

func (d deployment) cfnFunction(sam bool, f function) entry {
	properties := block{
		{key: "FunctionName", value: f.name},
		{key: "Description", value: f.description},
		{key: "Runtime", value: "provided.al2023"},
		{key: "Architectures", value: list{d.Architecture}},
		{key: "Handler", value: "bootstrap"},
	}
	kind := "AWS::Lambda::Function"
	if sam {
		kind = "AWS::Serverless::Function"
		properties = append(properties, entry{comment: "A zip with " + d.zipHolds() + ".", key: "CodeUri", value: d.Code})
	} else {
		properties = append(properties, entry{key: "Code", value: block{{key: "S3Bucket", value: sub("${codeBucket}")},
			{key: "S3Key", value: sub("${codeKey}")}}})
	}
	properties = append(properties, block{
		{key: "MemorySize", value: d.MemoryMB},
		{key: "Timeout", value: seconds(f.timeout)},
		{key: "Role", value: f.role},
		{key: "Environment", value: block{{key: "Variables", value: d.environment()}}},
	}...)
	if sam {
		properties = append(properties, entry{key: "Tracing", value: "Active"})
	} else {
		properties = append(properties, entry{key: "TracingConfig", value: block{{key: "Mode", value: "Active"}}})
	}
	return resource(f.why, f.id, kind, properties, entry{key: "DependsOn", value: f.logGroup})
}

func (d deployment) cfnMapping() entry {
	properties := block{
		{key: "EventSourceArn", value: sub("${stream}")},
		{key: "FunctionName", value: sub("${functionName}")},
		{key: "StartingPosition", value: "TRIM_HORIZON"},
		{key: "BatchSize", value: d.BatchSize},
		{key: "MaximumBatchingWindowInSeconds", value: seconds(d.Window)},
		{key: "ParallelizationFactor", value: d.Parallelization},
		{key: "FunctionResponseTypes", value: list{"ReportBatchItemFailures"}},
		{key: "BisectBatchOnFunctionError", value: true},
		{key: "MaximumRetryAttempts", value: retriesMax},
		{key: "MaximumRecordAgeInSeconds", value: seconds(recordAgeMax)},
		{key: "DestinationConfig", value: block{{key: "OnFailure", value: block{{key: "Destination", value: sub("${bucket}")}}}}},
		{comment: whyMetrics, key: "MetricsConfig", value: block{{key: "Metrics", value: list{"EventCount"}}}},
	}
	if len(d.filters) > 0 {
		var filters list
		for _, pattern := range d.filters {
			filters = append(filters, block{{key: "Pattern", value: pattern}})
		}
		properties = append(properties, entry{comment: whyFilters, key: "FilterCriteria", value: block{{key: "Filters", value: filters}}})
	}
	return resource(d.whyMapping(), "StreamMapping", "AWS::Lambda::EventSourceMapping", properties)
}

func (d deployment) cfnSchedule() block {
	return block{
		resource(whySchedule, "TaskSchedule", "AWS::Events::Rule", block{
			{key: "Description", value: "durable tasks of " + d.functionName()},
			{key: "ScheduleExpression", value: "rate(1 minute)"},
			{key: "Targets", value: list{block{
				{key: "Id", value: "tasks"}, {key: "Arn", value: sub("${function}")}, {key: "Input", value: tasksPayload}}}},
		}),
		resource("", "TaskPermission", "AWS::Lambda::Permission", block{
			{key: "Action", value: "lambda:InvokeFunction"},
			{key: "FunctionName", value: sub("${functionName}")},
			{key: "Principal", value: "events.amazonaws.com"},
			{key: "SourceArn", value: sub("${schedule}")},
		}),
		resource(whyInvoke, "TaskInvocations", "AWS::Lambda::EventInvokeConfig", block{
			{key: "FunctionName", value: sub("${functionName}")},
			{key: "Qualifier", value: "$LATEST"},
			{key: "MaximumRetryAttempts", value: taskRetries},
			{key: "MaximumEventAgeInSeconds", value: seconds(taskAgeMax)},
		}),
	}
}

func (d deployment) cfnAlarms() block {
	topic := raw("!If [HasAlarmTopic, [!Ref AlarmTopicArn], !Ref 'AWS::NoValue']")
	var resources block
	for _, a := range alarms(d.Options) {
		resources = append(resources, resource(a.why, a.id, "AWS::CloudWatch::Alarm", block{
			{key: "AlarmName", value: d.functionName() + "-" + a.name},
			{key: "AlarmDescription", value: a.why},
			{key: "Namespace", value: a.metric.namespace},
			{key: "MetricName", value: a.metric.name},
			{key: "Dimensions", value: list{block{{key: "Name", value: a.metric.dimension}, {key: "Value", value: a.metric.value}}}},
			{key: "Statistic", value: a.statistic},
			{key: "Period", value: seconds(a.period)},
			{key: "EvaluationPeriods", value: a.of},
			{key: "DatapointsToAlarm", value: a.periods},
			{key: "ComparisonOperator", value: "GreaterThanThreshold"},
			{key: "Threshold", value: a.threshold},
			{key: "TreatMissingData", value: "notBreaching"},
			{key: "AlarmActions", value: topic},
		}))
	}
	return resources
}

func (d deployment) cfnDashboard() entry {
	return resource("", "Dashboard", "AWS::CloudWatch::Dashboard", block{
		{key: "DashboardName", value: d.functionName()},
		{key: "DashboardBody", value: encoded{dashboard(d.Options)}},
	})
}
