// Package schemas checks deployment templates against the schemas that AWS and
// Terraform's provider publish: CloudFormation's resource types, the provider's
// resources, the actions of IAM. scripts/template-schemas installs all three,
// pinned. It is for tests: nothing that ships imports it.
package schemas

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Schemas hold what templates are checked against.
type Schemas struct {
	resources   map[string]*cfnType            // CloudFormation's and SAM's resource types, by name
	definitions map[string]*cfnType            // the types of their properties, by id
	actions     map[string]map[string]bool     // IAM's actions by service, in lower case: whether it needs a resource
	provider    map[string]map[string]*tfBlock // Terraform: "resource" or "data", by type
}

// Load reads the schemas from the folder that scripts/template-schemas prints.
func Load(folder string) (*Schemas, error) {
	s := &Schemas{}
	if err := s.loadCloudFormation(filepath.Join(folder, "cloudformation", "db.json.gz")); err != nil {
		return nil, fmt.Errorf("reading CloudFormation's resource types: %w", err)
	}
	if err := s.loadActions(filepath.Join(folder, "iam", "data", "actions")); err != nil {
		return nil, fmt.Errorf("reading IAM's actions: %w", err)
	}
	if err := s.loadProvider(filepath.Join(folder, "terraform", "lib")); err != nil {
		return nil, fmt.Errorf("reading the schema of Terraform's provider: %w", err)
	}
	return s, nil
}

// problems collects findings with their place in the template.
type problems struct{ found []string }

func (p *problems) add(at, message string, args ...any) {
	p.found = append(p.found, at+": "+fmt.Sprintf(message, args...))
}

func readGzip(file string, into any) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read
	unpacked, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	return json.NewDecoder(unpacked).Decode(into)
}

func (s *Schemas) loadActions(folder string) error {
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("no files in %s", folder)
	}
	s.actions = map[string]map[string]bool{}
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var actions map[string]struct {
			ResourceTypes []struct{ Required bool }
		}
		if err := json.Unmarshal(src, &actions); err != nil {
			return err
		}
		needs := map[string]bool{}
		for name, a := range actions {
			needs[name] = len(a.ResourceTypes) > 0
		}
		s.actions[strings.TrimSuffix(filepath.Base(file), ".json")] = needs
	}
	return nil
}

// policy checks a policy document: the actions exist, and what could be
// narrowed to a resource is.
func (s *Schemas) policy(p *problems, at string, document any) {
	d, _ := document.(map[string]any)
	if d["Version"] != "2012-10-17" {
		p.add(at, "a policy's version is 2012-10-17, not %v", d["Version"])
	}
	statements, ok := d["Statement"].([]any)
	if !ok || len(statements) == 0 {
		p.add(at, "a policy without statements")
	}
	for i, one := range statements {
		here := fmt.Sprintf("%s.Statement[%d]", at, i)
		statement, ok := one.(map[string]any)
		if !ok {
			p.add(here, "a statement is an object")
			continue
		}
		for name := range statement {
			if !slices.Contains([]string{"Sid", "Effect", "Principal", "Action", "Resource", "Condition"}, name) {
				p.add(here, "a statement has no %s", name)
			}
		}
		effect := statement["Effect"]
		if effect != "Allow" && effect != "Deny" {
			p.add(here, "the effect is Allow or Deny, not %v", effect)
		}
		resources := texts(statement["Resource"])
		for _, action := range texts(statement["Action"]) {
			name, _ := action.(string)
			service, verb, _ := strings.Cut(name, ":")
			if effect == "Deny" && verb == "*" && s.actions[service] != nil {
				continue
			}
			needsResource, known := s.actions[service][strings.ToLower(verb)]
			switch all := slices.Contains(resources, any("*")); {
			case !known:
				p.add(here, "IAM has no action %q", name)
			case statement["Principal"] != nil:
			case len(resources) == 0:
				p.add(here, "no resource")
			case needsResource && all:
				p.add(here, "%s is allowed on everything", name)
			case !needsResource && !all:
				p.add(here, "%s takes no resource: it would never be allowed", name)
			}
		}
	}
}

// texts is a list, or the only element of one.
func texts(value any) []any {
	if list, ok := value.([]any); ok {
		return list
	}
	if value == nil {
		return nil
	}
	return []any{value}
}
