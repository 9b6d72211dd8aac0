package infra

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/dynamill/dynamill/internal/proof/schemas"
	"github.com/dynamill/dynamill/internal/sim/pattern"
)

// installed returns the schemas that templates are held to. Without npm, which installs them, the
// test is skipped; `make test` takes no skipped test.
func installed(t *testing.T) *schemas.Schemas {
	t.Helper()
	if _, err := exec.LookPath("npm"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("npm is missing: it installs the schemas of templates")
		}
		t.Skip("npm is missing: it installs the schemas of templates")
	}
	s, err := schemas.Installed()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func check(s *schemas.Schemas, format Format, template string) []string {
	if format == Terraform {
		return s.Terraform([]byte(template))
	}
	return s.CloudFormation([]byte(template))
}

// options are ones that show in a template, each in another way.
func options() map[string]Options {
	return map[string]Options{
		"defaults": {Table: "app"},
		"all options": {Table: "app", StateTable: "app-memory", Code: "a b/\"c\".zip", RulesFile: "rules.yaml", Architecture: "x86_64",
			MemoryMB: 128,
			Timeout:  time.Second, BatchSize: 1, Window: time.Minute, Parallelization: 10, RetentionDays: 1,
			AlarmTopic: "arn:aws:sns:eu-west-1:123456789012:pager", KeepStateTable: true, NoBackups: true},
		"a name with dots":         {Table: "prod.app_TABLE"},
		"a name like a number":     {Table: "1234567890"},
		"the longest name":         {Table: strings.Repeat("x", 246)},
		"a name like another word": {Table: "true"},
		"rules in S3":              {Table: "app", RulesFrom: "s3://rules.example/a b/'c'(1)=@.yaml"},
		"rules in a parameter":     {Table: "app", RulesFrom: "ssm:/app/rules"},
		"rules as text":            {Table: "app", RulesFrom: inlineRules},
		"a replay":                 {Table: "app", Replay: true},
		"a replay of exports": {Table: strings.Repeat("x", 230) + ".y", RulesFrom: "ssm:/app/rules", Replay: true, ReplayConcurrency: 1000,
			ReplayExports: "s3://exports.example/a b/'c'(1)=@/"},
	}
}

func TestTemplatesAreWhatAWSAndTerraformTake(t *testing.T) {
	s := installed(t)
	for _, format := range Formats() {
		for _, name := range exampleNames {
			for which, o := range options() {
				for _, problem := range check(s, format, generate(t, format, name, o)) {
					t.Errorf("%s of %s with %s: %s", format, name, which, problem)
				}
			}
		}
	}
}

