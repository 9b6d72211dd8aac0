package output

import (
	"testing"

	"github.com/dynamill/dynamill/internal/printable"
)

func TestColumnsAreAlignedByCharacters(t *testing.T) {
	table := NewColumns("> ", "ÄÖ", "b", "c")
	table.Add("a", "日本", "")
	table.Add("o\u0308", "\x1b[2J", "d")
	table.Add("a")
	got := table.Text()
	if want := "> ÄÖ  b        c\n> a   日本\n> o\u0308   \\x1b[2J  d\n> a\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestNumbersAreGrouped(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		if got := printable.Grouped(n); got != want {
			t.Errorf("grouped(%d) = %s, want %s", n, got, want)
		}
	}
}
