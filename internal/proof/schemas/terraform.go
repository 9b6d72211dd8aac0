package schemas

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/tryfunc"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// configuration is a Terraform configuration that is being checked.
type configuration struct {
	problems
	schemas *Schemas
	context *hcl.EvalContext
	used    map[string]bool // variables and data sources
}

// Terraform returns all that is wrong with a configuration of Terraform.
func (s *Schemas) Terraform(src []byte) []string {
	c := &configuration{schemas: s, used: map[string]bool{}}
	file, diagnostics := hclsyntax.ParseConfig(src, "main.tf", hcl.InitialPos)
	if diagnostics.HasErrors() {
		c.diagnose("the configuration", diagnostics)
		return c.found
	}
	if !bytes.Equal(hclwrite.Format(src), src) {
		c.add("the configuration", "is not formatted as `terraform fmt` does it")
	}
	body := file.Body.(*hclsyntax.Body)
	c.context = c.scope(body)
	for name := range body.Attributes {
		c.add(name, "an attribute outside of every block")
	}
	for _, block := range body.Blocks {
		c.top(block)
	}
	for _, block := range body.Blocks {
		if name := address(block); (block.Type == "variable" || block.Type == "data") && !c.used[name] {
			c.add(name, "is declared and never used")
		}
	}
	slices.Sort(c.found)
	return slices.Compact(c.found)
}

func (c *configuration) diagnose(at string, diagnostics hcl.Diagnostics) {
	for _, d := range diagnostics {
		c.add(at, "%s: %s", d.Summary, d.Detail)
	}
}

// address is how expressions call what a block declares.
func address(block *hclsyntax.Block) string {
	switch block.Type {
	case "variable":
		return "var." + strings.Join(block.Labels, ".")
	case "data":
		return "data." + strings.Join(block.Labels, ".")
	}
	return strings.Join(block.Labels, ".")
}

// scope gives every variable and resource values of the right types to refer to.
func (c *configuration) scope(body *hclsyntax.Body) *hcl.EvalContext {
	variables, data, top := map[string]cty.Value{}, map[string]map[string]cty.Value{}, map[string]map[string]cty.Value{}
	for _, block := range body.Blocks {
		name := address(block)
		if block.Type == "variable" && len(block.Labels) == 1 {
			variables[block.Labels[0]] = cty.StringVal("<" + name + ">")
		}
		known := c.schemas.provider[block.Type]
		if known == nil || len(block.Labels) != 2 || known[block.Labels[0]] == nil {
			continue
		}
		values := map[string]cty.Value{}
		for attribute, kind := range known[block.Labels[0]].computed {
			values[attribute] = cty.UnknownVal(kind)
			if kind == cty.String { // known, so that policies can be read
				values[attribute] = cty.StringVal("<" + name + "." + attribute + ">")
			}
		}
		in := top
		if block.Type == "data" {
			in = data
		}
		if in[block.Labels[0]] == nil {
			in[block.Labels[0]] = map[string]cty.Value{}
		}
		in[block.Labels[0]][block.Labels[1]] = cty.ObjectVal(values)
	}
	all := map[string]cty.Value{"var": cty.ObjectVal(variables), "data": objects(data)}
	for kind, named := range top {
		all[kind] = cty.ObjectVal(named)
	}
	digest := function.New(&function.Spec{
		Params: []function.Parameter{{Name: "path", Type: cty.String}}, Type: function.StaticReturnType(cty.String),
		Impl: func([]cty.Value, cty.Type) (cty.Value, error) { return cty.StringVal("<digest>"), nil },
	})
	return &hcl.EvalContext{Variables: all, Functions: map[string]function.Function{
		"jsonencode": stdlib.JSONEncodeFunc, "regex": stdlib.RegexFunc, "can": tryfunc.CanFunc, "filebase64sha256": digest,
	}}
}

func objects(named map[string]map[string]cty.Value) cty.Value {
	all := map[string]cty.Value{}
	for name, values := range named {
		all[name] = cty.ObjectVal(values)
	}
	return cty.ObjectVal(all)
}

// Blocks that are Terraform's own, not the provider's.
var (
	variableBlock = &tfBlock{
		attributes: map[string]tfAttribute{"type": {cty.DynamicPseudoType}, "description": {cty.String}, "default": {cty.DynamicPseudoType}},
		blocks: map[string]*tfBlock{"validation": {attributes: map[string]tfAttribute{"condition": {cty.Bool}, "error_message": {cty.String}},
			required: []string{"condition", "error_message"}}},
	}
	outputBlock = &tfBlock{attributes: map[string]tfAttribute{"value": {cty.DynamicPseudoType}, "description": {cty.String}},
		required: []string{"value"}}
	lifecycleBlock = &tfBlock{attributes: map[string]tfAttribute{"prevent_destroy": {cty.Bool}}}
	terraformBlock = &tfBlock{blocks: map[string]*tfBlock{
		"required_providers": {attributes: map[string]tfAttribute{"aws": {cty.Map(cty.String)}}},
	}}
)

