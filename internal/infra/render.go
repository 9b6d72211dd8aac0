package infra

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"text/template"
	"time"

	"github.com/goccy/go-yaml"
)

// The templates are in the language of what they make, and so are their texts and references: a
// text of the user stands in quotes of that language, whatever is in it.
//
//go:embed templates
var files embed.FS

var (
	cloudFormation = parse("cloudformation.yaml", yamlText, reference(cloudFormationReferences, yamlReference))
	terraform      = parse("terraform.tf", hclText, hclValue)

	definition      = parse("definition.json", nil, nil)
	dashboard       = parse("dashboard.json", nil, nil)
	permissionsFile = parse("permissions.yaml", nil, nil)
	alarmsFile      = parse("alarms.yaml", nil, nil)
)

func parse(name string, text, ref func(string) string) *template.Template {
	return template.Must(template.New(name).Funcs(template.FuncMap{
		"text": text, "ref": ref, "comment": comment, "indent": indent,
		"why":     func(depth int, part string) string { return comment(depth, known(fixed.Why, part)) },
		"limit":   func(name string) any { return known(fixed.Limits, name) },
		"seconds": func(d time.Duration) int { return int(d / time.Second) },
		"after":   after,
		"aligned": hclAligned, "list": hclList,
	}).ParseFS(files, "templates/"+name))
}

// known returns a value of a map; a name without one is a bug of a template and panics.
func known[T any](values map[string]T, name string) T {
	value, ok := values[name]
	if !ok {
		panic("infra: no value " + name)
	}
	return value
}

// render writes a template. Its data is this package's own, so that it cannot fail.
func render(t *template.Template, data any) string {
	var b strings.Builder
	if err := t.Execute(&b, data); err != nil {
		panic("infra: " + err.Error())
	}
	return b.String()
}

// decoded reads YAML that this package embeds or renders; an error is a bug and panics.
func decoded[T any](text string) (values T) {
	if err := yaml.UnmarshalWithOptions([]byte(text), &values, yaml.Strict()); err != nil {
		panic("infra: " + err.Error())
	}
	return values
}

// plainJSON encodes values without the escapes for HTML.
func plainJSON(values any) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(values); err != nil {
		panic("infra: texts always are JSON: " + err.Error())
	}
	return strings.TrimSpace(b.String())
}

const lineMax = 110 // characters of a comment's line

func comment(depth int, text string) string {
	var lines []string
	for paragraph := range strings.Lines(text) {
		line := "#"
		for _, word := range strings.Fields(paragraph) {
			if len(line)+1+len(word) > lineMax-2*depth {
				lines = append(lines, line)
				line = "#"
			}
			line += " " + word
		}
		lines = append(lines, line)
	}
	return indent(2*depth, strings.Join(lines, "\n"))
}

func indent(spaces int, text string) string {
	pad := strings.Repeat(" ", spaces)
	return pad + strings.ReplaceAll(text, "\n", "\n"+pad)
}

// flatList is a list of texts in indented JSON.
var flatList = regexp.MustCompile(`\[\n\s+"[^"]*"(,\n\s+"[^"]*")*\n\s+\]`)

// indentedJSON lays out a JSON text, with each list of texts on a line.
func indentedJSON(text string) string {
	var b bytes.Buffer
	if err := json.Indent(&b, []byte(strings.TrimSpace(text)), "", "  "); err != nil {
		panic("infra: " + err.Error())
	}
	return flatList.ReplaceAllStringFunc(b.String(), func(list string) string {
		lines := strings.Split(list, "\n")
		for i := range lines {
			lines[i] = strings.TrimSpace(lines[i])
		}
		return "[" + strings.Join(lines[1:len(lines)-1], " ") + "]"
	})
}

// A text with placeholders, such as "${bucket}/*", has the words of placeholders for which each
// language has its own reference.
var placeholder = regexp.MustCompile(`\$\{(\w+)\}`)

