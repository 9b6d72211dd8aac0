package printable

import (
	"os/exec"
	"testing"
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
		out, err := exec.Command(bash, "-c", "printf %s "+Shell(text)).Output()
		if err != nil || string(out) != text {
			t.Errorf("%q quoted as %s is read as %q (%v)", text, Shell(text), out, err)
		}
		if quoted := Shell(text); Text(quoted) != quoted {
			t.Errorf("%q quoted as %q cannot be shown as it is", text, quoted)
		}
	}
}
