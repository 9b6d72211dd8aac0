package lambdatest

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
)

// fill makes a payload template's value: fields whose names end in .$ are paths.
func fill(template map[string]any, input any, context map[string]any) (map[string]any, error) {
	filled := maps.Clone(template)
	for name, value := range template {
		inner, isObject := value.(map[string]any)
		text, _ := value.(string)
		var err error
		switch plain, isPath := strings.CutSuffix(name, ".$"); {
		case isPath:
			delete(filled, name)
			filled[plain], err = lookup(text, input, context)
		case isObject:
			filled[name], err = fill(inner, input, context)
		}
		if err != nil {
			return nil, err
		}
	}
	return filled, nil
}

// path applies an InputPath or OutputPath: $ where there is none, and nothing where it is null.
func path(p json.RawMessage, value any, context map[string]any) (any, error) {
	if p == nil {
		return value, nil
	}
	if string(p) == "null" {
		return map[string]any{}, nil
	}
	var text string
	if err := json.Unmarshal(p, &text); err != nil {
		return nil, err
	}
	return lookup(text, value, context)
}

// lookup follows a path of names, from $ or, in the context object, $$.
func lookup(p string, value any, context map[string]any) (any, error) {
	root, steps, _ := strings.Cut(p, ".")
	switch root {
	case "$":
	case "$$":
		value = context
	default:
		return nil, fmt.Errorf("%q is no path", p)
	}
	if steps == "" {
		return value, nil
	}
	for _, step := range strings.Split(steps, ".") {
		in, _ := value.(map[string]any)
		inner, ok := in[step]
		if !ok {
			return nil, &ExecutionError{"States.ParameterPathFailure", fmt.Sprintf("%s is not in %v", p, value)}
		}
		value = inner
	}
	return value, nil
}

// place puts a result where a ResultPath says.
func place(p json.RawMessage, input, result any) (any, error) {
	if p == nil {
		return result, nil
	}
	var text *string
	if err := json.Unmarshal(p, &text); err != nil || text == nil {
		return input, err
	}
	name, ok := strings.CutPrefix(*text, "$.")
	in, isObject := input.(map[string]any)
	if !ok || !isObject || strings.Contains(name, ".") {
		return nil, fmt.Errorf("the ResultPath %q is not known here", *text)
	}
	out := maps.Clone(in)
	if out == nil {
		out = map[string]any{}
	}
	out[name] = result
	return out, nil
}