// reference writes the placeholders of a text as a language says them.
func reference(references map[string]string, write func(text string, whole bool) string) func(string) string {
	return func(text string) string {
		if found := placeholder.FindStringSubmatch(text); found != nil && found[0] == text {
			return write(references[found[1]], true)
		}
		return write(placeholder.ReplaceAllStringFunc(text, func(found string) string {
			return "${" + references[found[2:len(found)-1]] + "}"
		}), false)
	}
}

var cloudFormationReferences = map[string]string{
	"partition": "AWS::Partition", "region": "AWS::Region", "account": "AWS::AccountId",
	"stream": "StreamArn", "mapping": "StreamMapping", "bucket": "LateBatches.Arn",
	"logs": "LogGroup.Arn", "replayLogs": "ReplayLogGroup.Arn", "replayFunction": "ReplayFunction.Arn",
}

func yamlReference(text string, whole bool) string {
	switch {
	case whole && strings.Contains(text, "."):
		return "!GetAtt " + text
	case whole:
		return "!Ref " + text
	case strings.Contains(text, "${"):
		return "!Sub " + yamlText(text)
	}
	return yamlText(text)
}

// plainScalar is text that YAML 1.1 and 1.2 read as this very text without
// quotes. Words that may be booleans or nothing are left out.
var (
	plainScalar = regexp.MustCompile(`^[A-Za-z/][A-Za-z0-9_/.-]*(::[A-Za-z0-9]+)*$`)
	otherWord   = regexp.MustCompile(`(?i)^(true|false|yes|no|on|off|null|y|n)$`)
)

func yamlText(text string) string {
	if plainScalar.MatchString(text) && !otherWord.MatchString(text) {
		return text
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 }) {
		return strconv.QuoteToASCII(text)
	}
	return "'" + strings.ReplaceAll(text, "'", "''") + "'"
}

// terraformReferences have the ARN of a log group with what CloudFormation's ends in.
var terraformReferences = map[string]string{
	"partition": "data.aws_partition.current.partition", "region": "data.aws_region.current.region",
	"account": "data.aws_caller_identity.current.account_id",
	"stream":  "var.stream_arn", "mapping": "aws_lambda_event_source_mapping.stream.uuid", "bucket": "aws_s3_bucket.late_batches.arn",
	"logs": `"${aws_cloudwatch_log_group.function.arn}:*"`, "replayLogs": `"${aws_cloudwatch_log_group.replay.arn}:*"`,
	"replayFunction": "aws_lambda_function.replay.arn",
}

var hclValue = reference(terraformReferences, hclReference)

func hclReference(text string, whole bool) string {
	if whole {
		return text
	}
	return quoted(text)
}

const listMax = 100 // characters of a list on one line

// hclList writes the values of a list. A single value stands alone.
func hclList(depth int, values []string) string {
	var all []string
	for _, v := range values {
		all = append(all, hclValue(v))
	}
	if line := strings.Join(all, ", "); len(all) == 1 {
		return line
	} else if len(line)+len("[]") <= listMax {
		return "[" + line + "]"
	}
	return "[\n" + indent(2*depth+2, strings.Join(all, ",\n")) + ",\n" + indent(2*depth, "]")
}

// hclAligned writes keys and their values. Signs of equality of neighbours that take one
// line each are put below each other, as `terraform fmt` does it.
func hclAligned(depth int, pairs ...string) string {
	oneLine := func(i int) bool { return !strings.Contains(pairs[i+1], "\n") }
	var lines []string
	for i := 0; i < len(pairs); i += 2 {
		width := len(pairs[i])
		for _, step := range []int{-2, 2} {
			for j := i; j >= 0 && j < len(pairs) && oneLine(i) && oneLine(j); j += step {
				width = max(width, len(pairs[j]))
			}
		}
		lines = append(lines, fmt.Sprintf("%s%-*s = %s", strings.Repeat("  ", depth), width, pairs[i], pairs[i+1]))
	}
	return strings.Join(lines, "\n")
}

// hclText quotes a text in which nothing is to be interpolated.
func hclText(text string) string {
	return quoted(strings.NewReplacer("${", "$${", "%{", "%%{").Replace(text))
}

func quoted(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ':
			fmt.Fprintf(&b, "\\u%04x", r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
