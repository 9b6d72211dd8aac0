package infra

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// Where the function reads its rules, as it is told by DYNAMILL_RULES
// (cmd/dynamill-lambda): text with a line break is the rules themselves.
const (
	objectPrefix    = "s3://"
	parameterPrefix = "ssm:"
)

const executable = "bootstrap"

// What may be granted: nothing that a policy takes for a wildcard or a variable
// (`*`, `?`, `$`), or that a template would not pass on as it is (S3 user guide,
// "Naming Amazon S3 objects"; Systems Manager API, PutParameter).
var (
	bucketName    = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
	objectKey     = regexp.MustCompile(`^[A-Za-z0-9 !_.'()/=+@:,~-]+$`)
	parameterName = regexp.MustCompile(`^([A-Za-z0-9_.-]+|(/[A-Za-z0-9_.-]+)+)$`)
)

const objectKeyMax = 1024 // bytes

// variablesMax bounds all environment variables of a function together (Lambda
// developer guide, "Lambda quotas"). Lambda measures them as JSON.
const variablesMax = 4096

// checkRuleSource reports what the function could not read, or the template not grant.
func (o Options) checkRuleSource() error {
	from := o.RulesFrom
	switch {
	case from == "" && o.RulesFile == executable:
		return fmt.Errorf("the rule file cannot be called %s: the zip's executable is, so give it another name", executable)
	case from == "":
		if strings.HasPrefix(o.RulesFile, parameterPrefix) || strings.HasPrefix(o.RulesFile, objectPrefix) ||
			strings.ContainsFunc(o.RulesFile, unicode.IsControl) {
			return fmt.Errorf("the rule file's name %q would not be taken for that of a file in the zip: give it another one", o.RulesFile)
		}
	case strings.Contains(from, "\n"):
		variables := map[string]string{"DYNAMILL_TABLE": o.Table, "DYNAMILL_STATE_TABLE": o.StateTable, "DYNAMILL_RULES": from}
		if o.BesideRun {
			variables["DYNAMILL_BESIDE_RUN"] = "true"
		}
		if n := len(plainJSON(variables)); n > variablesMax {
			return fmt.Errorf("the rules are too long for a variable: the function's variables would have %d bytes together, Lambda takes %d; "+
				"put the rules into the zip, or into S3", n, variablesMax)
		}
	case strings.HasPrefix(from, objectPrefix):
		bucket, key, _ := strings.Cut(strings.TrimPrefix(from, objectPrefix), "/")
		if !bucketName.MatchString(bucket) || key == "" {
			return fmt.Errorf("the rules' source %q is not s3://bucket/key, with a bucket's name of 3 to 63 small letters, digits, dots and hyphens",
				from)
		}
		if !objectKey.MatchString(key) || len(key) > objectKeyMax {
			return fmt.Errorf("the rules' source %q: permission for just this object can be given if its key has letters, digits, spaces and "+
				"!_.'()/=+@:,~- only, %d at most", from, objectKeyMax)
		}
	case strings.HasPrefix(from, parameterPrefix):
		if !parameterName.MatchString(strings.TrimPrefix(from, parameterPrefix)) {
			return fmt.Errorf("the rules' source %q is not ssm:NAME, the name of a parameter of Systems Manager without version or label, which "+
				"begins with / if there is a / in it", from)
		}
	default:
		return errors.New("the rules' source is neither s3://bucket/key nor ssm:NAME, and as the rules themselves it would need a line break")
	}
	return nil
}

func (o Options) checkExports() error {
	if o.ReplayExports == "" {
		return nil
	}
	place, isObject := strings.CutPrefix(o.ReplayExports, objectPrefix)
	bucket, prefix, _ := strings.Cut(place, "/")
	if !isObject || !bucketName.MatchString(bucket) || prefix != "" && (!objectKey.MatchString(prefix) || len(prefix) > objectKeyMax) {
		return fmt.Errorf("the exports' place %q is not s3://bucket or s3://bucket/prefix, with letters, digits, spaces and !_.'()/=+@:,~- only",
			o.ReplayExports)
	}
	return nil
}

// after returns the rest of a text behind a prefix; "" without the prefix, or for a text of several lines, such as rules.
func after(prefix, text string) string {
	rest, found := strings.CutPrefix(text, prefix)
	if !found || strings.Contains(text, "\n") {
		return ""
	}
	return rest
}

// RulesVariable tells the function where its rules are.
func (o Options) RulesVariable() string { return cmp.Or(o.RulesFrom, o.RulesFile) }

// ZipHolds says what has to be in the function's zip.
func (o Options) ZipHolds() string {
	if o.RulesFrom != "" {
		return "the executable `bootstrap`"
	}
	return "the executable `bootstrap` and the rule file " + o.RulesFile
}
