package templates

import (
	"strings"
	"testing"
)

func TestPlaceholdersAreToldFromConstants(t *testing.T) {
	for _, tt := range []struct {
		template  string
		corrected string // "" if the template has no placeholder
		certain   bool   // of the first placeholder
	}{
		{"USER#<userId>", "USER#${userId}", true},
		{"USER#{userId}", "USER#${userId}", true},
		{"USER#{{userId}}", "USER#${userId}", true},
		{"USER#{{ .userId }}", "USER#${userId}", true},
		{"USER#%userId%", "USER#${userId}", true},
		{"<<a>>-{b}-%c%", "${a}-${b}-${c}", true},
		{"<user-id>", "${user_id}", true},
		{"<tag...>", "${tag}", true},
		{"${a}#<b>", "${a}#${b}", true},
		{"$userId", "${userId}", false},
		{"US$userId", "US${userId}", false},
		{":userId", "${userId}", false},
		{"/users/:id/posts", "/users/${id}/posts", false},
		{"user_:id", "user_${id}", false},

		{"ORDER%", "", false},
		{"100%", "", false},
		{"5% of 10%", "", false},
		{"caf%C3%A9%20", "", false},
		{"a<b", "", false},
		{"a < b > c", "a ${b} c", true}, // a name between marks, with blanks
		{"a->b", "", false},
		{"<1>", "", false},
		{"<>", "", false},
		{"{", "", false},
		{"{}", "", false},
		{"{0}", "", false},
		{"$5", "", false},
		{"US$", "", false},
		{"CONFIG:global", "", false},
		{"a::b", "", false},
		{"12:30", "", false},
		{"${userId}", "", false},
		{"${a}:${b}", "", false},
		{`\<userId>`, "", false},
		{`\{\{userId}}`, "", false},
		{`\%userId%`, "", false},
		{`\$userId#\:postId`, "", false},
		{`\${userId}`, "", false},
		{`\\<userId>`, `\\${userId}`, true}, // the backslash is a backslash
	} {
		found := Placeholders(tt.template)
		if (len(found) > 0) != (tt.corrected != "") {
			t.Errorf("%q: found %+v", tt.template, found)
			continue
		}
		if len(found) == 0 {
			continue
		}
		if got := Corrected(tt.template, found); got != tt.corrected || found[0].Certain != tt.certain {
			t.Errorf("%q is corrected to %q, certain %t; want %q, %t", tt.template, got, found[0].Certain, tt.corrected, tt.certain)
		}
		kept := KeptAsText(tt.template, true)
		parsed, err := new(Shape).Parse(kept, AsIs)
		if err != nil || len(Placeholders(kept)) > 0 {
			t.Errorf("%q, which should keep %q, is refused", kept, tt.template)
		} else if fixed := parsed.Fixed(); !strings.Contains(tt.template, "${") &&
			(!fixed.Exact || fixed.Prefix != strings.ReplaceAll(tt.template, `\\`, `\`)) {
			t.Errorf("%q keeps %q, want %q", kept, fixed.Prefix, tt.template)
		}
	}
}

// The text of a template that needs no escape is its meaning, so that
// fingerprints of such rules do not depend on the version.
func TestTemplatesOfOneMeaningHaveOneText(t *testing.T) {
	meaning := func(text string) string {
		var sh Shape
		var err *Fault
		if sh.Partition, err = sh.Parse(text, AsIs); err != nil {
			t.Fatal(text, err.Message)
		}
		meaning, _ := sh.Meanings()
		return meaning
	}
	for _, text := range []string{"USER#${userId}", "a${x...}", "100%", `a\b`, "$service_${x}#:y", "<a>", "${x:010}#${y:lower}#${`a b`:upper...}"} {
		if got := meaning(text); got != text {
			t.Errorf("%q means %q", text, got)
		}
	}
	for _, pair := range [][2]string{{`\<a>`, "<a>"}, {`\$s`, "$s"}, {`a\\b`, `a\b`}, {`\{ `, "{ "}} {
		if meaning(pair[0]) != meaning(pair[1]) {
			t.Errorf("%q means %q and %q means %q", pair[0], meaning(pair[0]), pair[1], meaning(pair[1]))
		}
	}
	for _, pair := range [][2]string{{`\${x}`, "${x}"}, {`\\{ `, `\{ `}, {`\\${x}`, `\${x}`}} {
		if meaning(pair[0]) == meaning(pair[1]) {
			t.Errorf("%q and %q both mean %q", pair[0], pair[1], meaning(pair[0]))
		}
	}
}
