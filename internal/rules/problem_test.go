package rules_test

import (
	"strings"
	"testing"

	"github.com/dynamill/dynamill/internal/rules"
)

func TestCaretStandsBelowWhatIsShown(t *testing.T) {
	for _, c := range []struct {
		source         string
		column, length int
		want           string // the line, and the carets below
	}{
		{"\ta: bcd", 5, 3, "\ta: bcd\n\t   ^^^"},
		{"\x1b[31ma: bcd", 9, 3, `\x1b[31ma: bcd` + "\n           ^^^"},
		{"a: b\u202ec\x9bd", 4, 5, `a: b\u202ec\x9bd` + "\n   ^^^^^^^^^^^^^"},
		{"cafe\u0301: x", 8, 1, "cafe\u0301: x\n      ^"},
		{"a", 3, 1, "a\n ^"},
	} {
		p := rules.Problem{File: "f\n.yaml", Line: 1, Column: c.column, Length: c.length, Source: c.source, Code: "rule.x", Message: "m\x1b\n",
			Hint: "h\n"}
		lines := strings.Split(p.String(), "\n")
		if len(lines) != 5 || !strings.HasPrefix(lines[0], `f\n.yaml:1:`) || !strings.HasSuffix(lines[0], `m\x1b\n`) ||
			lines[3] != `    hint: h\n` {
			t.Fatalf("a problem is shown as %q", lines)
		}
		got := strings.TrimPrefix(lines[1], "       1 | ") + "\n" + strings.TrimPrefix(lines[2], "         | ")
		if got != c.want {
			t.Errorf("%q, column %d, is shown as\n%s\nwant\n%s", c.source, c.column, got, c.want)
		}
	}
}
