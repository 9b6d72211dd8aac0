package infra

import (
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// inlineRules have what templates might take for their own.
const inlineRules = "version: 1 # \"quoted\", 'quoted', %{if}, {{x}}, é\n  pk: \"USER#${userId}\"\n\tc:\\d\n"

var sidRules = map[Format]*regexp.Regexp{
	SAM:            regexp.MustCompile(`(?m)^ +- Sid: Rules\n((?: +.*\n)+)`),
	CloudFormation: regexp.MustCompile(`(?m)^ +- Sid: Rules\n((?: +.*\n)+)`),
	Terraform:      regexp.MustCompile(`(?m)^ +Sid += "Rules"\n((?: +\w.*\n)+)`),
}

// The function is told where its rules are, and may read just that.
func TestTheFunctionMayReadItsRulesAndNothingBeside(t *testing.T) {
	cfn := func(action, resource string) string {
		return "Effect: Allow\nAction: '" + action + "'\nResource: !Sub '" + resource + "'"
	}
	tf := func(action, resource string) string {
		return "Effect = \"Allow\"\nAction = \"" + action + "\"\nResource = \"" + resource + "\""
	}
	for _, c := range []struct {
		from            string
		action          string
		inCFN, inHCL    string // the resource; "" for no statement
		value, valueHCL string
	}{
		{from: "", value: "dynamill.yaml", valueHCL: `"dynamill.yaml"`},
		{from: "a: \"${b}\"\n", value: `"a: \"${b}\"\n"`, valueHCL: `"a: \"$${b}\"\u000a"`},
		{
			"s3://my.rules/app/dynamill.yaml", "s3:GetObject", "arn:${AWS::Partition}:s3:::my.rules/app/dynamill.yaml",
			"arn:${data.aws_partition.current.partition}:s3:::my.rules/app/dynamill.yaml",
			"'s3://my.rules/app/dynamill.yaml'", `"s3://my.rules/app/dynamill.yaml"`,
		},
		{
			"ssm:/app/rules", "ssm:GetParameter", "arn:${AWS::Partition}:ssm:${AWS::Region}:${AWS::AccountId}:parameter/app/rules",
			"arn:${data.aws_partition.current.partition}:ssm:${data.aws_region.current.region}:${data.aws_caller_identity.current.account_id}:parameter/app/rules",
			"'ssm:/app/rules'", `"ssm:/app/rules"`,
		},
		{
			"ssm:rules", "ssm:GetParameter", "arn:${AWS::Partition}:ssm:${AWS::Region}:${AWS::AccountId}:parameter/rules",
			"arn:${data.aws_partition.current.partition}:ssm:${data.aws_region.current.region}:${data.aws_caller_identity.current.account_id}:parameter/rules",
			"'ssm:rules'", `"ssm:rules"`,
		},
	} {
		for _, format := range Formats() {
			template := generate(t, format, "blog", Options{Table: "app", RulesFrom: c.from})
			want, variable := cfn(c.action, c.inCFN), "DYNAMILL_RULES: "+c.value
			if format == Terraform {
				want, variable = tf(c.action, c.inHCL), "DYNAMILL_RULES = "+c.valueHCL
			}
			if c.action == "" {
				want = ""
			}
			got := ""
			if m := sidRules[format].FindStringSubmatch(template); m != nil {
				got = regexp.MustCompile(` +`).ReplaceAllString(regexp.MustCompile(`(?m)^ +`).ReplaceAllString(m[1], ""), " ")
				got = strings.Join(strings.Split(got, "\n")[:3], "\n")
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s with rules from %q: the statement Rules (-want +got)\n%s", format, c.from, diff)
			}
			if plain := regexp.MustCompile(` +=`).ReplaceAllString(template, " ="); !strings.Contains(plain, variable+"\n") {
				t.Errorf("%s with rules from %q: the template does not hold %s", format, c.from, variable)
			}
			if holds := strings.Contains(template, "and the rule file"); holds != (c.from == "") {
				t.Errorf("%s with rules from %q: that the zip holds the rule file is said: %v", format, c.from, holds)
			}
		}
	}
}

func TestRuleSourcesThatCannotBeGrantedAreRefused(t *testing.T) {
	long := strings.Repeat("# comment\n", 500)
	for _, c := range []struct{ from, file, want string }{
		{"s3://", "", "is not s3://bucket/key"},
		{"s3://rules", "", "is not s3://bucket/key"},
		{"s3://rules/", "", "is not s3://bucket/key"},
		{"s3://Rules/a", "", "is not s3://bucket/key"},
		{"s3://arn:aws:s3:eu-west-1:123456789012:accesspoint/x/a", "", "is not s3://bucket/key"},
		{"s3://rules/*", "", "letters, digits"},
		{"s3://rules/a?", "", "letters, digits"},
		{"s3://rules/${aws:username}", "", "letters, digits"},
		{"s3://rules/%{if}", "", "letters, digits"},
		{"s3://rules/ä", "", "letters, digits"},
		{"s3://rules/" + strings.Repeat("x", 1025), "", "letters, digits"},
		{"ssm:", "", "is not ssm:NAME"},
		{"ssm:/", "", "is not ssm:NAME"},
		{"ssm:a/b", "", "is not ssm:NAME"},
		{"ssm:/a*", "", "is not ssm:NAME"},
		{"ssm:/a:3", "", "without version or label"},
		{"ssm:arn:aws:ssm:eu-west-1:123456789012:parameter/a", "", "is not ssm:NAME"},
		{"version: 1", "", "line break"},
		{long, "", "too long for a variable"},
		{"", "ssm:rules.yaml", "give it another one"},
		{"", "a\nb.yaml", "give it another one"},
		{"", "bootstrap", "give it another name"},
	} {
		_, err := Generate(SAM, example(t, "blog"), Options{Table: "app", RulesFile: c.file, RulesFrom: c.from})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("rules from %.60q, rule file %q: got %v, want an error about %q", c.from, c.file, err, c.want)
		}
	}
}

