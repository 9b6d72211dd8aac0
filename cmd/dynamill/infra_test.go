package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/settings"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/template"
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
		want, err := os.ReadFile("../../internal/infra/testdata/groups/" + file)
		if err != nil {
			t.Fatal(err)
		}
		code, stdout, stderr := command(t, "infra", format, "--rules", groupsRules, "--table", "groups")
		if code != ending.ExitDone || stdout != string(want) || stderr != "" {
			t.Errorf("infra %s: exit code %d, %q on standard error, or another template than infra's golden file", format, code, stderr)
		}
		output := filepath.Join(t.TempDir(), file)
		code, stdout, _ = command(t, "infra", format, "--rules", groupsRules, "--table", "groups", "-o", output)
		got, err := os.ReadFile(output)
		if code != ending.ExitDone || stdout != "" || err != nil || !bytes.Equal(got, want) {
			t.Errorf("infra %s -o: exit code %d, %d bytes on standard output, %v, or another template", format, code, len(stdout), err)
		}
	}
}

func TestInfraFlagsReachTheTemplate(t *testing.T) {
	code, stdout, stderr := command(t, "infra", "sam", "--rules", groupsRules, "--table", "app", "--state-table", "memory", "--arch", "x86_64",
		"--memory-size", "1024", "--timeout", "5m", "--batch-size", "50", "--window", "2s", "--parallelization", "7", "--retention", "14",
		"--alarm-topic", "arn:aws:sns:eu-west-1:123456789012:pager", "--code", "build/function.zip", "--no-backups")
	if code != ending.ExitDone {
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
	if _, stdout, _ = command(t, "infra", "sam", "--rules", groupsRules, "--table", "app", "--keep-state-table"); strings.Contains(stdout,
		"AWS::DynamoDB::Table") {
		t.Error("--keep-state-table: the template holds a state table")
	}
}

func writeRules(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestInfraSetsUpWhereTheFunctionReadsItsRules(t *testing.T) {
	const oneLine = `{version: 1, table: {keys: [pk, sk]}, entities: {A: {key: {pk: "A#${a}", sk: A}}, B: {key: {pk: "A#${a}", sk: "B#${b}"}}}, rules: {n: {count: B, as: A.n}}}`
	for from, want := range map[string][]string{
		"zip":                 {"DYNAMILL_RULES: 'a rule.yaml'\n", "rule file a rule.yaml"},
		"inline":              {`DYNAMILL_RULES: "{version: 1, `, `\n"` + "\n"},
		"s3://rules/app.yaml": {"DYNAMILL_RULES: 's3://rules/app.yaml'\n", "Action: 's3:GetObject'\n", ":s3:::rules/app.yaml'\n"},
		"ssm:/app/rules":      {"DYNAMILL_RULES: 'ssm:/app/rules'\n", "Action: 'ssm:GetParameter'\n", ":parameter/app/rules'\n"},
	} {
		code, stdout, stderr := command(t, "infra", "sam", "--rules", writeRules(t, "a rule.yaml", oneLine), "--table", "app", "--rules-from",
			from)
		if code != ending.ExitDone || stderr != "" {
			t.Errorf("--rules-from %s: exit code %d, %s", from, code, stderr)
		}
		for _, w := range want {
			if !strings.Contains(stdout, w) {
				t.Errorf("--rules-from %s: the template does not hold %q", from, w)
			}
		}
		if granted := strings.Contains(stdout, "Sid: Rules\n"); granted != strings.Contains(from, ":") {
			t.Errorf("--rules-from %s: the template holds a statement for the rules: %v", from, granted)
		}
	}
}

func TestInfraRefusesWhatCannotBeDeployed(t *testing.T) {
	t.Setenv(settings.TableVariable, "")
	rules := []string{"--rules", groupsRules, "--table", "app"}
	text, err := os.ReadFile(groupsRules)
	if err != nil {
		t.Fatal(err)
	}
	oddName := writeRules(t, "ssm:rules.yaml", string(text))
	longFile := writeRules(t, "long.yaml", string(text)+strings.Repeat("# a comment\n", 400))
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--rules", groupsRules}, "no table is named"},
		{[]string{"--rules", "nowhere.yaml", "--table", "app"}, "no rule file"},
		{append(rules, "--arch", "riscv"), `"riscv" is neither arm64 nor x86_64`},
		{append(rules, "--memory-size", "64"), "64 MB of memory"},
		{append(rules, "--memory-size", "0"), "dynamill: --memory-size cannot be 0\n"},
		{append(rules, "--timeout", "0", "--retention", "0"), "dynamill: --timeout and --retention cannot be 0\n"},
		{append(rules, "--timeout", "16m"), "a timeout of 16m"},
		{append(rules, "--timeout", "1500ms"), "whole seconds"},
		{append(rules, "--batch-size", "10001"), "batch size of 10001"},
		{append(rules, "--window", "-1s"), "window of -1s"},
		{append(rules, "--parallelization", "11"), "parallelization of 11"},
		{append(rules, "--retention", "2"), "retention of 2 days"},
		{append(rules, "--alarm-topic", "pager"), `"pager" is not the ARN`},
		{append(rules, "--state-table", "app"), "cannot be the table itself"},
		{append(rules, "--rules-from", "bucket/key"), "none of zip, inline, s3://BUCKET/KEY and ssm:NAME"},
		{append(rules, "--rules-from", ""), "none of zip, inline"},
		{append(rules, "--rules-from", "ssm:a\nb"), "none of zip, inline"},
		{append(rules, "--rules-from", "s3://bucket"), "is not s3://bucket/key"},
		{append(rules, "--rules-from", "s3://bucket/*"), "permission for just this object"},
		{append(rules, "--rules-from", "ssm:/app/rules:7"), "is not ssm:NAME"},
		{append(rules, "--rules", oddName), "give it another one"},
		{append(rules, "--rules", longFile, "--rules-from", "inline"), "too long for a variable"},
		{append(rules, "--table", "a/b"), `--table "a/b" is no table's name`},
		{append(rules, "surplus"), "surplus"},
		{append(rules, "--former-rules", "nowhere.yaml"), "give it with --former-rules FILE"},
	} {
		code, stdout, stderr := command(t, append([]string{"infra", "sam"}, c.args...)...)
		if code != ending.ExitInvalid || stdout != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("%v: exit code %d, %d bytes on standard output, %q; want an error about %q", c.args, code, len(stdout), stderr, c.want)
		}
	}
	if code, _, stderr := command(t, append([]string{"infra", "cloudformation", "--code", "x.zip"},
		rules...)...); code != ending.ExitInvalid || !strings.Contains(stderr, "CodeBucket and CodeKey") {
		t.Errorf("cloudformation --code: exit code %d, %s", code, stderr)
	}
	if code, _, stderr := command(t, append([]string{"infra", "pulumi"}, rules...)...); code != ending.ExitInvalid ||
		!strings.Contains(stderr, "cloudformation, sam, state-machine, terraform") {
		t.Errorf("an unknown format: exit code %d, %s", code, stderr)
	}
}

func TestInfraSaysWhatItCannotWrite(t *testing.T) {
	code, _, stderr := command(t, "infra", "sam", "--rules", groupsRules, "--table", "app", "-o",
		filepath.Join(t.TempDir(), "no", "such", "folder"))
	if code != ending.ExitFailed || !strings.Contains(stderr, "writing the template") {
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
	addInfraFlags(flags, &template.Options{})
	flags.VisitAll(func(f *pflag.Flag) {
		if !strings.Contains(string(document), "`--"+f.Name+"`") {
			t.Errorf("docs/lambda.md does not tell of --%s", f.Name)
		}
	})
}
