package main

import (
	"strings"
	"testing"
)

func TestColumnsAreAlignedByCharacters(t *testing.T) {
	table := columns{indent: "> "}
	table.add("ÄÖ", "b", "c")
	table.add("a", "日本", "")
	table.add("o\u0308", "\x1b[2J", "d")
	table.add("a")
	var b strings.Builder
	if err := table.writeTo(&b); err != nil {
		t.Fatal(err)
	}
	if want := "> ÄÖ  b        c\n> a   日本\n> o\u0308   \\x1b[2J  d\n> a\n"; b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestNumbersAreGrouped(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		if got := grouped(n); got != want {
			t.Errorf("grouped(%d) = %s, want %s", n, got, want)
		}
	}
}
