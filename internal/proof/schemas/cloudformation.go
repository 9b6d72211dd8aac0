package schemas

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// cfnType is a resource type, or the type of a property that is an object.
type cfnType struct {
	ID                 string `json:"$id"`
	CloudFormationType string
	Name               string
	Properties         map[string]struct {
		Type     cfnValue
		Required bool
	}
	Attributes map[string]any
}

// cfnValue is the type of a value.
type cfnValue struct {
	Type      string // string, integer, number, boolean, json, date-time, tag, array, map, ref, union, null
	Element   *cfnValue
	Reference struct {
		Ref string `json:"$ref"`
	}
	Types []cfnValue
}

func (s *Schemas) loadCloudFormation(file string) error {
	var database struct {
		Schema struct {
			Resource, TypeDefinition struct{ Entities []*cfnType }
		}
	}
	if err := readGzip(file, &database); err != nil {
		return err
	}
	s.resources, s.definitions = map[string]*cfnType{}, map[string]*cfnType{}
	for _, r := range database.Schema.Resource.Entities {
		s.resources[r.CloudFormationType] = r
	}
	for _, d := range database.Schema.TypeDefinition.Entities {
		s.definitions[d.ID] = d
	}
	if len(s.resources) == 0 || len(s.definitions) == 0 {
		return fmt.Errorf("%s holds no resource types", file)
	}
	return nil
}

// template is a CloudFormation template that is being checked.
type template struct {
	problems
	schemas                           *Schemas
	sam                               bool
	parameters, resources, conditions map[string]any
	used                              map[string]bool
}

const samTransform = "AWS::Serverless-2016-10-31"

// CloudFormation returns all that is wrong with a template of CloudFormation or SAM.
func (s *Schemas) CloudFormation(src []byte) []string {
	t := &template{schemas: s, used: map[string]bool{}}
	value, err := readYAML(src)
	if err != nil {
		return []string{err.Error()}
	}
	top, _ := value.(map[string]any)
	for name := range top {
		if !slices.Contains([]string{"AWSTemplateFormatVersion", "Transform", "Description", "Parameters", "Conditions", "Resources", "Outputs"},
			name) {
			t.add(name, "a template has no such section")
		}
	}
	if top["AWSTemplateFormatVersion"] != "2010-09-09" {
		t.add("AWSTemplateFormatVersion", "must be the text 2010-09-09")
	}
	t.sam = top["Transform"] == samTransform
	if top["Transform"] != nil && !t.sam {
		t.add("Transform", "is not SAM's")
	}
	t.parameters, t.resources, t.conditions = object(top["Parameters"]), object(top["Resources"]), object(top["Conditions"])
	for _, name := range slices.Sorted(maps.Keys(t.parameters)) {
		t.parameter(name)
	}
	for _, name := range slices.Sorted(maps.Keys(t.resources)) {
		t.resource(name)
	}
	t.references("Conditions", top["Conditions"])
	t.references("Outputs", top["Outputs"])
	for _, declared := range []map[string]any{t.parameters, t.conditions} {
		for name := range declared {
			if !t.used[name] {
				t.add(name, "is declared and never used")
			}
		}
	}
	slices.Sort(t.found)
	return t.found
}

func object(value any) map[string]any {
	o, _ := value.(map[string]any)
	return o
}

var logicalID = regexp.MustCompile(`^[A-Za-z0-9]+$`)

func (t *template) parameter(name string) {
	at := "Parameters." + name
	p := object(t.parameters[name])
	for key := range p {
		if !slices.Contains([]string{"Type", "Default", "Description", "AllowedPattern", "AllowedValues", "ConstraintDescription", "NoEcho"},
			key) {
			t.add(at, "a parameter has no %s", key)
		}
	}
	if !logicalID.MatchString(name) || p["Type"] != "String" {
		t.add(at, "is not a parameter of type String with a name of letters and digits")
	}
	if pattern, ok := p["AllowedPattern"].(string); ok {
		if _, err := regexp.Compile(pattern); err != nil {
			t.add(at, "AllowedPattern: %v", err)
		}
	}
}

func (t *template) resource(name string) {
	at := "Resources." + name
	r := object(t.resources[name])
	for key, value := range r {
		switch key {
		case "Type", "Properties":
		case "DeletionPolicy", "UpdateReplacePolicy":
			if value != "Retain" && value != "Delete" && value != "Snapshot" {
				t.add(at, "%s is Retain, Delete or Snapshot", key)
			}
		case "DependsOn":
			for _, on := range texts(value) {
				if id, _ := on.(string); t.resources[id] == nil {
					t.add(at, "depends on %v, which is no resource", on)
				}
			}
		default:
			t.add(at, "a resource has no %s", key)
		}
	}
	kind, _ := r["Type"].(string)
	known := t.schemas.resources[kind]
	switch {
	case known == nil:
		t.add(at, "CloudFormation has no type %q", kind)
		return
	case strings.HasPrefix(kind, "AWS::Serverless::") && !t.sam:
		t.add(at, "%s needs SAM's transform", kind)
	case !logicalID.MatchString(name):
		t.add(at, "a resource's name has letters and digits only")
	}
	t.object(at, known, object(r["Properties"]))
	t.references(at, r)
	t.policies(at, r)
}

