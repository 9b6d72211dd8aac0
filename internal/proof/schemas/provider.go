package schemas

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

// tfBlock is a block of Terraform's provider: a resource, a data source, or a block within one.
type tfBlock struct {
	attributes map[string]tfAttribute
	blocks     map[string]*tfBlock
	required   []string            // attributes and blocks
	computed   map[string]cty.Type // what others may refer to, the attributes included
}

// tfAttribute is an attribute; its type is cty.DynamicPseudoType where the declaration does not say it.
type tfAttribute struct{ kind cty.Type }

// The declarations give each field its name in Terraform, by a link to the
// registry, and say which fields are blocks.
var (
	declaredInterface = regexp.MustCompile(`(?ms)^export interface (\w+)(?: extends [\w.]+)? \{\n(.*?)^\}`)
	declaredField     = regexp.MustCompile(`(?s)/\*\*(.*?)\*/\s*readonly (\w+)(\??): (.*?);\n(?:    /\*\*|\z|$)`)
	declaredLink      = regexp.MustCompile(`\{@link [^ }]*#\w+ \w+#(\w+)\}`)
	declaredGetter    = regexp.MustCompile(`(?m)^    get (\w+)\(\): (.*);$`)
	declaredType      = regexp.MustCompile(`static readonly tfResourceType = "(\w+)"`)
	blockComment      = regexp.MustCompile(`(?m)^\s*\* \w+ block$`)
	namedType         = regexp.MustCompile(`^(\w+)(?:\[\])?(?: \| cdktf\.IResolvable)?$`)
)

func (s *Schemas) loadProvider(folder string) error {
	files, err := filepath.Glob(filepath.Join(folder, "*", "index.d.ts"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("no files in %s", folder)
	}
	s.provider = map[string]map[string]*tfBlock{"resource": {}, "data": {}}
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		name := declaredType.FindSubmatch(src)
		block, err := readDeclaration(string(src))
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if name == nil {
			return fmt.Errorf("%s does not say of which resource it is", file)
		}
		kind := "resource"
		if strings.HasPrefix(filepath.Base(filepath.Dir(file)), "data-") {
			kind = "data"
		}
		s.provider[kind][string(name[1])] = block
	}
	return nil
}

func readDeclaration(src string) (*tfBlock, error) {
	interfaces := map[string]string{}
	config := ""
	for _, m := range declaredInterface.FindAllStringSubmatch(src, -1) {
		interfaces[m[1]] = m[2]
		if strings.Contains(m[0], "extends cdktf.TerraformMetaArguments") {
			config = m[1]
		}
	}
	if config == "" {
		return nil, fmt.Errorf("no configuration among %d interfaces", len(interfaces))
	}
	block, err := readInterface(config, interfaces)
	if err != nil {
		return nil, err
	}
	block.computed = map[string]cty.Type{}
	_, class, _ := strings.Cut(src, "static readonly tfResourceType")
	for _, m := range declaredGetter.FindAllStringSubmatch(class, -1) {
		block.computed[snake(m[1])] = typeOf(m[2])
	}
	for name, attribute := range block.attributes {
		block.computed[name] = attribute.kind
	}
	return block, nil
}

// readInterface reads one interface, and those of the blocks within it.
func readInterface(name string, interfaces map[string]string) (*tfBlock, error) {
	b := &tfBlock{attributes: map[string]tfAttribute{}, blocks: map[string]*tfBlock{}}
	body := interfaces[name]
	for _, field := range strings.Split(body, "    /**\n")[1:] {
		m := declaredField.FindStringSubmatch("/**" + field)
		if m == nil {
			return nil, fmt.Errorf("a field of %s cannot be read: %.80q", name, field)
		}
		comment, optional, declared := m[1], m[3] == "?", m[4]
		link := declaredLink.FindStringSubmatch(comment)
		if link == nil {
			return nil, fmt.Errorf("the field %s of %s does not say its name", m[2], name)
		}
		if !optional {
			b.required = append(b.required, link[1])
		}
		if inner := namedType.FindStringSubmatch(declared); blockComment.MatchString(comment) && inner != nil {
			block, err := readInterface(inner[1], interfaces)
			if err != nil {
				return nil, err
			}
			b.blocks[link[1]] = block
			continue
		}
		b.attributes[link[1]] = tfAttribute{typeOf(declared)}
	}
	return b, nil
}

// typeOf reads the types that matter here.
func typeOf(declared string) cty.Type {
	switch declared = strings.TrimSuffix(declared, " | cdktf.IResolvable"); {
	case declared == "string":
		return cty.String
	case declared == "number":
		return cty.Number
	case declared == "boolean":
		return cty.Bool
	case declared == "string[]":
		return cty.List(cty.String)
	case strings.HasPrefix(declared, "{") && strings.Contains(declared, "]: string"):
		return cty.Map(cty.String)
	}
	return cty.DynamicPseudoType
}

var upper = regexp.MustCompile(`[A-Z]`)

func snake(camel string) string {
	return upper.ReplaceAllStringFunc(camel, func(letter string) string { return "_" + strings.ToLower(letter) })
}
