package rules

import (
	"testing"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/rules/internal/templates"
)

func TestBackslashKeepsACharacter(t *testing.T) {
	for _, tt := range []struct{ template, key string }{
		{`A#\<id>`, "A#<id>"},
		{`A#\{id}`, "A#{id}"},
		{`A#\%id%`, "A#%id%"},
		{`\$service#\:id`, "$service#:id"},
		{`\${id}`, "${id}"},
		{`\{\}\>`, "{}>"},
		{`a\\b`, `a\b`},
		{`a\b\`, `a\b\`}, // before another character, and at the end, it is a backslash
		{"{", "{"},
		{"a}b", "a}b"},
	} {
		sh := templates.Shape{}
		var err *templates.Fault
		if sh.Partition, err = sh.Parse(tt.template, templates.AsIs); err != nil {
			t.Errorf("%q: %s", tt.template, err.Message)
			continue
		}
		e := &Entity{Name: "E", shape: sh}
		m := Match{Entity: e}
		if got := m.Key().Partition; got != tt.key {
			t.Errorf("%q renders as %q, want %q", tt.template, got, tt.key)
		}
		if !e.HasKey(change.Key{Partition: tt.key}) {
			t.Errorf("%q does not match %q", tt.template, tt.key)
		}
	}
}