// Each kind of mistake is found: a validator that takes everything proves nothing.
func TestBrokenTemplatesAreRefused(t *testing.T) {
	s := installed(t)
	cfn, tf := []Format{SAM, CloudFormation}, []Format{Terraform}
	for _, c := range []struct {
		formats      []Format
		right, wrong string
		want         string
	}{
		{cfn, "AWS::Lambda::EventSourceMapping", "AWS::Lambda::EventSource", "no type"},
		{cfn, "BisectBatchOnFunctionError: true", "BisectBatchOnError: true", "no property BisectBatchOnError"},
		{cfn, "BisectBatchOnFunctionError: true", "BisectBatchOnFunctionError: 'true'", "wants boolean"},
		{cfn, "BatchSize: 1000", "BatchSize: many", "wants integer"},
		{cfn, "MaximumRetryAttempts: -1", "MaximumRetryAttempts: forever", "wants integer"},
		{cfn, "BatchSize: 1000", "BatchSize: !Ref StreamArn", "wants integer"},
		{cfn, "        - Pattern:", "        - Patterns:", "no property Patterns"},
		{cfn, "      FunctionName: !Ref Function\n      StartingPosition", "      StartingPosition", "needs FunctionName"},
		{cfn, "!Ref StreamArn", "!Ref StreamARN", "refers to StreamARN"},
		{cfn, "!GetAtt LateBatches.Arn", "!GetAtt LateBatches.ARN", "refers to LateBatches.ARN"},
		{cfn, "${AWS::Region}", "${Region}", "refers to Region"},
		{cfn, "DependsOn: LogGroup", "DependsOn: Logs", "depends on Logs"},
		{cfn, "HasAlarmTopic, [", "HasAlarm, [", "wants a condition"},
		{cfn, "DeletionPolicy: Retain", "DeletePolicy: Retain", "no DeletePolicy"},
		{cfn, "'dynamodb:BatchGetItem'", "'dynamodb:TransactGetItems'", `no action "dynamodb:TransactGetItems"`},
		{cfn, "Action: 'dynamodb:ListStreams'", "Action: 'dynamodb:GetRecords'", "allowed on everything"},
		{cfn, "Version: '2012-10-17'", "Version: '2012-10-18'", "version"},
		{cfn, "Resources:\n", "Resource:\n", "no such section"},
		{cfn, "      BatchSize: 1000\n", "      BatchSize: 1000\n      BatchSize: 1000\n", "BatchSize"},
		{cfn, "DefinitionString", "DefinitionText", "no property DefinitionText"},
		{cfn, `"Default": "Pieces"`, `"Default": "Piece"`, "no state Piece"},
		{cfn, `"Next": "GivenUp"`, `"Next": "Given"`, "no state Given"},
		{cfn, `"Catch": [`, `"Caught": [`, "no field Caught"},
		{cfn, `"StartAt": "Work",`, `"StartAt": "Work"`, "no JSON"},
		{cfn, `"ResultPath": null,`, `"ResultsPath": null,`, "no field ResultsPath"},
		{cfn, "'states:StartExecution'", "'states:StartExecutions'", `no action "states:StartExecutions"`},
		{[]Format{SAM}, "Transform: 'AWS::Serverless-2016-10-31'\n", "", "needs SAM's transform"},
		{[]Format{SAM}, "CodeUri:", "CodeURI:", "no property CodeURI"},

		{tf, "batch_size  ", "batch_sizes ", "no argument batch_sizes"},
		{tf, "= 1000\n", "= \"many\"\n", "wants number"},
		{tf, "= -1\n", "= \"forever\"\n", "wants number"},
		{tf, "  destination_config {", "  destinations_config {", "no block destinations_config"},
		{tf, "destination_arn = ", "destination_aro = ", "needs destination_arn"},
		{tf, "= var.stream_arn", "= var.stream_aro", "stream_aro"},
		{tf, "aws_s3_bucket.late_batches.arn", "aws_s3_bucket.failed.arn", "failed"},
		{tf, "stream.uuid", "stream.uuids", "uuids"},
		{tf, `resource "aws_s3_bucket_policy"`, `resource "aws_s3_policy"`, "no such resource"},
		{tf, `data "aws_region" "current" {}`, `data "aws_region" "here" {}`, "current"},
		{tf, "memory_size      =", "memory_size =", "terraform fmt"},
		{tf, `"dynamodb:BatchGetItem"`, `"dynamodb:TransactGetItems"`, `no action "dynamodb:TransactGetItems"`},
		{tf, `Action   = "dynamodb:ListStreams"`, `Action   = "dynamodb:GetRecords"`, "allowed on everything"},
		{tf, `definition = <<`, `definitions = <<`, "no argument definitions"},
		{tf, `"Default": "Pieces"`, `"Default": "Piece"`, "no state Piece"},
		{tf, `"Type": "Succeed"`, `"Type": "Success"`, "no type Success"},
		{tf, "jsonencode", "jsonencoded", "jsonencoded"},
		{tf, `resource "aws_iam_role" "function" {`, `resource "aws_iam_role" "function" `, ""},
	} {
		for _, format := range c.formats {
			whole := generate(t, format, "groups", Options{Replay: true})
			if !strings.Contains(whole, c.right) {
				t.Fatalf("%s: the template does not hold %q", format, c.right)
			}
			found := strings.Join(check(s, format, strings.Replace(whole, c.right, c.wrong, 1)), "\n")
			if found == "" || !strings.Contains(found, c.want) {
				t.Errorf("%s with %q for %q: found %q, want something about %q", format, c.wrong, c.right, found, c.want)
			}
		}
	}
}

// The filters reach the mapping as they are, in every language.
func TestTemplatesHoldTheFilters(t *testing.T) {
	for _, name := range exampleNames {
		for _, text := range Filters(example(t, name), nil) {
			if _, err := pattern.Parse([]byte(text)); err != nil {
				t.Fatal(err)
			}
			for _, format := range Formats() {
				written := "Pattern: " + yamlText(text)
				if format == Terraform {
					written = "pattern = " + hclText(text)
				}
				if template := generate(t, format, name, Options{}); !strings.Contains(template, written) {
					t.Errorf("%s of %s does not hold %s", format, name, written)
				}
			}
		}
	}
}
