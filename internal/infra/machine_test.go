package infra

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The definition that templates hold is the one that is written alone.
func TestTheDefinitionOfAReplay(t *testing.T) {
	const file = "testdata/replay.asl.json"
	got, err := Definition(Options{Table: "app"})
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s is not what is made now (go test ./infra -update writes it):\n%s", file, diff)
	}
	inTemplate := strings.NewReplacer("${ReplayFunctionArn}", "${ReplayFunction.Arn}", "${Partition}",
		"${AWS::Partition}").Replace(string(got))
	inTemplate = strings.ReplaceAll(strings.TrimSpace(inTemplate), "\n", "\n        ")
	if template := generate(t, CloudFormation, "groups", Options{Table: "app", Replay: true}); !strings.Contains(template, inTemplate) {
		t.Errorf("the template holds another definition than\n%s", inTemplate)
	}
}

func TestOnlyATemplateWithAReplayHasOne(t *testing.T) {
	for _, format := range Formats() {
		if template := generate(t, format, "groups", Options{}); strings.Contains(template, "Scan") ||
			strings.Contains(strings.ToLower(template), "replay") {
			t.Errorf("%s: the template without a replay speaks of one, or allows to scan", format)
		}
		with := generate(t, format, "groups", Options{Replay: true, ReplayConcurrency: 7, ReplayExports: "s3://exports/app"})
		for _, want := range []string{"groups-dynamill-replay", "MaxConcurrency", "exports/app/*", "states.amazonaws.com"} {
			if !strings.Contains(with, want) {
				t.Errorf("%s: the template has no %s", format, want)
			}
		}
		if strings.Contains(with, "eservedConcurrentExecutions") || strings.Contains(with, "reserved_concurrent_executions") {
			t.Errorf("%s: concurrency is taken from the account's other functions", format)
		}
	}
}

func TestWrongOptionsOfAReplayAreTold(t *testing.T) {
	for want, o := range map[string]Options{
		"a replay of -1 pieces":                  {Replay: true, ReplayConcurrency: -1},
		"a replay of 1001 pieces":                {Replay: true, ReplayConcurrency: 1001},
		"which is not asked for":                 {ReplayExports: "s3://exports"},
		`"exports" is not s3://bucket`:           {Replay: true, ReplayExports: "exports"},
		`"s3://Exports" is not s3://bucket`:      {Replay: true, ReplayExports: "s3://Exports"},
		`"s3://exports/a*" is not s3://bucket`:   {Replay: true, ReplayExports: "s3://exports/a*"},
		`"s3://exports/${a}" is not s3://bucket`: {Replay: true, ReplayExports: "s3://exports/${a}"},
		`"s3://exports/a\nb" is not s3://bucket`: {Replay: true, ReplayExports: "s3://exports/a\nb"},
	} {
		o.Table = "app"
		if _, err := Generate(SAM, example(t, "groups"), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", o, err, want)
		}
	}
}

func TestAFunctionThatReplaysHasANameOfItsOwn(t *testing.T) {
	for _, table := range []string{"app", "prod.app", strings.Repeat("x", 230)} {
		o, err := Options{Table: table}.complete()
		if err != nil {
			t.Fatal(err)
		}
		if name := o.ReplayName(); name == o.FunctionName() || len(name) > functionNameMax || strings.Contains(name, ".") {
			t.Errorf("table %s: the function is %s, the one that replays %s", table, o.FunctionName(), name)
		}
	}
}

// What former rules wrote is taken back with their permissions.
func TestFormerRulesKeepTheirPermissions(t *testing.T) {
	set := load(t, entities+"rules: { r: { count: Membership, as: Group.members } }\n")
	former := load(t, entities+"rules: { r: { mirror: Membership, as: Member } }\n")
	without := permissionsOf(set, Options{Table: "app", StateTable: "app-dynamill"}).Function[0].Actions
	with := permissionsOf(set, Options{Table: "app", StateTable: "app-dynamill", Former: former}).Function[0].Actions
	if diff := cmp.Diff(append(without, "dynamodb:ConditionCheckItem", "dynamodb:DeleteItem"), with); diff != "" {
		t.Errorf("actions on the table (-want +got)\n%s", diff)
	}
}
