package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/dynamill/dynamill/internal/printable"
)

// oddTexts are what keys and ids may hold.
var oddTexts = []string{
	"r1/USER%23u1", "", " ", "a b", "it's", `back\slash`, "$HOME `id` $(id) !x", "*?[a]{b,c}", "~", "-rf", "#x", "a;b|c&d<e>f",
	"naïve 日本", "tab\there", "line\nbreak", "quote'and\nnewline\\", "\x1b[31mred", "\x7f", "bell\a7", "\u202eabc", "bad\xffutf8",
}

func TestAQuotedTextIsOneWordForTheShell(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatalf("bash is needed to read what was quoted: %v", err)
	}
	for _, text := range oddTexts {
		out, err := exec.Command(bash, "-c", "printf %s "+shellQuote(text)).Output()
		if err != nil || string(out) != text {
			t.Errorf("%q quoted as %s is read as %q (%v)", text, shellQuote(text), out, err)
		}
		if quoted := shellQuote(text); printable.Text(quoted) != quoted {
			t.Errorf("%q quoted as %q cannot be shown as it is", text, quoted)
		}
	}
}

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
