package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dynamill/dynamill/internal/handlers"
)

func (w *world) launch(variables ...string) *process {
	w.Helper()
	file := filepath.Join(w.TempDir(), "dynamill.yaml")
	w.must(os.WriteFile(file, []byte(groupRules), 0o600))
	return launch(w, append([]string{"DYNAMILL_RULES=" + file, "DYNAMILL_TABLE=" + w.table, "DYNAMILL_ENDPOINT=" + w.endpoint},
		variables...)...)
}

func TestAnEventIsAppliedAndMeasured(t *testing.T) {
	w := newWorld(t)
	w.put("GROUP#g", "METADATA")
	w.engine(groupRules)
	p := w.launch()
	w.put("GROUP#g", "USER#a")
	for i, want := range []string{"1", "1", "2"} { // the first one comes twice
		payload := w.event(joined("g", "a", "100"))
		if want == "2" {
			w.put("GROUP#g", "USER#b")
			payload = w.event(joined("g", "b", "200"))
		}
		a := p.invoke(payload)
		if a.body != `{"batchItemFailures":[]}` || !strings.HasSuffix(a.path, "/response") {
			t.Fatalf("answer %+v\n%s", a, p.stderr.String())
		}
		if got := w.count("g"); got != want {
			t.Errorf("invocation %d: the group shows %q members, want %s", i, got, want)
		}
	}
	p.ready() // the metrics of the last one are written
	p.prints(&p.stdout, "\n", 3)
	lines := strings.Split(strings.TrimSpace(p.stdout.String()), "\n")
	if len(lines) != 3 {
		t.Fatalf("want 3 lines of metrics, found\n%s", p.stdout.String())
	}
	var line struct {
		Table, RequestID                  string
		Records, Relevant, Writes, Failed int64
		DurationMs                        float64
	}
	w.must(json.Unmarshal([]byte(lines[2]), &line))
	if line.Table != w.table || line.Records != 1 || line.Relevant != 1 || line.Writes == 0 || line.Failed != 0 ||
		line.RequestID != "request-3" || line.DurationMs <= 0 {
		t.Errorf("metrics %s", lines[2])
	}
	if log := p.stderr.String(); !strings.Contains(log, `"requestId":"request-3","traceId":"trace-3"`) {
		t.Errorf("the log does not name the invocation:\n%s", log)
	}
}

func TestARecordThatCannotBeReadIsParked(t *testing.T) {
	w := newWorld(t)
	w.put("GROUP#g", "METADATA")
	engine := w.engine(groupRules)
	w.put("GROUP#g", "USER#a")
	p := w.launch()
	if a := p.invoke(w.event(malformed(joined("g", "a", "100")))); a.body != `{"batchItemFailures":[]}` {
		t.Errorf("answer %+v", a)
	}
	parked, err := engine.Parked(t.Context())
	w.must(err)
	if len(parked) != 1 || parked[0].Rule != "record" {
		t.Fatalf("parked: %+v", parked)
	}
	if record, err := engine.FindParked(t.Context(), parked[0].ID); err != nil || !strings.Contains(record.Raw, `"note":{"X"`) {
		t.Errorf("the parked record is %+v, %v", record, err)
	}
	if got := w.count("g"); got != "1" {
		t.Errorf("the group shows %q members: the item was not rederived", got)
	}
	p.ready()
	p.prints(&p.stdout, `"Parked":1,`, 1)
	p.prints(&p.stderr, `"traceId":"trace-1"`, 2) // the engine's line names the invocation, too
}

func TestTasksAreWorkedOff(t *testing.T) {
	w := newWorld(t)
	p := w.launch()
	if a := p.invoke(`{"dynamill":"tasks"}`); a.body != `{"pieces":0,"done":true}` {
		t.Errorf("answer %+v", a)
	}
	if a := p.invoke(`{"hello":"world"}`); !strings.HasSuffix(a.path, "/error") || !strings.Contains(a.body, "hello") {
		t.Errorf("answer %+v to a payload of somebody else's", a)
	}
	p.ready()
	p.prints(&p.stdout, `"Failed":1`, 1)
	p.prints(&p.stderr, `"rules":["member-count"]`, 1) // are to be seeded
}

