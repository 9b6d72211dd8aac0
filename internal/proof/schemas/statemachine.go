package schemas

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// The fields of states, by type, as far as they are used here (Amazon States
// Language specification; Step Functions developer guide, "Using Map state in
// Distributed mode").
var stateFields = map[string][]string{
	"Task": {"Resource", "Parameters", "ResultSelector", "ResultPath", "InputPath", "OutputPath", "TimeoutSeconds", "Retry", "Catch", "Next",
		"End"},
	"Map": {"Label", "ItemsPath", "ItemSelector", "MaxConcurrency", "ToleratedFailurePercentage", "ItemProcessor", "ResultSelector",
		"ResultPath",
		"InputPath", "OutputPath", "Retry", "Catch", "Next", "End"},
	"Choice":  {"Choices", "Default", "InputPath", "OutputPath"},
	"Succeed": {"InputPath", "OutputPath"},
	"Fail":    {"Error", "Cause"},
}

// stateMachine checks a definition in the Amazon States Language: its fields are
// known, and each state is there and can be reached.
func (p *problems) stateMachine(at, text string) {
	var machine map[string]any
	if err := json.Unmarshal([]byte(text), &machine); err != nil {
		p.add(at, "the state machine is no JSON: %v", err)
		return
	}
	p.states(at, machine, "Comment", "StartAt", "States")
}

func (p *problems) states(at string, machine map[string]any, fields ...string) {
	p.fields(at, machine, fields)
	states := object(machine["States"])
	reached := map[string]bool{}
	var reach func(from string, to any)
	reach = func(from string, to any) {
		name, _ := to.(string)
		state := object(states[name])
		if state == nil {
			p.add(at, "%s leads to %v: there is no state %v", from, to, to)
			return
		}
		if reached[name] {
			return
		}
		reached[name] = true
		p.state(at+"."+name, state)
		if next, ok := state["Next"]; ok {
			reach(name, next)
		}
		if state["Type"] == "Choice" {
			reach(name, state["Default"])
			for _, c := range texts(state["Choices"]) {
				reach(name, object(c)["Next"])
			}
		}
		for _, c := range texts(state["Catch"]) {
			reach(name, object(c)["Next"])
		}
	}
	reach("StartAt", machine["StartAt"])
	for _, name := range slices.Sorted(maps.Keys(states)) {
		if !reached[name] {
			p.add(at, "nothing leads to the state %s", name)
		}
	}
}

func (p *problems) fields(at string, value map[string]any, known []string) {
	for name := range value {
		if !slices.Contains(known, name) {
			p.add(at, "there is no field %s", name)
		}
	}
}

func (p *problems) state(at string, state map[string]any) {
	kind, _ := state["Type"].(string)
	known, ok := stateFields[kind]
	if !ok {
		p.add(at, "there is no type %v of states", state["Type"])
		return
	}
	p.fields(at, state, append([]string{"Type", "Comment"}, known...))
	if _, next := state["Next"]; (kind == "Task" || kind == "Map") && next == (state["End"] == true) {
		p.add(at, "a state of type %s has either Next or End", kind)
	}
	retriers := texts(state["Retry"])
	for i, r := range retriers {
		retrier := object(r)
		p.fields(at, retrier, []string{"ErrorEquals", "IntervalSeconds", "MaxAttempts", "BackoffRate", "MaxDelaySeconds", "JitterStrategy"})
		if errors := texts(retrier["ErrorEquals"]); slices.Contains(errors, any("States.ALL")) && (len(errors) > 1 || i < len(retriers)-1) {
			p.add(at, "States.ALL stands alone, and last")
		}
	}
	for _, c := range texts(state["Catch"]) {
		p.fields(at, object(c), []string{"ErrorEquals", "ResultPath", "Next"})
	}
	for _, path := range []string{"InputPath", "OutputPath", "ResultPath", "ItemsPath"} {
		if text, ok := state[path].(string); ok && !strings.HasPrefix(text, "$") {
			p.add(at, "%s is a path, which begins with $", path)
		}
	}
	if kind == "Map" {
		p.states(at+".ItemProcessor", object(state["ItemProcessor"]), "ProcessorConfig", "StartAt", "States")
	}
}
