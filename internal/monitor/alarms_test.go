package monitor

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// servedNames are the metrics that /metrics has when everything is known.
func servedNames(t *testing.T) map[string]bool {
	t.Helper()
	_, body := get(t, Config{Take: full}, "/metrics")
	names := map[string]bool{}
	for _, match := range regexp.MustCompile(`(?m)^# TYPE (dynamill_\S+) `).FindAllStringSubmatch(body, -1) {
		names[match[1]] = true
	}
	return names
}

func readYAML(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalWithOptions(text, into, yaml.Strict()); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

func TestPrometheusRulesNameServedMetrics(t *testing.T) {
	var file struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	readYAML(t, "../../infra/run/prometheus-rules.yaml", &file)
	served, alerts := servedNames(t), 0
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			alerts++
			used := regexp.MustCompile(`dynamill_[a-z_]+`).FindAllString(rule.Expr, -1)
			if rule.Alert == "" || rule.For == "" || rule.Annotations["summary"] == "" || len(used) == 0 {
				t.Errorf("incomplete: %+v", rule)
			}
			for _, name := range used {
				if !served[name] {
					t.Errorf("%s uses %s, which /metrics does not have", rule.Alert, name)
				}
			}
			if strings.Count(rule.Expr, "(") != strings.Count(rule.Expr, ")") {
				t.Errorf("%s: parentheses do not match", rule.Alert)
			}
			for _, match := range regexp.MustCompile(`state=~"([^"]+)"`).FindAllStringSubmatch(rule.Expr, -1) {
				for _, state := range strings.Split(match[1], "|") {
					if !slices.Contains(States(), State(state)) {
						t.Errorf("%s names the state %q, which does not exist", rule.Alert, state)
					}
				}
			}
		}
	}
	if alerts != 3 {
		t.Errorf("%d alarms, want 3", alerts)
	}
}

func TestCloudWatchAlarmsNameServedMetrics(t *testing.T) {
	text, err := os.ReadFile("../../infra/run/cloudwatch-alarms.yaml")
	if err != nil {
		t.Fatal(err)
	}
	served := servedNames(t)
	names := regexp.MustCompile(`MetricName: (\S+)`).FindAllStringSubmatch(string(text), -1)
	for _, match := range names {
		if !served[match[1]] {
			t.Errorf("an alarm uses %s, which /metrics does not have", match[1])
		}
	}
	if alarms := strings.Count(string(text), "Type: AWS::CloudWatch::Alarm"); alarms != 4 || len(names) != alarms {
		t.Errorf("%d alarms with %d metrics, want 4", alarms, len(names))
	}
}