func (t *template) object(at string, of *cfnType, value map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(value)) {
		property, known := of.Properties[name]
		if !known {
			t.add(at, "%s has no property %s", of.Name, name)
			continue
		}
		t.value(at+"."+name, property.Type, value[name])
	}
	for name, property := range of.Properties {
		if property.Required && value[name] == nil {
			t.add(at, "%s needs %s", of.Name, name)
		}
	}
}

// value checks one value against its type.
func (t *template) value(at string, of cfnValue, value any) {
	if function, operand, ok := intrinsic(value); ok {
		if branches, _ := operand.([]any); function == "Fn::If" && len(branches) == 3 {
			t.value(at, of, branches[1])
			t.value(at, of, branches[2])
		} else if slices.Contains([]string{"array", "map", "ref", "integer", "boolean"}, of.Type) && object(value)["Ref"] != "AWS::NoValue" {
			t.add(at, "wants %s, not the text of %s", of.Type, function)
		}
		return
	}
	ok := true
	switch of.Type {
	case "string", "date-time":
		_, ok = value.(string)
	case "integer":
		_, ok = value.(int)
	case "number":
		_, whole := value.(int)
		_, broken := value.(float64)
		ok = whole || broken
	case "boolean":
		_, ok = value.(bool)
	case "array":
		var list []any
		if list, ok = value.([]any); ok {
			for i, element := range list {
				t.value(fmt.Sprintf("%s[%d]", at, i), *of.Element, element)
			}
		}
	case "map":
		var fields map[string]any
		if fields, ok = value.(map[string]any); ok {
			for name, field := range fields {
				t.value(at+"."+name, *of.Element, field)
			}
		}
	case "ref":
		var fields map[string]any
		if fields, ok = value.(map[string]any); ok {
			t.object(at, t.schemas.definitions[of.Reference.Ref], fields)
		}
	case "union":
		t.union(at, of, value)
	}
	if !ok {
		t.add(at, "wants %s, not %v", of.Type, value)
	}
}

// union reports the findings of the alternative that has the fewest.
func (t *template) union(at string, of cfnValue, value any) {
	var least []string
	for i, one := range of.Types {
		trial := &template{schemas: t.schemas}
		trial.value(at, one, value)
		if i == 0 || len(trial.found) < len(least) {
			least = trial.found
		}
	}
	t.found = append(t.found, least...)
}

// intrinsic tells a call of one of CloudFormation's functions from an object.
func intrinsic(value any) (function string, operand any, ok bool) {
	fields, _ := value.(map[string]any)
	if len(fields) != 1 {
		return "", nil, false
	}
	for name, operand := range fields {
		if name == "Ref" || name == "Condition" || strings.HasPrefix(name, "Fn::") {
			return name, operand, true
		}
	}
	return "", nil, false
}

var substitution = regexp.MustCompile(`\$\{([^!}][^}]*)\}`)

// references checks that everything that is referred to is there.
func (t *template) references(at string, value any) {
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			t.references(at, element)
		}
	case map[string]any:
		function, operand, _ := intrinsic(value)
		text, _ := operand.(string)
		switch function {
		case "Ref", "Fn::GetAtt":
			t.reference(at, text)
		case "Fn::Sub":
			for _, m := range substitution.FindAllStringSubmatch(text, -1) {
				t.reference(at, m[1])
			}
		case "Fn::If":
			branches, _ := operand.([]any)
			condition, _ := append(branches, nil)[0].(string)
			if t.conditions[condition] == nil || len(branches) != 3 {
				t.add(at, "!If wants a condition and two values")
			}
			t.used[condition] = true
		}
		for _, field := range value {
			t.references(at, field)
		}
	}
}

var pseudoParameters = []string{"AWS::AccountId", "AWS::NoValue", "AWS::Partition", "AWS::Region", "AWS::StackId", "AWS::StackName",
	"AWS::URLSuffix"}

func (t *template) reference(at, name string) {
	id, attribute, hasAttribute := strings.Cut(name, ".")
	if !hasAttribute {
		t.used[id] = true
		if t.parameters[id] == nil && t.resources[id] == nil && !slices.Contains(pseudoParameters, id) {
			t.add(at, "refers to %s, which is not there", name)
		}
		return
	}
	kind, _ := object(t.resources[id])["Type"].(string)
	if kind == "AWS::Serverless::Function" { // SAM makes an AWS::Lambda::Function of it, under the same name
		kind = "AWS::Lambda::Function"
	}
	if known := t.schemas.resources[kind]; known == nil || known.Attributes[attribute] == nil {
		t.add(at, "refers to %s, which is no attribute of a resource", name)
	}
}

// policies checks every policy document below a value.
func (t *template) policies(at string, value any) {
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			t.policies(at, element)
		}
	case map[string]any:
		for name, field := range value {
			if name == "PolicyDocument" || name == "AssumeRolePolicyDocument" {
				t.schemas.policy(&t.problems, at+"."+name, field)
				continue
			}
			if name == "DashboardBody" {
				text, _ := object(field)["Fn::Sub"].(string)
				if !json.Valid([]byte(text)) {
					t.add(at, "the dashboard's body is no JSON")
				}
			}
			if name == "DefinitionString" {
				text, _ := object(field)["Fn::Sub"].(string)
				t.stateMachine(at, text)
			}
			t.policies(at, field)
		}
	}
}
