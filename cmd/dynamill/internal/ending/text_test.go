package ending

import (
	"errors"
	"fmt"
	"testing"

	"github.com/dynamill/dynamill"
	"github.com/dynamill/dynamill/internal/replay"
	"github.com/dynamill/dynamill/internal/replay/sources"
)

func TestErrorTextKeepsOnlyItsOwnLineBreaks(t *testing.T) {
	const key = "USER#1\nFAKE: all is well\x1b[2J"
	const shown = `USER#1\nFAKE: all is well\x1b[2J`
	leaf := errors.New("reading " + key)
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"one": {leaf, "reading " + shown},
		"wrapped": {fmt.Errorf("doing %s: %w; then %s", key, leaf, key),
			"doing " + shown + ": reading " + shown + "; then " + shown},
		"joined": {errors.Join(leaf, errors.New("b\n")), "reading " + shown + "\nb\\n"},
		"joined and wrapped": {fmt.Errorf("%s:\n%w\nagain", key, errors.Join(leaf, leaf)),
			shown + ":\nreading " + shown + "\nreading " + shown + "\nagain"},
		"of a failure": {Unsuited("no %s: %w", key, leaf), "no " + shown + ": reading " + shown},
		"of pieces": {&replay.PiecesError{Source: "list", Pieces: 2, Errors: []error{leaf, leaf}},
			"2 of 2 pieces of the list failed, the others are done:\nreading " + shown + "\nreading " + shown},
		"of a list": {Invalid("--from x: %w", &sources.KeyListError{Name: "x", Problems: []string{"line 1: " + key}, Total: 2}),
			"--from x: x: 2 of its lines are no keys:\n  line 1: " + shown + "\n  and 1 more"},
		"of the flags' parser": {Invalid("%w; help", LaidOut{errors.New("unknown\n\n\tplan\n\x1b")}), "unknown\n\n\tplan\n\\x1b; help"},
		"of an unseen cause":   {&dynamill.EndedError{Problem: "a\nb", Remedy: "c"}, `a\nb: c`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Text(c.err); got != c.want {
				t.Errorf("%q\nis shown as\n%q, want\n%q", c.err.Error(), got, c.want)
			}
		})
	}
}