// A function's variables may have 4,096 bytes, as JSON, and not one more.
func TestVariablesAreMeasuredAsLambdaMeasuresThem(t *testing.T) {
	o := Options{Table: "app", StateTable: "state", RulesFrom: "\n"}
	const empty = `{"DYNAMILL_RULES":"\n","DYNAMILL_STATE_TABLE":"state","DYNAMILL_TABLE":"app"}`
	for more, fits := range map[string]bool{
		strings.Repeat("x", variablesMax-len(empty)):        true,
		strings.Repeat("x", variablesMax-len(empty)+1):      false,
		strings.Repeat("\"", (variablesMax-len(empty))/2):   true,
		strings.Repeat("\"", (variablesMax-len(empty))/2+1): false,
		strings.Repeat("<", variablesMax-len(empty)):        true,
	} {
		o.RulesFrom = more + "\n"
		if _, err := o.complete(); (err == nil) != fits {
			t.Errorf("%d times %q more: got %v", len(more), more[:1], err)
		}
	}
}

// Rules in a template are the very text: nothing in them is taken for the template's own.
func TestRulesInATemplateAreTheVeryText(t *testing.T) {
	for _, format := range Formats() {
		_, line, _ := strings.Cut(generate(t, format, "blog", Options{Table: "app", RulesFrom: inlineRules}), "DYNAMILL_RULES")
		line, _, _ = strings.Cut(line, "\n")
		value := strings.TrimLeft(line, " :=")
		var got string
		if format == Terraform {
			expression, problems := hclsyntax.ParseExpression([]byte(value), "", hcl.InitialPos)
			if problems.HasErrors() {
				t.Fatal(problems)
			}
			read, problems := expression.Value(nil)
			if problems.HasErrors() {
				t.Fatal(problems)
			}
			got = read.AsString()
		} else if err := yaml.Unmarshal([]byte(value), &got); err != nil {
			t.Fatal(err)
		}
		if got != inlineRules {
			t.Errorf("%s: the variable holds %q, want %q", format, got, inlineRules)
		}
	}
}
