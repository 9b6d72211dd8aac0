package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// stores stands for S3 and Systems Manager. It knows these objects by their paths
// (one that is nil it refuses), one with rules, one that is large, and one parameter.
func stores(t *testing.T, objects map[string]*string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			Name           string
			WithDecryption bool
		}
		body, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(body, &asked)
		object, known := objects[r.URL.Path]
		switch {
		case r.Method == http.MethodGet && known && object == nil:
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>`)
		case r.Method == http.MethodGet && known:
			_, _ = io.WriteString(w, *object)
		case r.Method == http.MethodGet && r.URL.Path == "/bucket/a/rules.yaml":
			_, _ = io.WriteString(w, groupRules)
		case r.Method == http.MethodGet && r.URL.Path == "/bucket/large":
			_, _ = io.WriteString(w, strings.Repeat("#", ruleFileMax+1))
		case r.Method == http.MethodGet:
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `<Error><Code>NoSuchKey</Code><Message>The specified key does not exist.</Message></Error>`)
		case r.Header.Get("X-Amz-Target") == "AmazonSSM.GetParameter" && asked.Name == "/app/rules" && asked.WithDecryption:
			quoted, _ := json.Marshal(groupRules)
			_, _ = fmt.Fprintf(w, `{"Parameter":{"Name":"/app/rules","Type":"SecureString","Value":%s}}`, quoted)
		default:
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"__type":"ParameterNotFound"}`)
		}
	}))
	t.Cleanup(server.Close)
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL_S3": server.URL, "AWS_ENDPOINT_URL_SSM": server.URL, "AWS_REGION": "us-east-1",
		"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local",
	} {
		t.Setenv(name, value)
	}
}

func TestRulesComeFromWhereTheVariableSays(t *testing.T) {
	stores(t, map[string]*string{"/bucket/denied": nil})
	root, elsewhere := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{
		filepath.Join(root, "dynamill.yaml"): groupRules, filepath.Join(root, "config", "r.yaml"): groupRules,
		filepath.Join(elsewhere, "r.yaml"): groupRules, filepath.Join(root, "bad.yaml"): "version: 2\n",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for variable, want := range map[string]string{ // part of the error; "" for none
		"":                                     "",
		"config/r.yaml":                        "",
		filepath.Join(elsewhere, "r.yaml"):     "",
		groupRules:                             "",
		"s3://bucket/a/rules.yaml":             "",
		"ssm:/app/rules":                       "",
		"s3://bucket/none":                     "there is no such object, or not any more",
		"s3://bucket/denied":                   "DYNAMILL_RULES names, s3://bucket/denied: either the function's role lacks s3:GetObject",
		"s3://bucket":                          "s3://bucket/key",
		"s3://bucket/large":                    "more than",
		"ssm:/app/none":                        "ParameterNotFound",
		"none.yaml":                            "DYNAMILL_RULES names, none.yaml: the package has no such file",
		"bad.yaml":                             "bad.yaml:1",
		"version: 2\nnot: the text of rules\n": "DYNAMILL_RULES:1",
	} {
		s, err := readSettings(func(name string) string {
			return map[string]string{"DYNAMILL_RULES": variable, "LAMBDA_TASK_ROOT": root}[name]
		})
		if err != nil {
			t.Fatal(err)
		}
		cfg, err := loadAWS(t.Context(), newLogger(os.Stderr, 0))
		if err != nil {
			t.Fatal(err)
		}
		set, err := s.loadRules(t.Context(), cfg)
		switch {
		case want == "" && (err != nil || set.Text() != groupRules):
			t.Errorf("%q: %v", variable, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: error %v, want one about %s", variable, err, want)
		}
	}
}