func TestWhatKeepsTheFunctionFromStartingIsReported(t *testing.T) {
	for name, c := range map[string]struct {
		variables []string
		want      string
	}{
		"a rule file with errors": {[]string{"DYNAMILL_RULES=version: 1\nrulez: {}\n", "DYNAMILL_TABLE=app"}, "rulez"},
		"no rule file":            {[]string{"DYNAMILL_TABLE=app"}, "dynamill.yaml"},
		"no table":                {[]string{"DYNAMILL_RULES=" + groupRules}, "DYNAMILL_TABLE"},
		"an ARN for a table": {[]string{"DYNAMILL_RULES=" + groupRules, "DYNAMILL_TABLE=arn:aws:dynamodb:us-east-1:1:table/app"},
			"not its ARN"},
		"an unknown level": {[]string{"DYNAMILL_LOG_LEVEL=loud"}, "DYNAMILL_LOG_LEVEL"},
		"nobody answers": {[]string{"DYNAMILL_RULES=" + groupRules, "DYNAMILL_TABLE=app", "DYNAMILL_ENDPOINT=http://127.0.0.1:1",
			"AWS_REGION=us-east-1",
			"AWS_ACCESS_KEY_ID=local", "AWS_SECRET_ACCESS_KEY=local"}, "127.0.0.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			p := launch(t, c.variables...)
			a := p.answer()
			var said initError
			if err := json.Unmarshal([]byte(a.body), &said); err != nil || a.path != "init/error" || a.errorType != initErrorType {
				t.Errorf("answer %+v", a)
			}
			if !strings.Contains(said.Message, c.want) || said.Type != initErrorType {
				t.Errorf("said %+v, want something about %s", said, c.want)
			}
			err := <-p.ended
			if failed := new(exec.ExitError); !errors.As(err, &failed) || failed.ExitCode() != 1 {
				t.Errorf("the process ended with %v", err)
			}
			if log := p.stderr.String(); strings.Count(log, "\n") != 1 || !strings.Contains(log, c.want) {
				t.Errorf("want one line about %s, found\n%s", c.want, log)
			}
		})
	}
}

func TestAPanicBeforeTheFirstInvocationIsAnError(t *testing.T) {
	f, err := start(settings{rules: groupRules, table: "app"}, nil) // without a logger there is nothing to hand to the engine
	if f != nil || err == nil || !strings.Contains(err.Error(), "nil pointer") || !strings.Contains(err.Error(), "function.go") {
		t.Errorf("function %v, error %v", f, err)
	}
}

// A function whose rules change those in force starts, and waits for an operator who
// agrees to that by a replay with changeRules.
func TestAFunctionWaitsForAgreementToChangedRules(t *testing.T) {
	w := newWorld(t)
	w.put("GROUP#g", "METADATA")
	w.put("GROUP#g", "USER#a")
	w.engine(strings.ReplaceAll(groupRules, "memberCount", "members"))
	p := w.launch()
	p.prints(&p.stderr, "waits for a replay that may change them", 1)
	for _, payload := range []string{w.event(joined("g", "a", "100")), `{"dynamill":"replay","begin":{}}`} {
		if a := p.invoke(payload); !strings.HasSuffix(a.path, "/error") || !strings.Contains(a.body, "differs from the rules in force") {
			t.Errorf("answer %+v to %s", a, payload)
		}
	}
	command := `"begin":{"segments":1,"changeRules":true}`
	for {
		var step handlers.ReplayStep
		a := p.invoke(`{"dynamill":"replay",` + command + `}`)
		if err := json.Unmarshal([]byte(a.body), &step); err != nil || !strings.HasSuffix(a.path, "/response") {
			t.Fatalf("answer %+v to %s\n%s", a, command, p.stderr.String())
		}
		if step.Finished {
			break
		}
		for _, piece := range step.Pieces {
			if a := p.invoke(fmt.Sprintf(`{"dynamill":"replay","work":%s,"piece":%q}`, step.Step, piece)); !strings.Contains(a.body, `"done":true`) {
				t.Fatalf("answer %+v to the piece %s of %s", a, piece, step.Step)
			}
		}
		command = fmt.Sprintf(`"next":%s`, step.Step)
	}
	if got := w.count("g"); got != "1" {
		t.Errorf("the group shows %q members", got)
	}
	if a := p.invoke(w.event(joined("g", "a", "100"))); a.body != `{"batchItemFailures":[]}` {
		t.Errorf("answer %+v to the record that waited", a)
	}
}
