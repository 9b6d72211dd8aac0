package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

const groupsRules = "../../examples/groups/dynamill.yaml"

// command runs a command line within the test's process.
func command(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = execute(t.Context(), args, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

func TestInfraWritesWhatTheLibraryMakes(t *testing.T) {
	for format, file := range map[string]string{"sam": "sam.yaml", "cloudformation": "cloudformation.yaml", "terraform": "terraform.tf"} {
		want, err := os.ReadFile("../../infra/testdata/groups/" + file)
		if err != nil {
			t.Fatal(err)
		}
		code, stdout, stderr := command(t, "infra", format, "--rules", groupsRules, "--table", "groups")
		if code != exitDone || stdout != string(want) || stderr != "" {
			t.Errorf("infra %s: exit code %d, %q on standard error, or another template than infra's golden file", format, code, stderr)
		}
		output := filepath.Join(t.TempDir(), file)
		code, stdout, _ = command(t, "infra", format, "--rules", groupsRules, "--table", "groups", "-o", output)
		got, err := os.ReadFile(output)
		if code != exitDone || stdout != "" || err != nil || !bytes.Equal(got, want) {
			t.Errorf("infra %s -o: exit code %d, %d bytes on standard output, %v, or another template", format, code, len(stdout), err)
		}
	}
}

func TestInfraFlagsReachTheTemplate(t *testing.T) {
	code, stdout, stderr := command(t, "infra", "sam", "--rules", groupsRules, "--table", "app", "--state-table", "memory", "--arch", "x86_64",
		"--memory", "1024", "--timeout", "5m", "--batch-size", "50", "--window", "2s", "--parallelization", "7", "--retention", "14",
		"--alarm-topic", "arn:aws:sns:eu-west-1:123456789012:pager", "--code", "build/function.zip", "--no-backups")
	if code != exitDone {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	for _, want := range []string{
		"TableName: memory", "- x86_64", "MemorySize: 1024", "Timeout: 300", "BatchSize: 50", "MaximumBatchingWindowInSeconds: 2",
		"ParallelizationFactor: 7", "RetentionInDays: 14", "Default: 'arn:aws:sns:eu-west-1:123456789012:pager'",
		"CodeUri: build/function.zip", "PointInTimeRecoveryEnabled: false", "DYNAMILL_TABLE: app", "DYNAMILL_STATE_TABLE: memory",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("the template does not hold %q", want)
		}
	}
	if _, stdout, _ = command(t, "infra", "sam", "--rules", groupsRules, "--table", "app", "--keep-state-table"); strings.Contains(stdout, "AWS::DynamoDB::Table") {
		t.Error("--keep-state-table: the template holds a state table")
	}
}

func TestInfraRefusesWhatCannotBeDeployed(t *testing.T) {
	t.Setenv(tableVariable, "")
	rules := []string{"--rules", groupsRules, "--table", "app"}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--rules", groupsRules}, "no table is named"},
		{[]string{"--rules", "nowhere.yaml", "--table", "app"}, "no rule file"},
		{append(rules, "--arch", "riscv"), `"riscv" is neither arm64 nor x86_64`},
		{append(rules, "--memory", "64"), "64 MB of memory"},
		{append(rules, "--memory", "0"), "cannot be 0"},
		{append(rules, "--timeout", "16m"), "a timeout of 16m"},
		{append(rules, "--timeout", "1500ms"), "whole seconds"},
		{append(rules, "--batch-size", "10001"), "batch size of 10001"},
		{append(rules, "--window", "-1s"), "window of -1s"},
		{append(rules, "--parallelization", "11"), "parallelization of 11"},
		{append(rules, "--retention", "2"), "retention of 2 days"},
		{append(rules, "--alarm-topic", "pager"), `"pager" is not the ARN`},
		{append(rules, "--state-table", "app"), "cannot be the table itself"},
		{append(rules, "--table", "a/b"), `"a/b" is not one that DynamoDB allows`},
		{append(rules, "surplus"), "surplus"},
	} {
		code, stdout, stderr := command(t, append([]string{"infra", "sam"}, c.args...)...)
		if code != exitInvalid || stdout != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("%v: exit code %d, %d bytes on standard output, %q; want an error about %q", c.args, code, len(stdout), stderr, c.want)
		}
	}
	if code, _, stderr := command(t, append([]string{"infra", "pulumi"}, rules...)...); code != exitInvalid {
		t.Errorf("an unknown format: exit code %d, %s", code, stderr)
	}
}

func TestInfraSaysWhatItCannotWrite(t *testing.T) {
	code, _, stderr := command(t, "infra", "sam", "--rules", groupsRules, "--table", "app", "-o", filepath.Join(t.TempDir(), "no", "such", "folder"))
	if code != exitFailed || !strings.Contains(stderr, "writing the template") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// docs/lambda.md says of every flag what it is for.
func TestInfraFlagsAreDocumented(t *testing.T) {
	document, err := os.ReadFile("../../docs/lambda.md")
	if err != nil {
		t.Fatal(err)
	}
	flags := pflag.NewFlagSet("infra", pflag.ContinueOnError)
	new(infraFlags).addTo(flags)
	flags.VisitAll(func(f *pflag.Flag) {
		if !strings.Contains(string(document), "`--"+f.Name+"`") {
			t.Errorf("docs/lambda.md does not tell of --%s", f.Name)
		}
	})
}
