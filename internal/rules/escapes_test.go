package rules_test

import (
	"fmt"
	"testing"

	"github.com/dynamill/dynamill/change"
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
		s := loadText(t, fmt.Sprintf("version: 1\ntable: { keys: [PK] }\nentities: { E: { key: { PK: '%s' } }, F: { key: { PK: 'F${f}' } } }\n"+
			"rules: { r: { mirror: F, as: E, attributes: [x] } }\n", tt.template))
		key, _, err := s.Rules[0].JoinedKey(identify(t, s, "F1", "", nil), nil)
		if err != nil || key.Partition != tt.key {
			t.Errorf("%q renders as %q, %v, want %q", tt.template, key.Partition, err, tt.key)
		}
		e := s.Rules[0].Target
		if !e.HasKey(change.Key{Partition: tt.key}) {
			t.Errorf("%q does not match %q", tt.template, tt.key)
		}
	}
}
