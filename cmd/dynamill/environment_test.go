package main

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/settings"
)

const smallRules = `version: 1
table: { keys: [pk, sk] }
entities:
  Post:    { key: { pk: "POST#${postId}", sk: "METADATA" } }
  Comment: { key: { pk: "POST#${postId}", sk: "COMMENT#${commentId}" } }
rules:
  comment-count: { count: Comment, as: Post.commentCount }
`

// withoutAWS takes away whatever AWS configuration the machine has.
func withoutAWS(t *testing.T) {
	t.Helper()
	for _, setting := range os.Environ() {
		if name, _, _ := strings.Cut(setting, "="); strings.HasPrefix(name, "AWS_") && name != "AWS_CA_BUNDLE" {
			t.Setenv(name, "")
			os.Unsetenv(name)
		}
	}
	t.Setenv("HOME", t.TempDir())
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv(settings.TableVariable, "")
}

func ruleFile(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "dynamill.yaml")
	if err := os.WriteFile(name, []byte(smallRules), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// called runs the command in this process.
func called(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs strings.Builder
	code = execute(context.Background(), args, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

// stub answers every call as DynamoDB would: with an error of the given type, or with a body.
func stub(t *testing.T, status int, body any) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct{ TableName string }
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		switch target := r.Header.Get("X-Amz-Target"); {
		case target == "DynamoDB_20120810.DescribeTable":
		case target == "DynamoDB_20120810.GetItem" && strings.HasSuffix(in.TableName, "-dynamill"): // read at the same time
		case target == "DynamoDB_20120810.Scan" && strings.HasSuffix(in.TableName, "-dynamill-leases"):
		default:
			t.Errorf("%s of %q was called: nothing may follow a table that cannot be used", target, in.TableName)
		}
		respond(t, w, status, body)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// respond answers one call.
func respond(t *testing.T, w http.ResponseWriter, status int, body any) {
	t.Helper()
	answer, err := json.Marshal(body)
	if err != nil {
		t.Error(err)
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.Header().Set("X-Amz-Crc32", fmt.Sprint(crc32.ChecksumIEEE(answer)))
	w.WriteHeader(status)
	if _, err := w.Write(answer); err != nil {
		t.Error(err)
	}
}

func refusal(kind, message string) map[string]string {
	return map[string]string{"__type": "com.amazonaws.dynamodb.v20120810#" + kind, "message": message}
}

func description(table map[string]any) map[string]any {
	table["TableName"], table["TableStatus"] = "app", "ACTIVE"
	return map[string]any{"Table": table}
}

func TestAnUnsuitedTableEndsWithItsRemedy(t *testing.T) {
	withoutAWS(t)
	rules := ruleFile(t)
	for name, c := range map[string]struct {
		status int
		body   any
		want   []string
	}{
		"the table does not exist": {400, refusal("ResourceNotFoundException", "Requested resource not found"),
			[]string{`table "app" does not exist in us-east-1 (endpoint http://127.0.0.1:`, "check --table and --region"}},
		"no permission": {400, refusal("AccessDeniedException", "User: x is not authorized"),
			[]string{"no permission for dynamodb:DescribeTable", "IAM policy"}},
		"credentials that nobody knows": {400, refusal("UnrecognizedClientException", "The security token is invalid"),
			[]string{"credentials were refused", "check AWS_PROFILE"}},
		"an expired token": {400, refusal("ExpiredTokenException", "expired"),
			[]string{"credentials have expired", "aws sso login"}},
		"no stream": {200, description(map[string]any{}),
			[]string{`table "app" in us-east-1`, "has no stream", "aws dynamodb update-table --table-name app --stream-specification " +
				"StreamEnabled=true,StreamViewType=NEW_AND_OLD_IMAGES --region us-east-1 --endpoint-url http://127.0.0.1:"}},
		"a stream that was disabled": {200, description(map[string]any{"LatestStreamArn": "arn:aws:dynamodb:x:1:table/app/stream/1"}),
			[]string{"has no stream"}},
		"a stream without old images": {200, description(map[string]any{
			"LatestStreamArn":     "arn:aws:dynamodb:x:1:table/app/stream/1",
			"StreamSpecification": map[string]any{"StreamEnabled": true, "StreamViewType": "NEW_IMAGE"},
		}), []string{"carries NEW_IMAGE", "needs NEW_AND_OLD_IMAGES", "StreamEnabled=false", "StreamEnabled=true"}},
		"a table that is going away": {200, map[string]any{"Table": map[string]any{"TableStatus": "DELETING"}},
			[]string{"is DELETING", "wait until it is ACTIVE"}},
		"a server of another kind": {404, "not found", []string{"did not answer as DynamoDB does", "check --endpoint"}},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := called(t, "run", "--drain", "--rules", rules, "--table", "app", "--endpoint", stub(t, c.status, c.body))
			if code != ending.ExitEnvironment {
				t.Errorf("exit code %d, want %d", code, ending.ExitEnvironment)
			}
			expectSentence(t, stderr, c.want...)
			if stdout != "" {
				t.Errorf("standard output holds %q", stdout)
			}
		})
	}
}

// expectSentence checks that an error is one line with all the given parts.
func expectSentence(t *testing.T, stderr string, parts ...string) {
	t.Helper()
	if strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "dynamill: ") {
		t.Errorf("want one sentence, got %q", stderr)
	}
	for _, part := range parts {
		if !strings.Contains(stderr, part) {
			t.Errorf("got %q, want %q in it", stderr, part)
		}
	}
}

func TestWithoutCredentialsRegionOrServerNothingIsTried(t *testing.T) {
	rules := ruleFile(t)
	closed := "http://127.0.0.1:1" // a port that no server is given unless it asks for it
	for name, c := range map[string]struct {
		environment map[string]string
		args        []string
		want        []string
	}{
		"no credentials": {nil, []string{"--region", "eu-west-1"}, []string{"no AWS credentials were found", "AWS_PROFILE"}},
		"no region":      {nil, nil, []string{"no AWS region is set", "--region"}},
		"no such profile": {map[string]string{"AWS_PROFILE": "nobody"}, []string{"--region", "eu-west-1"},
			[]string{`profile "nobody" does not exist`}},
		"nobody listens": {nil, []string{"--endpoint", closed}, []string{closed + " cannot be reached", "check --endpoint"}},
	} {
		for _, command := range [][]string{{"run"}, {"parked", "list"}} {
			t.Run(name+" for "+command[0], func(t *testing.T) {
				withoutAWS(t)
				for key, value := range c.environment {
					t.Setenv(key, value)
				}
				code, _, stderr := called(t, append(append(command, "--rules", rules, "--table", "app"), c.args...)...)
				if code != ending.ExitEnvironment {
					t.Errorf("exit code %d, want %d", code, ending.ExitEnvironment)
				}
				expectSentence(t, stderr, c.want...)
			})
		}
	}
}

func TestABadRuleFileEndsBeforeAnythingIsAsked(t *testing.T) {
	withoutAWS(t)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s was called", r.Header.Get("X-Amz-Target"))
	}))
	defer server.Close()
	bad := filepath.Join(t.TempDir(), "dynamill.yaml")
	if err := os.WriteFile(bad, []byte(strings.Replace(smallRules, "count: Comment", "count: Coment", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{{"run"}, {"run", "--drain"}, {"parked", "list"}, {"parked", "retry", "--all"}} {
		code, _, stderr := called(t, append(command, "--rules", bad, "--table", "app", "--endpoint", server.URL)...)
		if code != ending.ExitInvalid || !strings.Contains(stderr, "Coment") {
			t.Errorf("%v: exit code %d, %s", command, code, stderr)
		}
	}
}

func TestTheTableIsNamedByFlagThenEnvironmentThenRules(t *testing.T) {
	withoutAWS(t)
	code, _, stderr := called(t, "run", "--rules", ruleFile(t), "--endpoint", "http://127.0.0.1:1")
	if code != ending.ExitInvalid || !strings.Contains(stderr, "no table is named") {
		t.Errorf("without a name: exit code %d, %s", code, stderr)
	}
	endpoint := stub(t, 400, refusal("ResourceNotFoundException", ""))
	named := filepath.Join(t.TempDir(), "named.yaml")
	if err := os.WriteFile(named, []byte(strings.Replace(smallRules, "{ keys", "{ name: in-file, keys", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"in-environment": {"--rules", named},
		"in-file":        {"--rules", named},
		"in-flag":        {"--rules", named, "--table", "in-flag"},
	} {
		t.Setenv(settings.TableVariable, "in-environment")
		if want == "in-file" {
			t.Setenv(settings.TableVariable, "")
		}
		_, _, stderr := called(t, append([]string{"run", "--endpoint", endpoint}, args...)...)
		expectSentence(t, stderr, fmt.Sprintf("table %q does not exist", want))
	}
}

func TestAStateTableThatCannotBeDescribedIsNotTakenForNone(t *testing.T) {
	withoutAWS(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct{ TableName string }
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			t.Error(err)
		}
		if asked.TableName == "app" {
			respond(t, w, 200, description(map[string]any{}))
		} else {
			respond(t, w, 400, refusal("AccessDeniedException", "User: x is not authorized"))
		}
	}))
	t.Cleanup(server.Close)
	code, _, stderr := called(t, "replay", "--dry-run", "--rules", ruleFile(t), "--table", "app", "--endpoint", server.URL)
	if code != ending.ExitEnvironment {
		t.Errorf("exit code %d", code)
	}
	expectSentence(t, stderr, "no permission for dynamodb:DescribeTable")
}