func (c *configuration) top(block *hclsyntax.Block) {
	at := block.Type + "." + strings.Join(block.Labels, ".")
	labels := map[string]int{"terraform": 0, "variable": 1, "output": 1, "resource": 2, "data": 2}
	if want, known := labels[block.Type]; !known || len(block.Labels) != want {
		c.add(at, "is no block of a configuration")
		return
	}
	switch block.Type {
	case "terraform":
		c.block(at, terraformBlock, block.Body, false)
	case "variable":
		c.block(at, variableBlock, block.Body, false)
	case "output":
		c.block(at, outputBlock, block.Body, false)
	default:
		known := c.schemas.provider[block.Type][block.Labels[0]]
		if known == nil {
			c.add(at, "the provider has no such %s (or scripts/template-schemas does not list it)", block.Type)
			return
		}
		c.block(at, known, block.Body, true)
	}
}

// block checks the body of a block; outermost ones may have Terraform's own arguments, too.
func (c *configuration) block(at string, of *tfBlock, body *hclsyntax.Body, outermost bool) {
	there := map[string]bool{}
	for name, attribute := range body.Attributes {
		there[name] = true
		if outermost && name == "depends_on" {
			c.dependencies(at, attribute)
			continue
		}
		known, ok := of.attributes[name]
		if !ok {
			c.add(at, "has no argument %s", name)
			continue
		}
		if name == "type" && of == variableBlock {
			if hcl.ExprAsKeyword(attribute.Expr) != "string" {
				c.add(at, "only variables of type string are known here")
			}
			continue
		}
		c.attribute(at+"."+name, known.kind, attribute.Expr)
	}
	for _, inner := range body.Blocks {
		there[inner.Type] = true
		known := of.blocks[inner.Type]
		if outermost && inner.Type == "lifecycle" {
			known = lifecycleBlock
		}
		if known == nil || len(inner.Labels) > 0 {
			c.add(at, "has no block %s", inner.Type)
			continue
		}
		c.block(at+"."+inner.Type, known, inner.Body, false)
	}
	for _, name := range of.required {
		if !there[name] {
			c.add(at, "needs %s", name)
		}
	}
}

// attribute evaluates an expression and compares its type.
func (c *configuration) attribute(at string, want cty.Type, expression hclsyntax.Expression) {
	for _, traversal := range expression.Variables() {
		c.used[pathOf(traversal, 2)], c.used[pathOf(traversal, 3)] = true, true
	}
	value, diagnostics := expression.Value(c.context)
	c.diagnose(at, diagnostics)
	if diagnostics.HasErrors() || want == cty.DynamicPseudoType {
		return
	}
	converted, err := convert.Convert(value, want)
	if got := value.Type(); err != nil || want.IsPrimitiveType() && got.IsPrimitiveType() && got != want {
		c.add(at, "wants %s, not %s", want.FriendlyName(), got.FriendlyName())
		return
	}
	if converted.Type() != cty.String || !converted.IsKnown() {
		return
	}
	switch last := at[strings.LastIndex(at, ".")+1:]; last {
	case "definition":
		c.stateMachine(at, converted.AsString())
	case "policy", "assume_role_policy", "dashboard_body":
		var document any
		if err := json.Unmarshal([]byte(converted.AsString()), &document); err != nil {
			c.add(at, "is no JSON: %v", err)
		} else if last != "dashboard_body" {
			c.schemas.policy(&c.problems, at, document)
		}
	}
}

// dependencies checks a depends_on, whose elements are addresses and no values.
func (c *configuration) dependencies(at string, attribute *hclsyntax.Attribute) {
	list, diagnostics := hcl.ExprList(attribute.Expr)
	c.diagnose(at, diagnostics)
	for _, one := range list {
		_, diagnostics := one.Value(c.context)
		c.diagnose(fmt.Sprintf("%s.depends_on", at), diagnostics)
	}
}

// pathOf writes the first steps of a reference.
func pathOf(traversal hcl.Traversal, steps int) string {
	var path []string
	for _, step := range traversal[:min(steps, len(traversal))] {
		switch step := step.(type) {
		case hcl.TraverseRoot:
			path = append(path, step.Name)
		case hcl.TraverseAttr:
			path = append(path, step.Name)
		}
	}
	return strings.Join(path, ".")
}
