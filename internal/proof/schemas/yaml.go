package schemas

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// readYAML reads a template as maps, lists and scalars. CloudFormation's short
// forms become the long ones: `!Ref X` is {"Ref": "X"}, `!Sub x` is {"Fn::Sub": "x"}.
func readYAML(src []byte) (any, error) {
	file, err := parser.ParseBytes(src, 0)
	if err != nil {
		return nil, fmt.Errorf("the template is no YAML: %w", err)
	}
	if len(file.Docs) != 1 || file.Docs[0].Body == nil {
		return nil, fmt.Errorf("the template has %d documents", len(file.Docs))
	}
	return valueOf(file.Docs[0].Body)
}

func valueOf(node ast.Node) (any, error) {
	switch node := node.(type) {
	case *ast.MappingNode:
		fields := map[string]any{}
		for _, pair := range node.Values {
			if err := addField(fields, pair); err != nil {
				return nil, err
			}
		}
		return fields, nil
	case *ast.MappingValueNode:
		fields := map[string]any{}
		return fields, addField(fields, node)
	case *ast.SequenceNode:
		list := []any{}
		for _, element := range node.Values {
			value, err := valueOf(element)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		return list, nil
	case *ast.TagNode:
		value, err := valueOf(node.Value)
		if err != nil {
			return nil, err
		}
		switch tag := strings.TrimPrefix(node.Start.Value, "!"); tag {
		case "Ref", "Condition":
			return map[string]any{tag: value}, nil
		case "GetAtt", "Sub", "If", "Equals", "Not", "And", "Or", "Join", "Select", "Split":
			return map[string]any{"Fn::" + tag: value}, nil
		default:
			return nil, fmt.Errorf("CloudFormation has no function !%s", tag)
		}
	case *ast.StringNode:
		return node.Value, nil
	case *ast.LiteralNode:
		return node.Value.Value, nil
	case *ast.BoolNode:
		return node.Value, nil
	case *ast.IntegerNode:
		if n, ok := node.Value.(uint64); ok {
			return int(n), nil
		}
		return int(node.Value.(int64)), nil
	case *ast.FloatNode:
		return node.Value, nil
	case *ast.NullNode:
		return nil, nil
	}
	return nil, fmt.Errorf("a template has no use for %s", node.Type())
}

func addField(fields map[string]any, pair *ast.MappingValueNode) error {
	key, err := valueOf(pair.Key)
	if err != nil {
		return err
	}
	name, ok := key.(string)
	if !ok {
		return fmt.Errorf("the key %v is no text", key)
	}
	if _, twice := fields[name]; twice {
		return fmt.Errorf("the key %s is there twice", name)
	}
	fields[name], err = valueOf(pair.Value)
	return err
}
