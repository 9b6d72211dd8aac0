package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
)

// answering serves DescribeTable of a table in use with a stream, and refuses every
// other call with the given status and error document.
func answering(t *testing.T, status int, body any) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct{ TableName string }
		_ = json.NewDecoder(r.Body).Decode(&asked)
		if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".DescribeTable") && asked.TableName == "app" {
			respond(t, w, http.StatusOK, description(map[string]any{
				"LatestStreamArn":     "arn:aws:dynamodb:x:1:table/app/stream/1",
				"StreamSpecification": map[string]any{"StreamEnabled": true, "StreamViewType": "NEW_AND_OLD_IMAGES"},
				"KeySchema":           []map[string]string{{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}},
				"AttributeDefinitions": []map[string]string{
					{"AttributeName": "pk", "AttributeType": "S"}, {"AttributeName": "sk", "AttributeType": "S"},
				},
			}))
			return
		}
		respond(t, w, status, body)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// TestCommandsPutAWSErrorsIntoWords runs the built command against a server that
// answers with error documents of AWS.
func TestCommandsPutAWSErrorsIntoWords(t *testing.T) {
	t.Parallel()
	commands := [][]string{{"run", "--drain"}, {"plan"}, {"replay"}, {"verify"}, {"status"}, {"parked", "list"}, {"parked", "retry", "--all"},
		{"explain", "--key", "POST#1/METADATA"}}
	rules := ruleFile(t)
	for name, c := range map[string]struct {
		status int
		body   any
		code   int
		want   []string
	}{
		"no permission": {400, refusal("AccessDeniedException", "User: x is not authorized"), ending.ExitEnvironment,
			[]string{"no permission for dynamodb:", `on table "app-dynamill`, "allow this action in the IAM policy"}},
		"expired": {400, refusal("ExpiredTokenException", "The security token is expired"), ending.ExitEnvironment,
			[]string{"credentials have expired: renew them"}},
		"invalid": {400, refusal("ValidationException", "One or more parameter values"), ending.ExitFailed,
			[]string{"AWS refuses dynamodb:", "as invalid", "report this"}},
		"throttle": {400, refusal("ThrottlingException", "Rate exceeded"), ending.ExitFailed,
			[]string{"AWS throttles dynamodb:", "raise the capacity"}},
		"trouble": {500, refusal("InternalServerError", "Internal server error"), ending.ExitFailed,
			[]string{"AWS itself failed at dynamodb:", "start again"}},
		"a proxy": {404, "not found", ending.ExitEnvironment, []string{"did not answer as DynamoDB does: check --endpoint"}},
	} {
		endpoint := answering(t, c.status, c.body)
		for _, command := range commands {
			if passing := name == "throttle" || name == "trouble"; passing && (command[0] == "plan" || command[0] == "parked") {
				continue // these try again for a minute
			}
			t.Run(name+" for "+strings.Join(command, " "), func(t *testing.T) {
				t.Parallel()
				cmd, stdout, stderr := commandOf(append(command, "--rules", rules, "--table", "app", "--endpoint", endpoint, "--region", "us-east-1"))
				cmd.Env = append(os.Environ(), "AWS_MAX_ATTEMPTS=1") // the SDK's own retries take seconds
				_ = cmd.Run()
				lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
				last := lines[len(lines)-1]
				if code := cmd.ProcessState.ExitCode(); code != c.code {
					t.Errorf("exit code %d, want %d", code, c.code)
				}
				for _, want := range append(c.want, "(operation error DynamoDB: ") {
					if !strings.Contains(last, want) {
						t.Errorf("got %q, want %q in it", last, want)
					}
				}
				if !strings.HasPrefix(last, "dynamill: ") || !strings.HasSuffix(last, ")") ||
					strings.Index(last, "operation error") < strings.Index(last, c.want[0]) {
					t.Errorf("got %q, want plain words first and the raw text last", last)
				}
				if stdout.String() != "" {
					t.Errorf("standard output holds %q", stdout)
				}
			})
		}
	}
}
